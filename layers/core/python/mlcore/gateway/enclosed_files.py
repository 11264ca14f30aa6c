"""Finds files in the JSON of requests to model providers: Base64 in the members where providers'
APIs expect it, such as the data URL of a picture. Also finds texts that are sent as lists of token
numbers, in which no redaction rule can search."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.providers.anthropic_requests import CALL_TYPES

_DATA_URL: Final = re.compile(r"(\s*data:([^,]*);base64,)(.*)", re.DOTALL | re.IGNORECASE)
_OF_TEXTS: Final = frozenset(("content", "inputtext", "text"))
"""Names of members (in lower case, without ``_`` and ``-``, as all names here) that models read as
text, even if the text is Base64 or a data URL."""
_ALSO_TEXTS: Final = frozenset(
    ("arguments", "input", "instructions", "output", "prompt", "query", "system", "texts")
)
"""Further names of members with texts; in these a data URL is a file."""
_BASE64: Final = frozenset(("bytesbase64encoded", "filedata", "b64json"))
"""Names of members that always hold a file in Base64."""
_DATA: Final = "data"
"""Name of the member that holds a file in Base64, if another member names the file's type."""
_TYPES: Final = frozenset(("mediatype", "mimetype"))
_HELD: Final = frozenset((("source", "bytes"), ("inputaudio", "data"), ("invokemodel", "body")))
"""Pairs (name of an object, name of its member that holds Base64): Bedrock's files, OpenAI's sound,
and the request whose tokens Bedrock counts."""
_TEXT: Final = "text"
"""The type of a document whose ``data`` is a text, in Anthropic's form."""
_TEXT_MEDIA: Final = "text/"
_STATE: Final = frozenset(("redactedcontent", "signature", "thoughtsignature", "thoughtsignatures"))
"""Names of members with *state*: data that a provider returned and that only the provider can read,
such as encrypted reasoning."""
_ENCRYPTED: Final = "encrypted"
"""Prefix of further names of members with state."""
_STATE_TYPES: Final = frozenset(("reasoning.encrypted", "redacted_thinking"))
"""Types of objects whose member ``data`` is state."""
_IDS_OF_PARTS: Final = frozenset(
    ("approvalrequestid", "callid", "id", "itemid", "toolcallid", "tooluseid")
)
"""Names of members by which parts of a conversation refer to one another."""
_CONVERSATION: Final = frozenset(
    ("content", "input", "messages", "parts", "reasoningdetails", "toolcalls")
)
"""Lists whose items have such members."""
_WITH_IDS: Final = frozenset(("functioncall", "functionresponse", "toolresult", "tooluse"))
"""Objects in such items, which have such members, too."""
_IDS_OF_REQUESTS: Final = frozenset(
    ("cachedcontent", "container", "conversation", "previousresponseid", "promptcachekey")
)
"""Names of members by which a request refers to what the provider has stored."""
_STORED: Final = frozenset(("container", "conversation"))
"""Those that may be an object with an ``id``."""
_REQUESTS: Final = frozenset(("body", "params", "request"))
"""Members of a line of a batch that hold its request."""
_BLOCKS: Final = frozenset(("content", "parts", "toolcalls"))
"""Names of lists whose items are parts of a message."""
_ARGUMENTS: Final = frozenset(
    (
        *(("function", "arguments"), ("functioncall", "args"), ("tooluse", "input")),
        ("functionresponse", "response"),
    )
)
"""Pairs (name of an object in a part of a message, name of its member that holds arguments or a
result of a tool)."""
_RESULT: Final = ("toolresult", "content", "json")
"""The names on the path to a tool's result in a part of a message of Bedrock."""
_LONG: Final = 256
"""From this length on, Base64 is a file in a member of any other name, too."""
_SHORT: Final = 100
"""Shorter Base64 may be a word or a number, so it is searched as a text, too."""
_HEX: Final = re.compile(r"[0-9a-fA-F=\s]*")
_HEADERS: Final = (
    *(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"ID3", b"\xff\xf1", b"\xff\xf3"),
    *(b"\xff\xf9", b"\xff\xfb", b"OggS", b"fLaC", b"PK\x03\x04", b"BM", b"II*\0", b"MM\0*"),
    *(b"\x1aE\xdf\xa3", b"\xd0\xcf\x11\xe0"),
)
"""First bytes of pictures, sound, films and documents."""
_FILM: Final = b"ftyp"
"""The fifth to eighth byte of an MP4 or QuickTime film."""
_TOKENS: Final = ("input", "prompt")
"""Members of a request (or of the ``body`` of a request in a batch) that may be lists of token
numbers."""
_IN_BATCH: Final = "body"
_NO_TEXT: Final = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
"""Control characters that no text file in UTF-8 contains. A file with one is not searched as UTF-8;
it may be a text in UTF-16."""


class File(NamedTuple):
    """A file in Base64 in a member of the JSON of a request to a model provider."""

    head: str
    """The text before the Base64: the beginning of a data URL; empty without one."""
    kind: str
    """The media type in the data URL; empty without one."""
    content: bytes
    length: int
    """Characters of Base64 without ends of lines. 0 if there is other white space in it, since the
    text may then consist of words."""
    is_state: bool = False
    """Whether the content is the provider's state, which only the provider can read."""
    is_identifier: bool = False
    """Whether the member is an identifier that only looks like a file. It is searched as text."""

    @property
    def is_known(self) -> bool:
        """Whether the content is of a known kind that is no text: state of the model provider (data
        that only it can read, such as encrypted reasoning), or data that begins like a known format
        of pictures, sound, films or documents. False for short content and for identifiers."""
        if self.is_state or self.is_identifier:
            return self.is_state and self.length >= _SHORT
        is_media = self.content.startswith(_HEADERS) or self.content[4:8] == _FILM
        return is_media and self.length >= _SHORT


class Holder:
    """A JSON object in a request to a model provider, with its name and the object that contains
    it."""

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
            name: the name of the parent's member that is this object, or a list with this object.
            parent: the object that contains this one; None for the root above the request.
            is_item: whether the object is in a list.
        """
        kind = members.get("type")
        self.members = members
        self.name = _plain(name)
        self.parent = parent
        self.is_item = is_item
        self.kind = kind if isinstance(kind, str) else ""
        """The object's member ``type``; empty if it is no string (in a JSON Schema it may be a list
        or an object)."""
        self._media_types: list[Any] | None = None

    @property
    def is_block(self) -> bool:
        """Whether this JSON object of a model request is one part of a chat message."""
        return self.is_item and self.name in _BLOCKS

    @property
    def media_types(self) -> list[Any]:
        """The values of this JSON object's members ``media_type`` and ``mime_type``, however these
        two names are spelled (``mimeType``, for example)."""
        if self._media_types is None:
            self._media_types = [
                value for name, value in self.members.items() if _plain(name) in _TYPES
            ]
        return self._media_types

    @property
    def is_text(self) -> bool:
        """Whether this JSON object in a request to a model declares its member ``data`` as text."""
        return self.kind == _TEXT and all(
            isinstance(kind, str) and kind.startswith(_TEXT_MEDIA) for kind in self.media_types
        )


class Unsearched:
    """Takes the place of a file in a request while rules of redaction search the request. The file
    itself is sent unchanged."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __str__(self) -> str:
        """Returns the text in which rules search: an empty one."""
        return ""


def text_of(content: bytes) -> str | None:
    """Returns the content of a file as text; None if it is not UTF-8 or has a character of
    :data:`_NO_TEXT`."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if _NO_TEXT.search(text) else text


def file_in(member: str, value: str, holder: Holder) -> File | None:
    """Returns the file that a member of an object, in the JSON of a request to a model provider,
    holds in Base64; None if the member holds a text.

    Args:
        member: the name of the member.
        value: its value.
        holder: the object.
    """
    name = _plain(member)
    if name in _OF_TEXTS:
        return None
    url = _DATA_URL.fullmatch(value)
    if url is not None:
        return _file(url[1], url[2], url[3])
    if _is_of_state(name, holder):
        return _state(value)
    if _is_identifier(name, holder):
        file = _file("", "", value)
        return None if file is None else file._replace(is_identifier=True)
    if (holder.name, name) in _HELD or name in _BASE64:
        return _file("", "", value)
    if name == _DATA and (holder.media_types or holder.is_text):
        return None if holder.is_text else _file("", "", value)
    if name in _ALSO_TEXTS or len(value) < _LONG or not _is_mixed(value):
        return None
    file = _file("", "", value)
    return file if file is not None and file.length >= _LONG else None


def is_arguments(member: str, holder: Holder) -> bool:
    """Whether a member of ``holder`` (a JSON value in a request to a model) holds the arguments or
    the result of a tool, in which no files are looked for. True only within a part of a message:
    elsewhere the same names may mean other things."""
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


def _is_identifier(name: str, holder: Holder) -> bool:
    """Whether a member names a part of a conversation, such as the call of a tool, or something
    that the provider has stored. Identifiers of some providers and proxies are long Base64."""
    if name in _IDS_OF_REQUESTS:
        return _is_request(holder)
    if name not in _IDS_OF_PARTS:
        return False
    parent = holder.parent
    if holder.is_item:
        return holder.name in _CONVERSATION
    if parent is not None and holder.name in _WITH_IDS:
        return parent.is_block
    return name == "id" and holder.name in _STORED and parent is not None and _is_request(parent)


def _is_request(holder: Holder) -> bool:
    """Whether an object is a request, or the request in a line of a batch."""
    parent = holder.parent
    if parent is None:
        return False
    if parent.parent is None:
        return True
    return holder.name in _REQUESTS and not holder.is_item and _is_request(parent)


def _state(value: str) -> File | None:
    """Returns the content of a member with state: the state, or a text in Base64. None for any
    other value, such as a short mark, a hexadecimal digest or a number."""
    file = _file("", "", value)
    if file is None or text_of(file.content) is not None:
        return file
    return file._replace(is_state=True) if file.length >= _SHORT and _is_mixed(value) else None


def _is_mixed(text: str) -> bool:
    """Whether a text has letters of both cases, as Base64 has, and is not hexadecimal."""
    return text not in (text.lower(), text.upper()) and _HEX.fullmatch(text) is None


def encoded(file: File, content: bytes) -> str:
    """Returns the new content of a file in a model request, in the form that the old content had: a
    data URL, or Base64 alone."""
    return file.head + base64.b64encode(content).decode()


def has_tokens(request: Mapping[str, Any]) -> bool:
    """Whether a request, or the request in its ``body`` (a line of a batch), sends texts as lists
    of token numbers."""
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
