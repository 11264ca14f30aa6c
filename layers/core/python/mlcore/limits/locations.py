"""Rules about artifact locations that a client chooses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import ParseResult, SplitResult, unquote, urlparse, urlunparse

from mlcore.errors import InvalidParameterValue

_HOST_ADDRESSED: Final = frozenset(
    ("ftp", "sftp", "hdfs", "viewfs", "http", "https", "mlflow-artifacts", "r2", "b2", "abfss")
)
_ALLOWED_SCHEMES_SETTING: Final = "MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES"
_MOST_DECODINGS: Final = 10


def check_location(location: str, field: str) -> None:
    """A storage URI: no fragment, no hidden traversal, no host of the client's choice, no run URI,
    bounded length."""
    parsed = _parse(location, field)
    if parsed.fragment or parsed.params:
        raise InvalidParameterValue(f"'{field}' URL can't include fragments or params.")
    if ".." in _decoded(parsed.query, field):
        raise InvalidParameterValue("Invalid query string")
    check_scheme(parsed, field)
    if location.startswith("runs:"):
        raise InvalidParameterValue(
            f"Artifact location cannot be a runs:/ URI. Given: '{location}'"
        )
    _check_length(location)
    _check_file_host(parsed, location)
    _check_length(resolved(location))


def _check_length(location: str) -> None:
    longest = int(os.environ.get("MLFLOW_ARTIFACT_LOCATION_MAX_LENGTH", "2048"))
    if len(location) > longest:
        raise InvalidParameterValue(
            "Invalid artifact path length. The length of the artifact path cannot be "
            f"greater than {longest} characters. To configure this limit, please set the "
            "MLFLOW_ARTIFACT_LOCATION_MAX_LENGTH environment variable."
        )


def _check_file_host(parsed: ParseResult, location: str) -> None:
    host = parsed.hostname if parsed.scheme == "file" else None
    if host and host != "." and not host.startswith(("localhost", "127.0.0.1")):
        raise InvalidParameterValue(
            f"{location} is not a valid remote uri. For remote access on windows, please consider "
            "using a different scheme such as SMB (e.g. smb://<hostname>/<path>)."
        )


def resolved(location: str) -> str:
    """A relative path, bare or as ``file:``, is one of the server's working directory, as in
    MLflow; anything else is itself."""
    parsed = urlparse(location)
    if parsed.scheme == "" and not location.startswith("/"):
        return Path.cwd().joinpath(location).as_posix()
    if parsed.scheme == "file" and not parsed.netloc and not parsed.path.startswith("/"):
        return parsed._replace(path=Path.cwd().joinpath(parsed.path).as_posix()).geturl()
    return location


def _parse(location: str, field: str) -> ParseResult:
    try:
        return urlparse(location)
    except ValueError:
        raise InvalidParameterValue(f"'{field}' is not a valid URL.") from None


def _decoded(query: str, field: str) -> str:
    """The query with every layer of percent encoding removed."""
    for _ in range(_MOST_DECODINGS):
        decoded = urlunparse(_parse(unquote(query), field))
        if decoded == query:
            return query
        query = decoded
    raise InvalidParameterValue("Invalid query string")


def check_scheme(parsed: ParseResult | SplitResult, field: str) -> None:
    """Schemes that name a host are refused unless the deployment allows them: we would connect to
    that host."""
    scheme = parsed.scheme
    if scheme not in _HOST_ADDRESSED or (scheme == "mlflow-artifacts" and not parsed.netloc):
        return
    allowed = os.environ.get(_ALLOWED_SCHEMES_SETTING, "").lower().split(",")
    if scheme in (name.strip() for name in allowed):
        return
    raise InvalidParameterValue(
        f"'{field}' cannot use the '{scheme}' scheme: the '{scheme}' scheme addresses a host other "
        "than the tracking server's configured artifact storage, so the server would connect to "
        f"the host named in the URI. Set the {_ALLOWED_SCHEMES_SETTING} environment variable on "
        "the server to allow it."
    )


def below(location: str, path: str) -> str:
    """``path`` under an artifact location, whose query string or fragment stays at the end."""
    for mark in "?#":
        head, found, tail = location.partition(mark)
        if found:
            return below(head, path) + mark + tail
    return f"{location.rstrip('/')}/{path}" if not location.endswith(":/") else f"{location}{path}"
