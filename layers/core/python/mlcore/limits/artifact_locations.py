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
_MAX_DECODINGS: Final = 10


def check_location(location: str, field: str) -> None:
    """Checks a storage URI that a client chose: no fragment, no ``..`` in its query even if
    percent-encoded, no host of the client's choice, no ``runs:`` URI, bounded length. Raises
    InvalidParameterValue.

    Args:
        field: the request's field, for the messages.
    """
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
    _check_length(make_absolute(location))


def _check_length(location: str) -> None:
    limit = int(os.environ.get("MLFLOW_ARTIFACT_LOCATION_MAX_LENGTH", "2048"))
    if len(location) > limit:
        raise InvalidParameterValue(
            "Invalid artifact path length. The length of the artifact path cannot be "
            f"greater than {limit} characters. To configure this limit, please set the "
            "MLFLOW_ARTIFACT_LOCATION_MAX_LENGTH environment variable."
        )


def _check_file_host(parsed: ParseResult, location: str) -> None:
    host = parsed.hostname if parsed.scheme == "file" else None
    if host and host != "." and not host.startswith(("localhost", "127.0.0.1")):
        raise InvalidParameterValue(
            f"{location} is not a valid remote uri. For remote access on windows, please consider "
            "using a different scheme such as SMB (e.g. smb://<hostname>/<path>)."
        )


def make_absolute(location: str) -> str:
    """Returns an artifact location with its path, if that is relative, made absolute by the
    server's working directory, as MLflow does. Locations with another scheme than ``file:`` are
    returned unchanged."""
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
    """Removes all layers of percent encoding from a query and returns it. Raises
    InvalidParameterValue if there are too many."""
    for _ in range(_MAX_DECODINGS):
        decoded = urlunparse(_parse(unquote(query), field))
        if decoded == query:
            return query
        query = decoded
    raise InvalidParameterValue("Invalid query string")


def check_scheme(parsed: ParseResult | SplitResult, field: str) -> None:
    """Refuses a URI of files whose scheme addresses a host, such as ``http``, unless the deployment
    allows it: the server would connect to that host. Raises InvalidParameterValue."""
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


def join(location: str, path: str) -> str:
    """Appends ``path`` to an artifact location, before its query string or fragment."""
    for mark in "?#":
        head, separator, tail = location.partition(mark)
        if separator:
            return join(head, path) + mark + tail
    return f"{location.rstrip('/')}/{path}" if not location.endswith(":/") else f"{location}{path}"
