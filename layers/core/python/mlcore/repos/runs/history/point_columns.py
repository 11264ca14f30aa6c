"""The stored form of many points, of one metric or more: columns of steps, timestamps and values.

The first byte is the form: :data:`_PACKED` (compressed by zlib, where that is shorter) or
:data:`_PLAIN` (numbers instead of differences, where a difference is no int64). Then come the
length of a header (4 bytes), the header, JSON ``{key: number of points, …}``, and three columns of
8 bytes for each point: steps, timestamps, values, metric by metric. Steps and timestamps are
differences from the point before, and each column has all first bytes first, then all second bytes,
and so on. So similar numbers become mostly zeros, and zlib reduces 40 bytes of JSON to between one
and eight. Every int64 and every double is restored exactly.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Final

from mlcore.db import byte_planes
from mlcore.db.deflate import compressed
from mlcore.entities.metrics import Metric, MetricColumns

_PACKED: Final = 1
_PLAIN: Final = 2
_KNOWN: Final = _PACKED | _PLAIN
_HEADER: Final = struct.Struct("<I")
_COLUMNS: Final = 3
POINT_BYTES: Final = byte_planes.NUMBER_BYTES * _COLUMNS
"""Bytes of a point before compression; with its key, an upper bound of its size."""
_INT64: Final = 1 << 63


class UnknownColumns(ValueError):
    """Raised if a later version of this software encoded the metric points that are to be read."""


def pack(series: Mapping[str, Sequence[Metric]]) -> tuple[bytes, str]:
    """Returns the bytes in which points are stored, and a digest of the points in their order. The
    digest does not depend on the compression.

    Args:
        series: the points by metric.
    """
    points = [point for metrics in series.values() for point in metrics]
    counts = {key: len(metrics) for key, metrics in series.items()}
    header = json.dumps(counts, separators=(",", ":"), ensure_ascii=False).encode()
    flags = 0
    steps, timestamps = [point.step for point in points], [point.timestamp for point in points]
    differing = byte_planes.differences(steps), byte_planes.differences(timestamps)
    if any(not -_INT64 <= value < _INT64 for column in differing for value in column):
        flags |= _PLAIN
        differing = steps, timestamps
    form = f"<{len(points)}q"
    body = b"".join(
        (
            _HEADER.pack(len(header)),
            header,
            byte_planes.apart(struct.pack(form, *differing[0])),
            byte_planes.apart(struct.pack(form, *differing[1])),
            byte_planes.apart(struct.pack(f"<{len(points)}d", *[point.value for point in points])),
        )
    )
    digest = blake2b(body, digest_size=12).hexdigest()
    packed = compressed(body)
    if len(packed) < len(body):
        return bytes((flags | _PACKED,)) + packed, digest
    return bytes((flags,)) + body, digest


def unpack(data: bytes, wanted: str | None = None) -> dict[str, list[Metric]]:
    """Returns the metric points from the bytes in which they are stored, by metric.

    Args:
        data: the bytes, as :func:`pack` returns them.
        wanted: the only metric to return; None for all. A metric without points is missing in the
            result.

    Raises:
        UnknownColumns: this version does not know the form of the bytes.
    """
    return {key: list(column.points(key)) for key, column in columns(data, wanted).items()}


def columns(data: bytes, wanted: str | None = None) -> dict[str, MetricColumns]:
    """Returns the metric points from the bytes in which they are stored, by metric, as three lists
    of the same length: steps, timestamps and values. Cheaper than :func:`unpack`, because it
    creates no object for a point.

    Args:
        data: the bytes, as :func:`pack` returns them.
        wanted: the only metric to return; None for all. A metric without points is missing in the
            result.

    Raises:
        UnknownColumns: this version does not know the form of the bytes.
    """
    flags = data[0]
    if flags & ~_KNOWN:
        raise UnknownColumns(f"points of form {flags}")
    body = zlib.decompress(data[1:]) if flags & _PACKED else data[1:]
    (length,) = _HEADER.unpack_from(body)
    at = _HEADER.size + length
    counts: dict[str, int] = json.loads(body[_HEADER.size : at])
    if wanted is not None and wanted not in counts:
        return {}
    total = sum(counts.values())
    size = total * byte_planes.NUMBER_BYTES
    form = f"<{total}q"
    steps: Iterable[int] = struct.unpack(form, byte_planes.together(body, at, total))
    timestamps: Iterable[int] = struct.unpack(form, byte_planes.together(body, at + size, total))
    values = struct.unpack(f"<{total}d", byte_planes.together(body, at + 2 * size, total))
    if not flags & _PLAIN:
        steps, timestamps = accumulate(steps), accumulate(timestamps)
    whole = MetricColumns(list(steps), list(timestamps), list(values))
    if len(counts) == 1:
        return dict.fromkeys(counts, whole)
    begin, columns_by_key = 0, {}
    for key, number in counts.items():
        end = begin + number
        if wanted is None or key == wanted:
            columns_by_key[key] = MetricColumns(
                whole.steps[begin:end], whole.timestamps[begin:end], whole.values[begin:end]
            )
        begin = end
    return columns_by_key


def count(data: bytes, key: str) -> int:
    """Returns how many points of the metric ``key`` are in the bytes in which points are stored.
    Decompresses only the header of the bytes.

    Args:
        data: the bytes, as :func:`pack` returns them.

    Raises:
        UnknownColumns: this version does not know the form of the bytes.
    """
    flags = data[0]
    if flags & ~_KNOWN:
        raise UnknownColumns(f"points of form {flags}")
    if flags & _PACKED:
        unpacking = zlib.decompressobj()
        begin = unpacking.decompress(data[1:], _HEADER.size)
        (length,) = _HEADER.unpack(begin)
        header = unpacking.decompress(unpacking.unconsumed_tail, length) if length else b"{}"
    else:
        (length,) = _HEADER.unpack_from(data, 1)
        header = data[1 + _HEADER.size : 1 + _HEADER.size + length]
    counts: dict[str, int] = json.loads(header)
    return counts.get(key, 0)
