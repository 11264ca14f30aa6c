"""Parses forms with files (multipart/form-data) that the AI gateway's proxy forwards to a provider:
finds the models that they name, and the size of their fields.

Only forms that every parser reads in the same way are forwarded, so that the provider finds the
same model as the gateway: RFC 7578 without its deprecated parts, lines that end in CR LF, and no
header or parameter twice in a part. All patterns below take time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from mlcore.errors import GatewayCallFailed
from mlcore.providers.proxied import ProxiedRequest

_MAX_PARTS: Final = 1000
"""Maximum number of parts of a form; the servers of providers accept as many."""
_MAX_HEADER_BYTES: Final = 4096
"""Maximum size of the headers of one part."""
_MAX_NAME_BYTES: Final = 1024

_PARAMETER: Final = (
    r"""\s*;\s*(?P<name>[A-Za-z0-9_*-]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s;"\\]+))"""
)
_PARAMETERS: Final = re.compile(_PARAMETER, re.ASCII)
_TYPE: Final = re.compile(r"multipart/form-data", re.IGNORECASE)
_BOUNDARY: Final = re.compile(r"[\w'()+,./:=?-]{1,70}", re.ASCII)
_DISPOSITION: Final = re.compile(r"form-data", re.IGNORECASE)
_HEADER: Final = re.compile(rb"([A-Za-z0-9-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_PLAIN_ENCODINGS: Final = ("7bit", "8bit", "binary")
_ODD: Final = re.compile(r'[*\\"%]')
"""Characters that a field's name must not have, because parsers decode them in different ways."""


class Form(NamedTuple):
    """What the gateway needs to know of a proxied request's form (``multipart/form-data``)."""

    models: tuple[str, ...]
    """The values of all fields ``model``, because a provider may use the first or the last one."""
    field_bytes: int
    """The size of all fields that are not files."""


class Field(NamedTuple):
    """A field or file in the multipart form of a request that the gateway passes on."""

    headers: bytes
    name: str
    is_file: bool
    value: bytes


def is_form(request: ProxiedRequest) -> bool:
    """Whether a proxied request's body is a form, also one of a type that is not forwarded."""
    return request.content is not None and request.content_type.lower().startswith("multipart/")


def read(request: ProxiedRequest) -> Form | None:
    """Returns the form (``multipart/form-data``) in a proxied request's body; None if it has none.
    Raises GatewayCallFailed (400) for a form that the provider could read in another way."""
    if not is_form(request):
        return None
    models: list[str] = []
    field_bytes = 0
    for field in fields(request):
        if not field.is_file:
            field_bytes += len(field.value)
        if field.name.strip().lower().rstrip("[] ") == "model":
            models.append(field.value[:_MAX_NAME_BYTES].decode("utf-8", "replace").strip())
    return Form(tuple(dict.fromkeys(filter(None, models))), field_bytes)


def changed(request: ProxiedRequest, value_of: Callable[[Field], bytes]) -> bytes:
    """Returns the content of the multipart form in a request, with the value of each field replaced
    by what ``value_of`` returns for it. Raises GatewayCallFailed (400) as :func:`read` does, and
    for a value that contains the form's boundary."""
    delimiter = _delimiter(request)
    pieces: list[bytes] = []
    for field in fields(request):
        value = value_of(field)
        if delimiter in value:
            raise _refused("a value contains its boundary")
        pieces += (delimiter, b"\r\n", field.headers, b"\r\n\r\n", value, b"\r\n")
    return b"".join((*pieces, delimiter, b"--\r\n"))


def _delimiter(request: ProxiedRequest) -> bytes:
    parameters = _parameters(_TYPE, request.content_type.strip())
    boundary = "" if parameters is None else parameters.get("boundary", "")
    if not _BOUNDARY.fullmatch(boundary) or ";" in "".join((parameters or {}).values()):
        raise _refused("its type must be multipart/form-data with one boundary")
    return b"--" + boundary.encode()


def fields(request: ProxiedRequest) -> Iterator[Field]:
    """Yields the parts of the ``multipart/form-data`` form that a proxied request sends. Raises
    GatewayCallFailed (400) as :func:`read` does."""
    for headers, value in _parts(request.content or b"", _delimiter(request)):
        name, is_file = _field(headers)
        yield Field(headers, name, is_file, value)


def _refused(reason: str) -> GatewayCallFailed:
    return GatewayCallFailed(400, f"A form cannot be forwarded: {reason}")


def _parameters(kind: re.Pattern[str], text: str) -> dict[str, str] | None:
    """Returns the parameters of a header's value, with names in lower case; None if the value is of
    another kind or malformed, or names a parameter twice."""
    begin = kind.match(text)
    if begin is None:
        return None
    parameters: dict[str, str] = {}
    position = begin.end()
    while position < len(text):
        matched = _PARAMETERS.match(text, position)
        if matched is None:
            return parameters if text[position:].strip(" ;") == "" else None
        name = matched["name"].lower()
        if name in parameters:
            return None
        parameters[name] = matched["plain"] if matched["quoted"] is None else matched["quoted"]
        position = matched.end()
    return parameters


def _parts(content: bytes, delimiter: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the headers and the value of each part of a form."""
    pieces = content.split(delimiter, _MAX_PARTS + 2)
    if len(pieces) > _MAX_PARTS + 2:
        raise _refused(f"it has more than {_MAX_PARTS} parts")
    if len(pieces) < 3 or pieces[0] or pieces[-1] not in (b"--", b"--\r\n"):
        raise _refused("it must begin and end with its boundary")
    for part in pieces[1:-1]:
        if not (part.startswith(b"\r\n") and part.endswith(b"\r\n")):
            raise _refused("its boundary must stand on lines of its own")
        headers, blank, value = part[2:-2].partition(b"\r\n\r\n")
        if not blank and headers.endswith(b"\r\n"):  # of an empty value
            headers, blank = headers[:-2], b"\r\n"
        if not blank or len(headers) > _MAX_HEADER_BYTES:
            raise _refused(f"a part needs headers of at most {_MAX_HEADER_BYTES} bytes")
        yield headers, value


def _field(headers: bytes) -> tuple[str, bool]:
    """Returns the name of a part's field, and whether it is a file."""
    values: dict[bytes, str] = {}
    for line in headers.split(b"\r\n"):
        matched = _HEADER.fullmatch(line)
        if matched is None or matched[1].lower() in values:
            raise _refused("a part has malformed headers")
        values[matched[1].lower()] = matched[2].decode("utf-8", "replace").strip()
    parameters = _parameters(_DISPOSITION, values.get(b"content-disposition", ""))
    if parameters is None or "name" not in parameters or _ODD.search(parameters["name"]):
        raise _refused('a part must name its field once, without any of the characters * \\ " %')
    if not parameters.keys() <= {"name", "filename", "filename*"}:
        raise _refused("the disposition of a part has only a name and the name of a file")
    if values.get(b"content-transfer-encoding", "binary").lower() not in _PLAIN_ENCODINGS:
        raise _refused("its parts must not be encoded")
    return parameters["name"], len(parameters) > 1
