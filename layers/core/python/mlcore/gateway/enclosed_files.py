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
"""Names of members, in lower case, without ``_`` and ``-``, whose Base64 is a text to the model,
also in a data URL."""
_ALSO_TEXTS: Final = frozenset(
    ("arguments", "input", "instructions", "output", "prompt", "query", "system", "texts")
)
"""Further ones, which may have data URLs of files."""
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
_TEXT_MEDIA: Final = "text/"
_STATE: Final = frozenset(("redactedcontent", "signature", "thoughtsignature", "thoughtsignatures"))
"""Names of members in which a provider gets back what only it can read."""
_ENCRYPTED: Final = "encrypted"
"""How further such names begin."""
_STATE_TYPES: Final = frozenset(("reasoning.encrypted", "redacted_thinking"))
"""Types of objects whose ``data`` is state."""
_BLOCKS: Final = frozenset(("content", "parts", "toolcalls"))
"""Lists whose items are parts of a message."""
_ARGUMENTS: Final = frozenset(
    (
        *(("function", "arguments"), ("functioncall", "args"), ("tooluse", "input")),
        ("functionresponse", "response"),
    )
)
"""Members that hold arguments or a result of a tool, in an object of that name in such a part."""
_RESULT: Final = ("toolresult", "content", "json")
"""Where a part has a result in Bedrock's form."""
_LONG: Final = 256
"""Base64 of this length is a file in a member of any other name."""
_SHORT: Final = 100
"""Shorter Base64 may be a word or a number: it is searched as a text, too."""
_HEX: Final = re.compile(r"[0-9a-fA-F=\s]*")
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
    """Characters of Base64 without ends of lines; 0 if it has other white space, and so perhaps
    words."""
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

    __slots__ = ("_media_types", "is_item", "kind", "members", "name", "parent")

    def __init__(
        self,
        members: Mapping[str, Any],
        name: str = "",
        parent: Holder | None = None,
        *,
        is_item: bool = False,
    ) -> None:
        """
        Args:
            name: that of the parent's member that is the object, or has it in a list.
            parent: None for what holds the whole request.
            is_item: whether the object is in a list.
        """
        kind = members.get("type")
        self.members = members
        self.name = _plain(name)
        self.parent = parent
        self.is_item = is_item
        self.kind = kind if isinstance(kind, str) else ""
        """What the object says of its type; in a schema, types are also lists and objects."""
        self._media_types: list[Any] | None = None

    @property
    def is_block(self) -> bool:
        """Whether the object is a part of a message."""
        return self.is_item and self.name in _BLOCKS

    @property
    def media_types(self) -> list[Any]:
        """What the object says of the type of its file."""
        if self._media_types is None:
            self._media_types = [
                value for name, value in self.members.items() if _plain(name) in _TYPES
            ]
        return self._media_types

    @property
    def is_text(self) -> bool:
        """Whether the object says that its ``data`` is a text."""
        return self.kind == _TEXT and all(
            isinstance(kind, str) and kind.startswith(_TEXT_MEDIA) for kind in self.media_types
        )


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
    if _is_of_state(name, holder):
        return _state(value)
    if (holder.name, name) in _HELD or name in _BASE64:
        return _file("", "", value)
    if name == _DATA and (holder.media_types or holder.is_text):
        return None if holder.is_text else _file("", "", value)
    if name in _ALSO_TEXTS or len(value) < _LONG or not _is_mixed(value):
        return None
    file = _file("", "", value)
    return file if file is not None and file.length >= _LONG else None


def is_arguments(member: str, holder: Holder) -> bool:
    """Whether a member has the arguments or the result of a tool, which hold no files. It has only
    in a part of a message: elsewhere providers may read something else in it."""
    parent = holder.parent
    if parent is None or parent.parent is None:  # the request itself
        return False
    if holder.kind in CALL_TYPES and member == "input":
        return holder.is_block
    if (parent.name, holder.name, member) == _RESULT:
        return holder.is_item and parent.parent.is_block
    return (holder.name, member) in _ARGUMENTS and not holder.is_item and parent.is_block


def _is_of_state(name: str, holder: Holder) -> bool:
    return (
        name in _STATE
        or name.startswith(_ENCRYPTED)
        or (name == _DATA and holder.kind in _STATE_TYPES)
    )


def _state(value: str) -> File | None:
    """Returns what only the provider reads, or a text in Base64; None for another text, such as a
    short mark, a digest in hexadecimal or a number."""
    file = _file("", "", value)
    if file is None or text_of(file.content) is not None:
        return file
    return file._replace(is_state=True) if file.length >= _SHORT and _is_mixed(value) else None


def _is_mixed(text: str) -> bool:
    """Whether a text has letters of both cases, as Base64 has, and is no hexadecimal number."""
    return text not in (text.lower(), text.upper()) and _HEX.fullmatch(text) is None


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
    lines = data.strip().replace("\r\n", "").replace("\n", "")
    compact = "".join(lines.split())
    if not compact or not compact.isascii():
        return None
    padded = compact.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    try:
        content = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return File(head, kind, content, len(compact) if len(compact) == len(lines) else 0)


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
