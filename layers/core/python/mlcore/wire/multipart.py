"""Parses bodies of the type ``multipart/form-data`` (RFC 7578), with the limits and the messages of
the parser of MLflow's server."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mlcore.errors import BadRequest

MAX_FIELD_BYTES: Final = 1024 * 1024
"""Maximum size of a part that is not a file."""
MAX_HEADER_BYTES: Final = 16_384
"""Maximum size of the headers of one part."""

_PARAMETER: Final = re.compile(r';\s*([\w*-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)', re.DOTALL)


class FormPart(NamedTuple):
    name: str
    is_file: bool
    """Whether the part has a file name."""
    content: bytes


def parse(content_type: str, body: bytes, *, most_files: int, most_fields: int) -> list[FormPart]:
    """Returns the parts of a multipart body.

    Raises:
        BadRequest: the body is malformed, or has more parts or larger ones than allowed.
    """
    boundary = _parameters(content_type).get("boundary", "")
    if not boundary:
        raise BadRequest("Missing boundary in multipart.")
    delimiter = b"\r\n--" + boundary.encode("latin-1", "replace")
    preamble, *pieces = (b"\r\n" + body).split(delimiter)
    if preamble.strip() or not pieces or not pieces[-1].startswith(b"--"):
        raise _malformed()
    parts: list[FormPart] = []
    files = 0
    for piece in pieces[:-1]:
        part = _part(piece)
        files += part.is_file
        if files > most_files:
            raise BadRequest(f"Too many files. Maximum number of files is {most_files}.")
        if len(parts) + 1 - files > most_fields:
            raise BadRequest(f"Too many fields. Maximum number of fields is {most_fields}.")
        if not part.is_file and len(part.content) > MAX_FIELD_BYTES:
            raise BadRequest(f"Part exceeded maximum size of {MAX_FIELD_BYTES // 1024}KB.")
        parts.append(part)
    return parts


def _part(piece: bytes) -> FormPart:
    head, separator, content = piece.partition(b"\r\n\r\n")
    if not separator or not head.startswith(b"\r\n") or len(head) > MAX_HEADER_BYTES:
        raise _malformed()
    disposition = ""
    for line in head.decode("utf-8", "replace").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            disposition = value
    parameters = _parameters(disposition)
    if "name" not in parameters:
        raise BadRequest('The Content-Disposition header field "name" must be provided.')
    return FormPart(parameters["name"], "filename" in parameters, content)


def _parameters(header: str) -> dict[str, str]:
    """Returns the parameters in a header's value, such as ``name`` and ``filename``."""
    return {
        match[1].lower(): _unquoted(match[2].strip())
        for match in _PARAMETER.finditer(";" + header.partition(";")[2])
    }


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _malformed() -> BadRequest:
    return BadRequest("The multipart request body is malformed.")
