"""Rules about the ``source`` of a model version, the URI of its files. A path on the server's disk,
a URI behind an artifact proxy, and the URI of a run or logged model must belong to the run or
logged model that the request names."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, unquote_plus, urlparse, urlsplit
from urllib.request import url2pathname

from mlcore.errors import InvalidParameterValue
from mlcore.limits.artifact_locations import check_scheme

PROMPT_SOURCES: Final = frozenset(("dummy-source", "prompt-template"))
"""Placeholders that MLflow's clients send as the source of a prompt."""

_PATTERN_SETTING: Final = "MLFLOW_CREATE_MODEL_VERSION_SOURCE_VALIDATION_REGEX"
_MOST_ENCODINGS: Final = 16
_MOST_PATH_CHARACTERS: Final = 4_096
"""Operating systems open no longer paths."""
_PROXY_ROUTE: Final = ("api", "2.0", "mlflow-artifacts", "artifacts")


class ModelUri(NamedTuple):
    """The parts of a ``models:/`` URI: a logged model's id, or a name with at most one of version,
    stage and alias."""

    model_id: str | None = None
    name: str = ""
    version: str | None = None
    stage: str | None = None
    alias: str | None = None


class ParsedSource(NamedTuple):
    """A parsed source of a model version: a URI or path of a request or of a stored version.
    ``model`` is set for a well-formed ``models:/`` URI."""

    uri: str
    parts: SplitResult
    """Fragments stay in the path or query, since names of models may contain ``#``."""
    model: ModelUri | None
    """The parts of a well-formed ``models:/`` URI."""

    @property
    def is_model_uri(self) -> bool:
        """Whether the model version's source begins with ``models:``; the URI may be malformed."""
        return self.parts.scheme == "models"

    @property
    def path(self) -> str:
        """The path component of the source (a URI or a path) of a model version, without a
        fragment."""
        return self.parts.path.partition("#")[0]


def parse(uri: str) -> ParsedSource:
    """Parses a model version's source (URI or path). Raises InvalidParameterValue for a malformed
    one."""
    try:
        parts = urlsplit(uri, allow_fragments=False)
    except ValueError:
        raise InvalidParameterValue(f"Invalid model version source: '{uri}'.") from None
    return ParsedSource(
        uri, parts, _model_uri_of_path(parts.path) if parts.scheme == "models" else None
    )


def check_source(uri: str, *, is_prompt: bool) -> ParsedSource:
    """Parses the source of a model version and checks it by the rules that need no stored data.
    Raises InvalidParameterValue."""
    pattern = os.environ.get(_PATTERN_SETTING)
    if pattern and not re.search(pattern, uri):
        raise InvalidParameterValue(f"Invalid model version source: '{uri}'.")
    if is_prompt and uri not in PROMPT_SOURCES:
        raise InvalidParameterValue(
            f"Invalid prompt source: '{uri}'. Prompt sources must use an MLflow placeholder."
        )
    source = parse(uri)
    check_scheme(source.parts, "source")
    return source


def model_of(source: ParsedSource) -> ModelUri | None:
    """Returns the logged model or model version that a ``models:/`` source names; None for other
    sources. Raises InvalidParameterValue if the URI is malformed."""
    if source.is_model_uri and source.model is None:
        raise not_owned(source, "model_id")
    return source.model


def _model_uri_of_path(path: str) -> ModelUri | None:
    parts = path.lstrip("/").split("/")
    if path.startswith("/") and len(parts) <= 2 and parts[0].strip():
        if len(parts) == 2 and parts[1].strip():
            name, suffix = parts
            if suffix.isdigit():
                return ModelUri(name=name, version=suffix)
            if suffix.lower() == "latest":
                return ModelUri(name=name)
            return ModelUri(name=name, stage=suffix)
        if len(parts) == 1:
            name, separator, alias = parts[0].rpartition("@")
            if not separator:
                return ModelUri(model_id=alias)
            if alias.strip():
                return ModelUri(name=name, alias=alias)
    return None


def check_registry(source: ParsedSource) -> None:
    """Checks that a ``models:`` URI names a model of this registry. Raises InvalidParameterValue if
    it names another registry."""
    if source.is_model_uri and source.parts.netloc:
        raise InvalidParameterValue(
            f"Invalid model version source: '{source.uri}'. Registered model sources must use the "
            "active model registry."
        )


def is_local(source: ParsedSource) -> bool:
    """Whether the source of a model version is a path on the client's or on the server's machine.
    Raises InvalidParameterValue if a ``file:`` URI names another host."""
    if source.parts.scheme == "":
        return True
    host = source.parts.hostname
    if source.parts.scheme == "file":
        if host and host != "." and not host.startswith(("localhost", "127.0.0.1")):
            raise InvalidParameterValue(
                f"{source.uri} is not a valid remote uri. For remote access on windows, please "
                "consider using a different scheme such as SMB (e.g. smb://<hostname>/<path>)."
            )
        return True
    return False


def is_inside_directory(source: ParsedSource, root: str) -> bool:
    """Whether a model version's local source is ``root`` or lies below it; false if ``root`` is not
    local. Symbolic links are resolved."""
    directory = parse(root)
    if not is_local(directory) or len(source.uri) > _MOST_PATH_CHARACTERS:
        return False
    try:
        return _path(source).is_relative_to(_path(directory))
    except ValueError:  # a path with the character NUL
        return False


def local_refused(source: ParsedSource, parameter: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"Invalid model version source: '{source.uri}'. To use a local path as a model version "
        f"source, the {parameter} request parameter has to be specified and the local path has to "
        f"be contained within the artifact directory of the run specified by the {parameter}."
    )


def not_owned(source: ParsedSource, parameter: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"Invalid model version source: '{source.uri}'. The {parameter} request parameter must "
        "identify the resource that contains the source."
    )


def check_absolute(source: ParsedSource) -> None:
    """Checks a model version's source, which must not be a local path: its URI must have an
    absolute path without ``..``, however often that is percent-encoded. Raises
    InvalidParameterValue otherwise."""
    decoded = _fully_decoded(source.uri, unquote_plus)
    try:
        # The decoded text is a new URI, in which ``;`` may end the path.
        path = re.sub(r"/+", "/", urlparse(decoded).path.rstrip("/"))
    except ValueError:
        raise InvalidParameterValue(f"Invalid model version source: '{decoded}'.") from None
    traversal = "\0" in path or ".." in decoded.split("/")
    if traversal or not path.startswith("/") or posixpath.normpath(path) != path:
        raise InvalidParameterValue(
            f"Invalid model version source: '{source.uri}'. If supplying a source as an http, "
            "https, local file path, ftp, objectstore, or mlflow-artifacts uri, an absolute path "
            "must be provided without relative path references present. "
            "Please provide an absolute path."
        )


def run_of(source: ParsedSource) -> str | None:
    """Returns the id of the run that a model version's ``runs:/`` source names; None for other
    sources. Raises InvalidParameterValue if the URI is malformed."""
    if source.parts.scheme != "runs":
        return None
    if source.parts.netloc:
        raise not_owned(source, "run_id")
    run_id = source.path[1:].split("/")[0] if source.path.startswith("/") else ""
    if not run_id:
        raise InvalidParameterValue(
            f"Not a proper runs:/ URI: {source.uri}. Runs URIs must be of the form "
            "'runs:/<run_id>/run-relative/path/to/artifact'"
        )
    return run_id


def is_proxied(source: ParsedSource) -> bool:
    """Whether the source of a model version is behind the artifact proxy of an MLflow server."""
    scheme, _, parts = _normalized(source)
    return scheme == "mlflow-artifacts" or (
        scheme in ("http", "https")
        and any(parts[index : index + 4] == _PROXY_ROUTE for index in range(len(parts) - 3))
    )


def is_below(source: ParsedSource, root: str) -> bool:
    """Whether a URI is ``root`` or lies below it, compared by decoded path segments."""
    scheme, host, parts = _normalized(source)
    root_scheme, root_host, root_parts = _normalized(parse(root))
    return (
        (scheme, host) == (root_scheme, root_host)
        and bool(root_parts)
        and parts[: len(root_parts)] == root_parts
    )


def _normalized(source: ParsedSource) -> tuple[str, str, tuple[str, ...]]:
    parts = [_fully_decoded(part, unquote) for part in source.path.split("/") if part]
    return source.parts.scheme.lower(), source.parts.netloc.lower(), tuple(parts)


def _fully_decoded(text: str, decode: Callable[[str], str]) -> str:
    """Percent-decodes a text until this changes nothing. Raises InvalidParameterValue for a text
    that is encoded more than :data:`_MOST_ENCODINGS` times: ``%252525…`` of a megabyte would take
    hours."""
    for _ in range(_MOST_ENCODINGS):
        decoded = decode(text)
        if decoded == text:
            return text
        text = decoded
    raise InvalidParameterValue(
        f"Invalid model version source: it is percent-encoded more than {_MOST_ENCODINGS} times."
    )


def _path(source: ParsedSource) -> Path:
    path = source.path if source.uri.startswith("file:") else source.uri
    return Path(url2pathname(path)).resolve()
