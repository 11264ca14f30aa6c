"""MLflow's rules about the source of a skill's version: a git repository, an OCI image or a ZIP
file. The server records where the content is and never opens it."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from mlcore.entities.skills import GIT, MLFLOW, OCI, ZIP, SkillSource
from mlcore.errors import InvalidParameterValue
from mlcore.limits.skill_paths import normal_subpath

MAX_LENGTH: Final = 2048
"""Characters of a source, a ref and a subpath."""

_OCI_SCHEME: Final = "oci://"
_GIT_SCHEME: Final = "git://"
_INSIDE_MLFLOW: Final = ("mlflow-artifacts:/", "runs:/", "models:/")
_TYPES: Final = (GIT, OCI, ZIP)

_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_SCP: Final = re.compile(r"(?:[\w.-]+@[\w.-]+|[\w-]+(?:\.[\w-]+)+):")
"""Git's form ``user@host:path``; without a user the host needs a dot."""
_UNPRINTABLE: Final = re.compile(r"[\s\x00-\x1f\x7f]")

_CREDENTIAL_PARAMETERS: Final = frozenset(
    (
        *("access_token", "googleaccessid", "sig", "signature", "token"),
        *("x-amz-credential", "x-amz-security-token", "x-amz-signature"),
        *("x-goog-credential", "x-goog-signature"),
    )
)
"""Names of query parameters by which signed URLs grant access."""

_SECRETS: Final = (
    (re.compile(r"(?<=://)[^/@\s]+@"), "***@"),
    (re.compile(r"(?<![\w/])[^\s/:@]+:[^\s/@]+@(?=[\w.-]+:)"), "***@"),
    (re.compile(r"(?i)(https?://[^\s'\"?#<>]+)\?[^\s'\"#<>]*"), r"\1?***"),
)
"""Passwords and signatures in URLs, and what an error message shows for them."""

_TOO_LONG: Final = "***"
"""Stands for a text that may contain a secret and is longer than a source may be."""

_DOCKER_HUB: Final = "docker.io"
_HOST_PART: Final = "(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])"
_REGISTRY: Final = re.compile(
    rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?"
)
_COMPONENT: Final = re.compile("[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*")
_TAG: Final = re.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_IMAGE_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")


def check_type(source_type: str | None) -> None:
    """Raises InvalidParameterValue if a request sets the ``source_type`` that marks skill versions
    with uploaded files: only the server may set it."""
    if source_type == MLFLOW:
        raise InvalidParameterValue(
            f"'source_type' '{MLFLOW}' is set by the server from the creation flow and cannot be "
            "submitted."
        )


def remote_source(
    source: str,
    source_type: str | None,
    ref: str | None,
    subpath: str | None,
    digest: str | None,
) -> SkillSource:
    """Checks the source that a request gives for a skill version (git, OCI or ZIP), and returns it
    as it is stored.

    Args:
        source_type: ``git``, ``oci`` or ``zip``; None to conclude it from ``source``.

    Raises:
        InvalidParameterValue: the source is not remote, has credentials, or is malformed.
    """
    trimmed = source.strip()
    if trimmed.lower().startswith(_INSIDE_MLFLOW):
        raise InvalidParameterValue(
            f"'source' {source!r} names content inside MLflow; a remote source must be a git, oci, "
            "or zip location. Upload local content instead of pointing at it."
        )
    if source_type != OCI and _is_local(trimmed):
        raise InvalidParameterValue(
            f"'source' must be a remote git, oci, or zip location, got {source!r}. The server "
            "never reads a path on its own filesystem; local content is uploaded instead."
        )
    if source_type is None:
        return _inferred(trimmed, ref, subpath, digest)
    return _typed(source, source_type, ref, subpath, digest)


def _is_local(source: str) -> bool:
    if _DRIVE.match(source):
        return True
    return "://" not in source and not _SCP.match(source)


def _inferred(source: str, ref: str | None, subpath: str | None, digest: str | None) -> SkillSource:
    normal = _checked_subpath(subpath)
    source_type, pointer = _type_of(source)
    if ref is not None and source_type != GIT:
        raise InvalidParameterValue("'ref' applies to Git sources only.")
    if source_type == GIT:
        _check_git(pointer, ref)
    elif source_type == ZIP:
        _check_zip(pointer)
    else:
        _check_text(pointer, "Source")
        _check_image(pointer)
    return SkillSource(source_type, pointer, ref, normal, digest)


def _type_of(source: str) -> tuple[str, str]:
    """Returns the type of a source, and the source without the scheme ``oci://``."""
    if source.startswith(_OCI_SCHEME):
        image = source.removeprefix(_OCI_SCHEME)
        if not image:
            raise InvalidParameterValue(
                "OCI source must include an image reference after 'oci://'."
            )
        return OCI, image
    if source.startswith(_GIT_SCHEME):
        return GIT, source
    path = _parts(source, "Source").path
    if path.endswith((".git", ".git/")):
        return GIT, source
    if path.endswith(".zip"):
        return ZIP, source
    raise InvalidParameterValue(
        f"Cannot infer the source type of '{_redacted(source)}'. Pass a typed source "
        "(GitSource, OCISource, or ZipSource) or use a URL that ends in '.git' or '.zip', or "
        "starts with 'git://' or 'oci://'."
    )


def _typed(
    source: str, source_type: str, ref: str | None, subpath: str | None, digest: str | None
) -> SkillSource:
    if source_type not in _TYPES:
        raise InvalidParameterValue(
            f"Unknown 'source_type' {source_type!r}; expected one of {list(_TYPES)}."
        )
    scheme_type = _type_of_scheme(source)
    if scheme_type not in (None, source_type):
        raise InvalidParameterValue(
            f"'source_type' {source_type!r} contradicts the {scheme_type!r} scheme of 'source' "
            f"{source!r}."
        )
    if source_type != GIT and ref is not None:
        raise InvalidParameterValue("'ref' applies to git sources only.")
    normal = _checked_subpath(subpath)
    if source_type == GIT:
        _check_git(source, ref)
    elif source_type == ZIP:
        _check_zip(source)
    else:
        source = source.removeprefix(_OCI_SCHEME)
        if not source:
            raise InvalidParameterValue("OCISource image reference must not be empty.")
        _check_text(source, "OCI image reference")
        _check_image(source)
    return SkillSource(source_type, source, ref, normal, digest)


def _type_of_scheme(source: str) -> str | None:
    lowered = source.strip().lower()
    if lowered.startswith(_OCI_SCHEME):
        return OCI
    return GIT if lowered.startswith(_GIT_SCHEME) else None


def _checked_subpath(subpath: str | None) -> str | None:
    normal = normal_subpath(subpath)
    if normal is not None:
        _check_length(normal, "Subpath")
    return normal


def _check_length(text: str, noun: str) -> None:
    if len(text) > MAX_LENGTH:
        raise InvalidParameterValue(
            f"{noun} is {len(text)} characters long; the maximum is {MAX_LENGTH}."
        )


def _check_text(text: str, noun: str) -> None:
    if text.startswith("-"):
        raise InvalidParameterValue(f"{noun} must not start with '-': '{_redacted(text)}'.")
    if _UNPRINTABLE.search(text):
        raise InvalidParameterValue(f"{noun} must not contain whitespace or control characters.")
    _check_length(text, noun)


def _check_git(url: str, ref: str | None) -> None:
    _check_text(url, "Git URL")
    if "://" in url:
        parts = _parts(url, "Git URL")
        if parts.password or (parts.username and parts.scheme in ("http", "https")):
            raise InvalidParameterValue(
                "Git URL must not contain credentials; they would be stored with the skill "
                "version. Configure a credential helper and remove them from the URL."
            )
    if ref is not None:
        if not ref:
            raise InvalidParameterValue("Git ref must not be empty.")
        _check_text(ref, "Git ref")


def _check_zip(url: str) -> None:
    _check_text(url, "ZIP URL")
    parts = _parts(url, "ZIP URL")
    if parts.scheme not in ("http", "https"):
        raise InvalidParameterValue(f"ZIP source must be an http(s) URL, got '{_redacted(url)}'.")
    if parts.username or parts.password:
        raise InvalidParameterValue(
            "ZIP sources are fetched without authentication and must be publicly accessible; "
            "remove the credentials from the URL or use a Git or OCI source instead."
        )
    names = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if names & _CREDENTIAL_PARAMETERS:
        raise InvalidParameterValue(
            "ZIP sources must be publicly accessible and must not contain credentials in the query "
            "string. Remove the signed query parameters or use a Git or OCI source instead."
        )


def _redacted(text: str) -> str:
    if len(text) > MAX_LENGTH:
        return _TOO_LONG  # the patterns take quadratic time
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _parts(url: str, noun: str) -> Any:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InvalidParameterValue(f"{noun} is malformed: {error}.") from None


def _check_image(image: str) -> None:
    """Checks that a reference to an image has the form that registries accept. Raises
    InvalidParameterValue."""
    name, at, reference = image.strip().partition("@")
    head, slash, tail = name.rpartition("/")
    last, colon, tag = tail.partition(":")
    if at and not _IMAGE_DIGEST.fullmatch(reference):
        raise InvalidParameterValue(
            f"OCI image digest in '{image}' must be a sha256 digest of 64 hex characters, got "
            f"{reference!r}."
        )
    if not at:
        reference = tag if colon else "latest"
    repository = f"{head}{slash}{last}" if head else last
    if not repository:
        raise InvalidParameterValue(f"OCI image reference '{image}' has no repository.")
    first, _, rest = repository.partition("/")
    registry = _DOCKER_HUB
    if rest and ("." in first or ":" in first or first.lower() == "localhost"):
        registry, repository = first.lower(), rest
    components = repository.split("/")
    if not reference or "" in components:
        raise InvalidParameterValue(f"OCI image reference '{image}' is malformed.")
    if not _REGISTRY.fullmatch(registry):
        raise InvalidParameterValue(f"OCI image reference '{image}' has an invalid registry host.")
    for component in components:
        if not _COMPONENT.fullmatch(component):
            raise InvalidParameterValue(
                f"OCI image reference '{image}' has an invalid repository component "
                f"'{component}'; components are lowercase alphanumerics separated by '.', '_', or "
                "'-'."
            )
    if not reference.startswith("sha256:") and not _TAG.fullmatch(reference):
        raise InvalidParameterValue(
            f"OCI image reference '{image}' has an invalid tag '{reference}'."
        )
