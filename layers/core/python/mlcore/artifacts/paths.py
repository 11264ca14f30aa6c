"""Which paths of files a request may name, and where they lie for its workspace; touches no file.

A path is decoded until nothing is left to decode, as MLflow's server does, so that what is checked
is what is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote, urlparse, urlunparse

from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.errors import InvalidParameterValue

INTERNAL: Final = ".internal"
"""First segment of what the product itself keeps in the store; no request can name it."""

WORKSPACES: Final = "workspaces"
"""First segment of the files of all workspaces but the default one."""


MAX_KEY_BYTES: Final = 1024
MAX_NAME_BYTES: Final = 255
_MOST_DECODINGS: Final = 10


def safe_path(path: str) -> str:
    """The path without empty and "." segments; "" is the root. A safe path stays as it is.

    Raises:
        InvalidParameterValue: it leads elsewhere, is absolute, or no store can keep it.
    """
    for _ in range(_MOST_DECODINGS):
        clean = _clean(path)
        if clean == path:
            return clean
        path = clean  # less to decode, as in ";/", may leave more to decode
    raise _invalid()


def exact_path(path: str) -> str:
    """The safe path of what a request writes or removes: that very name, or none.

    API Gateway decodes the paths of requests, perhaps not all of them as often; a path in which
    there is still something to decode may mean one file or another. Reading the other one is what
    MLflow's server does; writing to it would store a name that nobody gave.

    Raises:
        InvalidParameterValue: as :func:`safe_path`; or the safe path is another one.
    """
    safe = safe_path(path)
    if safe != "/".join(segment for segment in path.split("/") if segment not in ("", ".")):
        raise InvalidParameterValue(
            "Invalid path: percent-encoded or control characters in the name of a file "
            f"would make it '{safe}'. Rename the file."
        )
    return safe


def names_file(path: str) -> bool:
    """Whether a path that a request gave ends with a name, once nothing is left to decode. Raises
    InvalidParameterValue."""
    return safe_path(path) != "" and not _decoded(path).endswith("/")


def below(root: str, path: str) -> str:
    """The key of a safe path below a key."""
    return f"{root}/{path}" if root and path else root or path


def covers(root: str, key: str) -> bool:
    """Whether a key is another or below it; "" has all below it."""
    return not root or key == root or key.startswith(f"{root}/")


def is_kept(key: str, keep: Sequence[str]) -> bool:
    """Whether a removal leaves a file, for it lies below one of the keys that are to stay."""
    return any(covers(root, key) for root in keep)


def scoped(path: str, workspace: str) -> str:
    """The key of a safe path that a request names from the root of the store.

    Raises:
        InvalidParameterValue: it is another workspace's, or the product's own.
    """
    first, _, rest = path.partition("/")
    if first == INTERNAL:
        raise _invalid()
    if first == WORKSPACES:
        named = rest.partition("/")[0]
        if not named:
            raise InvalidParameterValue(
                "Artifact paths prefixed with 'workspaces/' must include a workspace name."
            )
        if named != workspace:
            raise InvalidParameterValue(
                f"Artifact path targets workspace '{named}' "
                f"but the workspace specified in the request is '{workspace}'."
            )
        return path
    if workspace == DEFAULT_WORKSPACE:
        return path
    return below(f"{WORKSPACES}/{workspace}", path)


def is_hidden(key: str, name: str) -> bool:
    """Whether a listing of a key leaves a name out, because it is not the workspace's."""
    return key == "" and name in (INTERNAL, WORKSPACES)


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
    segments = [segment for segment in _escaped(decoded).split("/") if segment not in ("", ".")]
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
    for _ in range(_MOST_DECODINGS):
        try:
            text = unquote(path)
            decoded = urlunparse(urlparse(text))
        except ValueError:
            raise _invalid() from None
        if "\x00" in text:  # which urlparse strips, like line ends
            raise _invalid()
        if decoded == path:
            return path
        path = decoded
    raise _invalid()


def _escaped(path: str) -> str:
    return "".join(f"%{ord(c):02x}" if ord(c) < 32 or ord(c) == 127 else c for c in path)


def _invalid() -> InvalidParameterValue:
    return InvalidParameterValue("Invalid path")
