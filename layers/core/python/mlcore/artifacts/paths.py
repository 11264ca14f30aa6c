"""Checks file paths of requests, and maps them to keys within the workspace. Does no I/O.

A path is percent-decoded until nothing changes, as MLflow's server does, so that the checked path
is the one that is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote, urlparse, urlunparse

from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.errors import InvalidParameterValue

INTERNAL: Final = ".internal"
"""First key segment of the product's own files. Requests cannot name it."""

WORKSPACES: Final = "workspaces"
"""First key segment of the files of all workspaces except the default one."""


MAX_KEY_BYTES: Final = 1024
MAX_NAME_BYTES: Final = 255
_MAX_DECODINGS: Final = 10


def safe_path(path: str) -> str:
    """Returns the decoded path of an artifact without empty and "." segments; "" is the root.
    Applying it again changes nothing. Raises InvalidParameterValue if the path is absolute,
    contains a segment "..", "#" or a backslash, or cannot be stored."""
    for _ in range(_MAX_DECODINGS):
        clean = _clean(path)
        if clean == path:
            return clean
        path = clean  # removing a part such as ";/" may leave a text that decodes further
    raise _invalid()


def exact_path(path: str) -> str:
    """Returns the safe path of a file to write or delete, which must have exactly the requested
    name.

    API Gateway decodes request paths, possibly not all of them equally often, so a path that can
    still be decoded is ambiguous. When reading, MLflow's server takes the decoded name; writing to
    it would store a name that the caller did not give. Raises InvalidParameterValue if the path is
    unsafe (as for :func:`safe_path`), or differs from its safe form.
    """
    safe = safe_path(path)
    if safe != "/".join(segment for segment in path.split("/") if segment not in ("", ".")):
        raise InvalidParameterValue(
            "Invalid path: percent-encoded or control characters in the name of a file "
            f"would make it '{safe}'. Rename the file."
        )
    return safe


def names_file(path: str) -> bool:
    """Whether an artifact path, percent-decoded, names a file and not a directory: it is not empty
    and does not end with "/". Raises InvalidParameterValue if :func:`safe_path` refuses it."""
    return safe_path(path) != "" and not _decoded(path).endswith("/")


def join(root: str, path: str) -> str:
    """Joins a key of the file store and a safe path below it to one key."""
    return f"{root}/{path}" if root and path else root or path


def covers(root: str, key: str) -> bool:
    """Whether a key of the artifact store is ``root`` or lies below it. Every key lies below ""."""
    return not root or key == root or key.startswith(f"{root}/")


def is_kept(key: str, keep: Sequence[str]) -> bool:
    """Whether a deletion keeps a file because it is at or below one of the keys to keep."""
    return any(covers(root, key) for root in keep)


def key_in_workspace(path: str, workspace: str) -> str:
    """Returns the key in the artifact store of a safe path that a request names. Raises
    InvalidParameterValue if the path is in another workspace's folder, or in the product's own.
    Upper and lower case of the folders ``workspaces`` and the product's own are equal, because some
    file systems do not distinguish them."""
    first, _, rest = path.partition("/")
    if first.casefold() == INTERNAL:
        raise _invalid()
    if first.casefold() == WORKSPACES:
        path_workspace = rest.partition("/")[0]
        if not path_workspace:
            raise InvalidParameterValue(
                "Artifact paths prefixed with 'workspaces/' must include a workspace name."
            )
        if path_workspace != workspace:
            raise InvalidParameterValue(
                f"Artifact path targets workspace '{path_workspace}' "
                f"but the workspace specified in the request is '{workspace}'."
            )
        return f"{WORKSPACES}/{rest}"
    if workspace == DEFAULT_WORKSPACE:
        return path
    return join(f"{WORKSPACES}/{workspace}", path)


def is_hidden(key: str, name: str) -> bool:
    """Whether a list of the artifact folder ``key`` omits a name, because that file or folder
    belongs to another workspace or to the product."""
    return key == "" and name.casefold() in (INTERNAL, WORKSPACES)


def _clean(path: str) -> str:
    decoded = _decoded(path)
    if (
        "\\" in decoded
        or "#" in decoded
        or decoded.startswith("/")
        or decoded[:5].lower() == "file:"
        or (decoded[1:3] == ":/" and decoded[0].isalpha())
    ):
        raise _invalid()
    segments = [
        segment for segment in _escape_controls(decoded).split("/") if segment not in ("", ".")
    ]
    if ".." in segments:
        raise _invalid()
    clean = "/".join(segments)
    try:
        if len(clean.encode()) > MAX_KEY_BYTES or any(
            len(segment.encode()) > MAX_NAME_BYTES for segment in segments
        ):
            raise InvalidParameterValue(
                f"Invalid path: a path has at most {MAX_KEY_BYTES} bytes, "
                f"each name in it at most {MAX_NAME_BYTES}."
            )
    except UnicodeEncodeError:
        raise _invalid() from None
    return clean


def _decoded(path: str) -> str:
    for _ in range(_MAX_DECODINGS):
        try:
            text = unquote(path)
            decoded = urlunparse(urlparse(text))
        except ValueError:
            raise _invalid() from None
        if "\x00" in text:  # urlparse would strip it, like line ends
            raise _invalid()
        if decoded == path:
            return path
        path = decoded
    raise _invalid()


def _escape_controls(path: str) -> str:
    return "".join(f"%{ord(c):02x}" if ord(c) < 32 or ord(c) == 127 else c for c in path)


def _invalid() -> InvalidParameterValue:
    return InvalidParameterValue("Invalid path")
