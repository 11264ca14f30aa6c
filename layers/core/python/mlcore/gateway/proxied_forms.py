"""Forms with files that the proxy forwards: the models that they name, and the size of their
fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Final, NamedTuple

from mlcore.errors import GatewayCallFailed
from mlcore.providers.proxied import ProxiedRequest

_BOUNDARY: Final = re.compile(
    r"""multipart/[a-z-]+(?:\s*;\s*(?!boundary)[\w-]+=[^;"]*)*"""
    r"""\s*;\s*boundary=(?:"(?P<quoted>[^"\\]{1,70})"|(?P<plain>[^\s";,]{1,70}))"""
    r"""(?:\s*;\s*(?!boundary)[\w-]+=[^;"]*)*\s*;?\s*""",
    re.IGNORECASE,
)
"""A type with exactly one boundary, which every reader understands alike."""
_MAX_PARTS: Final = 1000
"""Servers of providers read as many."""
_MAX_HEADER_BYTES: Final = 16 * 1024
_MAX_NAME_BYTES: Final = 1024
_END_OF_HEADERS: Final = re.compile(rb"\r?\n\r?\n")


class Form(NamedTuple):
    """What the gateway needs to know of a form."""

    models: tuple[str, ...]
    """The values of all fields ``model``: a reader takes the first or the last one."""
    field_bytes: int
    """The size of the fields that are no files."""


def read(request: ProxiedRequest) -> Form | None:
    """Returns the form that a request sends; None if it sends none. Raises GatewayCallFailed (400)
    for a form that the provider could read in another way."""
    if request.content is None or not request.content_type.lower().startswith("multipart/"):
        return None
    matched = _BOUNDARY.fullmatch(request.content_type)
    if matched is None:
        raise GatewayCallFailed(400, "The type of a form must name its boundary, once")
    boundary = (matched["quoted"] or matched["plain"]).encode()
    models: list[str] = []
    field_bytes = 0
    for headers, value in _parts(request.content, b"--" + boundary):
        if headers.get_filename() is None:
            field_bytes += len(value)
        if "model" in _names(headers):
            models += _readings(headers, value[:_MAX_NAME_BYTES])
    return Form(tuple(dict.fromkeys(filter(None, models))), field_bytes)


def _parts(content: bytes, delimiter: bytes) -> Iterator[tuple[Message, bytes]]:
    """Yields the headers and the value of each part of a form."""
    parts = content.split(delimiter, _MAX_PARTS + 1)
    if len(parts) > _MAX_PARTS + 1:
        raise GatewayCallFailed(400, f"A form must not have more than {_MAX_PARTS} parts")
    for part in parts[1:]:
        end = _END_OF_HEADERS.search(part)
        if end is None:  # also the end of the form
            continue
        if end.start() > _MAX_HEADER_BYTES:
            raise GatewayCallFailed(400, "The headers of a part of the form are too long")
        headers = message_from_bytes(part[: end.start()].lstrip(b" \t\r\n-") + b"\n\n")
        yield headers, part[end.end() :].removesuffix(b"\n").removesuffix(b"\r")


def _names(headers: Message) -> set[str]:
    """Returns what readers may take for a field's name, without the brackets of a list."""
    names = set()
    for disposition in headers.get_all("content-disposition", ()):
        copy = Message()
        copy["content-disposition"] = disposition
        for name, value in copy.get_params((), "content-disposition"):
            if name.strip().lower().startswith("name"):
                text = collapse_rfc2231_value(value)
                names.add(text.replace("\\", "").strip().lower().rstrip("[] "))
    return names


def _readings(headers: Message, value: bytes) -> list[str]:
    """Returns a field's value as it is, and as a reader of its transfer encoding decodes it."""
    headers.set_payload(value.decode("latin-1"))
    decoded = headers.get_payload(decode=True)
    values = (value, decoded if isinstance(decoded, bytes) else b"")
    return [text.decode("utf-8", "replace").strip() for text in values]
