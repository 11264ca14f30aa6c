"""Rules about where a model version comes from: no path into the server, and nothing that the
request does not own."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import ParseResult, unquote, unquote_plus, urlparse, urlsplit
from urllib.request import url2pathname

from mlcore.errors import InvalidParameterValue
from mlcore.limits.locations import check_scheme

PROMPT_SOURCES: Final = frozenset(("dummy-source", "prompt-template"))
"""What stands for the source of a prompt, which has none."""

_PATTERN_SETTING: Final = "MLFLOW_CREATE_MODEL_VERSION_SOURCE_VALIDATION_REGEX"
_PROXY_ROUTE: Final = ("api", "2.0", "mlflow-artifacts", "artifacts")


class ModelUri(NamedTuple):
    """A ``models:/`` URI: a logged model's id, or a name with at most one of the others."""

    model_id: str | None = None
    name: str = ""
    version: str | None = None
    stage: str | None = None
    alias: str | None = None


def check_source(source: str, *, is_prompt: bool) -> None:
    """What is refused before anything is looked up."""
    pattern = os.environ.get(_PATTERN_SETTING)
    if pattern and not re.search(pattern, source):
        raise InvalidParameterValue(f"Invalid model version source: '{source}'.")
    if is_prompt and source not in PROMPT_SOURCES:
        raise InvalidParameterValue(
            f"Invalid prompt source: '{source}'. Prompt sources must use an MLflow placeholder."
        )
    check_scheme(_parsed(source), "source")


def is_model_uri(source: str) -> bool:
    return _parsed(source).scheme == "models"


def model_uri(source: str) -> ModelUri:
    """Raises InvalidParameterValue if it is no proper ``models:/`` URI."""
    parsed = urlparse(source, allow_fragments=False)
    parts = parsed.path.lstrip("/").split("/")
    if parsed.path.startswith("/") and len(parts) <= 2 and parts[0].strip():
        if len(parts) == 2 and parts[1].strip():
            name, suffix = parts
            if suffix.isdigit():
                return ModelUri(name=name, version=suffix)
            if suffix.lower() == "latest":
                return ModelUri(name=name)
            return ModelUri(name=name, stage=suffix)
        if len(parts) == 1:
            name, at, alias = parts[0].rpartition("@")
            if not at:
                return ModelUri(model_id=alias)
            if alias.strip():
                return ModelUri(name=name, alias=alias)
    raise not_owned(source, "model_id")


def check_registry(source: str) -> None:
    """A ``models:`` URI names no other registry."""
    if _parsed(source).netloc:
        raise InvalidParameterValue(
            f"Invalid model version source: '{source}'. Registered model sources must use the "
            "active model registry."
        )


def is_local(source: str) -> bool:
    """Whether the source is a path of the machine that asks, or of ours."""
    parsed = _parsed(source)
    if parsed.scheme == "":
        return True
    host = parsed.hostname
    if parsed.scheme == "file":
        if host and host != "." and not host.startswith(("localhost", "127.0.0.1")):
            raise InvalidParameterValue(
                f"{source} is not a valid remote uri. For remote access on windows, please "
                "consider using a different scheme such as SMB (e.g. smb://<hostname>/<path>)."
            )
        return True
    return False


def is_inside_directory(source: str, root: str) -> bool:
    """Whether a local source is a local root or below it, symbolic links resolved."""
    return is_local(root) and _path(root) in (_path(source), *_path(source).parents)


def local_refused(source: str, parameter: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"Invalid model version source: '{source}'. To use a local path as a model version "
        f"source, the {parameter} request parameter has to be specified and the local path has to "
        f"be contained within the artifact directory of the run specified by the {parameter}."
    )


def not_owned(source: str, parameter: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"Invalid model version source: '{source}'. The {parameter} request parameter must "
        "identify the resource that contains the source."
    )


def check_absolute(source: str) -> None:
    """No relative part anywhere in a source that is no local path, however it is encoded."""
    decoded = source
    while (once_more := unquote_plus(decoded)) != decoded:
        decoded = once_more
    path = re.sub(r"/+", "/", _parsed(decoded).path.rstrip("/"))
    traversal = "\0" in path or ".." in decoded.split("/")
    if traversal or not path.startswith("/") or posixpath.normpath(path) != path:
        raise InvalidParameterValue(
            f"Invalid model version source: '{source}'. If supplying a source as an http, https, "
            "local file path, ftp, objectstore, or mlflow-artifacts uri, an absolute path must be "
            "provided without relative path references present. "
            "Please provide an absolute path."
        )


def run_of(source: str) -> str | None:
    """The run that a ``runs:/`` source names; None if the source is another. Raises
    InvalidParameterValue."""
    parsed = _parsed(source)
    if parsed.scheme != "runs":
        return None
    if parsed.netloc:
        raise not_owned(source, "run_id")
    run_id = parsed.path[1:].split("/")[0] if parsed.path.startswith("/") else ""
    if not run_id:
        raise InvalidParameterValue(
            f"Not a proper runs:/ URI: {source}. Runs URIs must be of the form "
            "'runs:/<run_id>/run-relative/path/to/artifact'"
        )
    return run_id


def is_proxied(source: str) -> bool:
    """Whether the source is behind an artifact proxy of MLflow's."""
    scheme, _, parts = _normalized(source)
    return scheme == "mlflow-artifacts" or (
        scheme in ("http", "https")
        and any(parts[at : at + 4] == _PROXY_ROUTE for at in range(len(parts) - 3))
    )


def is_below(source: str, root: str) -> bool:
    """Whether a URI is another or below it."""
    scheme, host, parts = _normalized(source)
    root_scheme, root_host, root_parts = _normalized(root)
    return (
        (scheme, host) == (root_scheme, root_host)
        and bool(root_parts)
        and parts[: len(root_parts)] == root_parts
    )


def _normalized(uri: str) -> tuple[str, str, tuple[str, ...]]:
    parsed = urlsplit(uri)
    parts = [_unquoted(part) for part in parsed.path.split("/") if part]
    return parsed.scheme.lower(), parsed.netloc.lower(), tuple(parts)


def _unquoted(text: str) -> str:
    while (once_more := unquote(text)) != text:
        text = once_more
    return text


def _path(source: str) -> Path:
    path = urlparse(source).path if source.startswith("file:") else source
    return Path(url2pathname(path)).resolve()


def _parsed(source: str) -> ParseResult:
    try:
        return urlparse(source)
    except ValueError:
        raise InvalidParameterValue(f"Invalid model version source: '{source}'.") from None
