"""Files inside of requests to providers: Base64 where the forms of providers have it, such as the
data URL of a picture. Also lists of tokens, which are texts that nobody can search."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.providers.anthropic_requests import CALL_TYPES

_DATA_URL: Final = re.compile(r"(\s*data:([^,]*);base64,)(.*)", re.DOTALL | re.IGNORECASE)
_OF_TEXTS: Final = frozenset(("content", "inputtext", "text"))
"""Names of members, in lower case, without ``_`` and ``-``, whose Base64 is a text to the model."""
_BASE64: Final = frozenset(("bytesbase64encoded", "filedata", "b64json"))
"""Names of members that hold Base64."""
_DATA: Final = "data"
"""Holds Base64 beside a member that names the type of the file."""
_TYPES: Final = frozenset(("mediatype", "mimetype"))
_HELD: Final = frozenset((("source", "bytes"), ("inputaudio", "data"), ("invokemodel", "body")))
"""Members that hold Base64 in an object of that name: Bedrock's files, OpenAI's sound, and the
request whose tokens Bedrock counts."""
_TEXT: Final = "text"
"""The type of a document whose ``data`` is a text, in Anthropic's form."""
_STATE: Final = frozenset(("encryptedcontent", "redactedcontent", "signature", "thoughtsignature"))
"""Names of members in which a provider gets back what only it can read."""
_STATE_TYPE: Final = "redacted_thinking"
_CALL_HOLDERS: Final = frozenset(("functioncall", "tooluse"))
_ARGUMENTS: Final = frozenset(("args", "input"))
_LONG: Final = 256
"""Base64 of this length is a file in a member of any other name."""
_SHORT: Final = 100
"""Shorter Base64 may be a word or a number: it is searched as a text, too."""
_HEADERS: Final = (
    *(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"ID3", b"\xff\xf1", b"\xff\xf3"),
    *(b"\xff\xf9", b"\xff\xfb", b"OggS", b"fLaC", b"PK\x03\x04", b"BM", b"II*\0", b"MM\0*"),
    *(b"\x1aE\xdf\xa3", b"\xd0\xcf\x11\xe0"),
)
"""How pictures, sound, films and documents begin."""
_FILM: Final = b"ftyp"
"""Stands after four bytes."""
_TOKENS: Final = ("input", "prompt")
"""Members of a request that may be tokens, also of one in a line of a batch."""
_IN_BATCH: Final = "body"
_NO_TEXT: Final = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
"""Control characters that no text file has, but texts in UTF-16."""


class File(NamedTuple):
    """A file in a member of a request."""

    head: str
    """What stands before the Base64: the beginning of a data URL, or nothing."""
    kind: str
    """What the data URL says of the type."""
    content: bytes
    length: int
    """Characters of Base64; 0 if it has white space, and so perhaps words."""
    is_state: bool = False
    """Whether it is of the provider's, which only the provider can read."""

    @property
    def is_known(self) -> bool:
        """Whether it is surely no text."""
        if self.is_state:
            return self.length >= _SHORT
        is_media = self.content.startswith(_HEADERS) or self.content[4:8] == _FILM
        return is_media and self.length >= _SHORT


class Holder:
    """An object in a request."""

    __slots__ = ("_is_typed", "kind", "members", "name")

    def __init__(self, members: Mapping[str, Any], name: str) -> None:
        """
        Args:
            name: that of the member that is the object, or has it in a list.
        """
        kind = members.get("type")
        self.members = members
        self.name = _plain(name)
        self.kind = kind if isinstance(kind, str) else ""
        """What the object says of its type; in a schema, types are also lists and objects."""
        self._is_typed: bool | None = None

    @property
    def is_typed(self) -> bool:
        """Whether the object names the type of a file."""
        if self._is_typed is None:
            self._is_typed = any(_plain(name) in _TYPES for name in self.members)
        return self._is_typed


class Unsearched:
    """Stands for a file that is sent as it is while its request is searched."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __str__(self) -> str:
        """Returns what rules search: nothing."""
        return ""


def text_of(content: bytes) -> str | None:
    """Returns the text of a file in UTF-8; None if it is none."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if _NO_TEXT.search(text) else text


def file_in(member: str, value: str, holder: Holder) -> File | None:
    """Returns the file that a member of an object holds; None if it holds a text."""
    name = _plain(member)
    if name in _OF_TEXTS:
        return None
    url = _DATA_URL.fullmatch(value)
    if url is not None:
        return _file(url[1], url[2], url[3])
    if name in _STATE or (name == _DATA and holder.kind == _STATE_TYPE):
        state = _file("", "", value)
        return state and state._replace(is_state=True)
    is_typed = name == _DATA and holder.kind != _TEXT and holder.is_typed
    if is_typed or (holder.name, name) in _HELD or name in _BASE64:
        return _file("", "", value)
    file = _file("", "", value) if len(value) >= _LONG else None
    is_text = file is None or not file.length or text_of(file.content) is not None
    return None if is_text else file


def is_arguments(member: str, holder: Holder) -> bool:
    """Whether a member has the arguments of a tool, which hold no files."""
    return member in _ARGUMENTS and (holder.kind in CALL_TYPES or holder.name in _CALL_HOLDERS)


def encoded(file: File, content: bytes) -> str:
    """Returns the value of a member whose file has another content."""
    return file.head + base64.b64encode(content).decode()


def has_tokens(request: Mapping[str, Any]) -> bool:
    """Whether a request, or one in a line of a batch, has texts as numbers of tokens."""
    requests = (request, request.get(_IN_BATCH))
    return any(
        _is_number(item) or (isinstance(item, list) and any(map(_is_number, item)))
        for holder in requests
        if isinstance(holder, dict)
        for name, value in holder.items()
        if name.lower() in _TOKENS and isinstance(value, list)
        for item in value
    )


def _file(head: str, kind: str, data: str) -> File | None:
    compact = "".join(data.split())
    if not compact or not compact.isascii():
        return None
    padded = compact.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    try:
        content = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return File(head, kind, content, len(data) if len(compact) == len(data) else 0)


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
