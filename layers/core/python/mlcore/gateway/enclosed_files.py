"""Files inside of requests to providers: Base64 where the forms of providers have it, such as the
data URL of a picture. Also lists of tokens, which are texts that nobody can search."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_DATA_URL: Final = re.compile(r"(data:([^,]{0,250});base64,)(.*)", re.DOTALL | re.IGNORECASE)
_URLS: Final = frozenset(
    (
        *("audio", "audiourl", "data", "file", "filedata", "fileurl", "fileuri", "image"),
        *("imageurl", "inputaudio", "uri", "url", "video", "videourl"),
    )
)
"""Names of members that may hold a data URL, in lower case, without ``_`` and ``-``. A data URL in
another member, such as ``text``, is a text that the model reads."""
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
    is_compact: bool
    """Whether the Base64 has no white space, and so no words."""


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


def file_in(member: str, value: str, siblings: Mapping[str, Any], holder: str) -> File | None:
    """Returns the file that a member of a request holds; None if it holds a text.

    Args:
        siblings: the object that has the member.
        holder: the name of the member that is this object.
    """
    name = _plain(member)
    url = _DATA_URL.fullmatch(value) if name in _URLS else None
    if url is not None:
        return _file(url[1], url[2], url[3])
    names = {_plain(key) for key in siblings}
    is_typed = name == _DATA and not names.isdisjoint(_TYPES) and siblings.get("type") != _TEXT
    is_held = (_plain(holder), name) in _HELD
    return _file("", "", value) if is_typed or is_held or name in _BASE64 else None


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
    if not compact:
        return None
    padded = compact.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    try:
        content = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return File(head, kind, content, len(compact) == len(data))


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
