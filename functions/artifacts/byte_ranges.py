"""Ranges of bytes of a download (RFC 9110, section 14)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from uuid import uuid4

from mlcore import errors
from mlcore.http import Response

_SPEC: Final = re.compile(r"([0-9]{0,4300})[ \t]*-[ \t]*([0-9]{0,4300})")
"""A range. Python converts no numbers of more than 4,300 digits."""
_MAX_RANGES: Final = 100
"""Ranges of one answer; MLflow's server, too, ignores a header with more."""


class ByteRange(NamedTuple):
    """The bytes ``start`` to ``stop`` of a file, without the last."""

    start: int
    stop: int

    def content_range(self, size: int) -> str:
        """Returns the value of a Content-Range header for a file of ``size`` bytes."""
        return f"bytes {self.start}-{self.stop - 1}/{size}"


def requested_ranges(header: str, size: int) -> list[ByteRange]:
    """Returns the ranges that a Range header asks for, of a file of ``size`` bytes, in their order
    in the file; those that overlap or touch are joined. As on MLflow's server, the result is empty
    if any range begins behind the end of the file, and malformed members of the list are ignored.

    Raises:
        InvalidParameterValue: the unit is not bytes, no member of the list is a range, or a range
            ends before it begins.
    """
    unit, equals, specs = header.partition("=")
    if not equals:
        raise errors.InvalidParameterValue("Malformed range header.")
    if unit.strip().lower() != "bytes":
        raise errors.InvalidParameterValue("Only support bytes range")
    ranges = []
    for spec in filter(None, (text.strip() for text in specs.split(","))):
        matched = _SPEC.fullmatch(spec)
        first, last = matched.groups() if matched else ("", "")
        if first:
            ranges.append(ByteRange(int(first), min(int(last), size - 1) + 1 if last else size))
        elif last:
            ranges.append(ByteRange(max(size - int(last), 0), size))
    if not ranges:
        raise errors.InvalidParameterValue("Range header: range must be requested")
    if any(wanted.start >= size for wanted in ranges):
        return []
    if any(wanted.start >= wanted.stop for wanted in ranges):
        raise errors.InvalidParameterValue("Range header: start must be less than end")
    return _joined(sorted(ranges))


def is_many(header: str) -> bool:
    """Whether a Range header lists more ranges than an answer may have. Then it is ignored."""
    return header.count(",") >= _MAX_RANGES


def names_etag(header: str, etag: str) -> bool:
    """Whether an If-None-Match header names an ETag, or is ``*``. The prefix ``W/`` of a weak ETag
    is ignored, because a cache or proxy may have added it."""
    given = [text.strip().removeprefix("W/") for text in header.split(",")]
    return given == ["*"] or etag.removeprefix("W/") in given


def partial_response(
    data: bytes, ranges: list[ByteRange], content_type: str, headers: dict[str, str]
) -> Response:
    """Returns the given ranges of a file whose content is ``data``: one as it is, several as the
    parts of a ``multipart/byteranges`` body."""
    size = len(data)
    if len(ranges) == 1:
        only = ranges[0]
        more = {**headers, "content-range": only.content_range(size)}
        return Response(206, data[only.start : only.stop], content_type, more)
    boundary = uuid4().hex
    parts = [
        f"--{boundary}\r\nContent-Type: {content_type}\r\n"
        f"Content-Range: {each.content_range(size)}\r\n\r\n".encode()
        + data[each.start : each.stop]
        + b"\r\n"
        for each in ranges
    ]
    body = b"".join([*parts, f"--{boundary}--\r\n".encode()])
    return Response(206, body, f"multipart/byteranges; boundary={boundary}", headers)


def unsatisfiable(size: int) -> Response:
    """Returns the response (416) to a range outside a file of ``size`` bytes."""
    return Response(416, "", headers={"content-range": f"bytes */{size}"})


def _joined(ranges: list[ByteRange]) -> list[ByteRange]:
    joined = ranges[:1]
    for each in ranges[1:]:
        if each.start <= joined[-1].stop:
            joined[-1] = ByteRange(joined[-1].start, max(joined[-1].stop, each.stop))
        else:
            joined.append(each)
    return joined
