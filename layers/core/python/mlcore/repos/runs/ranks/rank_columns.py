"""The stored forms of ranked values: of one metric in order, and of whole runs.

The *rank* of a value is its 64-bit encoding in the order "greatest first, NaN last". Each value is
stored as its rank, with its run, the version of the run in which it was read, and the minute in
which that version was written. Columns of numbers have all first bytes first
(:mod:`mlcore.db.byte_planes`), sorted ranks are stored as differences, and zlib compresses it all:
between 15 and 25 bytes a value, most of them for the run's id.

A body is its form (one byte), the length of a header (4 bytes), the header (JSON), and columns::

    of one metric  {"n": values, "ids": …}, ranks, versions, minutes, ids
    of runs        {"runs": runs, "ids": …, "keys": {metric: values}}, versions, minutes, ids, then
                   for each metric ranks, and the positions of their runs
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, repeat
from typing import Any, Final, NamedTuple

from mlcore.db import byte_planes
from mlcore.db.deflate import compressed

_FORM: Final = b"\x01"
_HEADER: Final = struct.Struct("<I")
_ID_BYTES: Final = 16
_IS_HEX: Final = re.compile(r"[0-9a-f]{32}").fullmatch
_SIZE: Final = byte_planes.NUMBER_BYTES
CLOCKS_MINUTES: Final = 3
"""Maximum difference between the clocks of two writers."""


class UnknownRanks(ValueError):
    """Raised if stored ranked metric values have a form that this software version cannot read."""


class Ranked(NamedTuple):
    """A run's value of a metric. Sorted, the greatest value comes first, NaN last."""

    inverted_bits: int
    """:func:`mlcore.db.sortable.inverted_double_bits` of its latest value."""
    run_id: str
    version: int
    """Version of the run when it had this value."""
    minute: int
    """Minute since the epoch in which that version was written."""


_ranked = partial(tuple.__new__, Ranked)
"""Makes a Ranked from a tuple of its four fields, without the cost of a Python call."""


class RunRanks(NamedTuple):
    """The latest metric values of one run, as an item of the index of metric values stores them
    until they are sorted into segments."""

    run_id: str
    version: int
    minute: int
    inverted_bits: Mapping[str, int]
    """By metric, :func:`mlcore.db.sortable.inverted_double_bits` of the latest value."""


def pack(entries: Sequence[Ranked]) -> bytes:
    """Returns the bytes in which runs' values of one metric are stored. The values must be given
    sorted: the greatest first, NaN last."""
    ids = [entry.run_id for entry in entries]
    header, raw_ids = _ids(ids)
    places = [entry.inverted_bits for entry in entries]
    columns = (
        _numbers(byte_planes.differences(places)),
        _numbers([entry.version for entry in entries]),
        _numbers([entry.minute for entry in entries]),
        raw_ids,
    )
    return _whole({"n": len(entries), "ids": header}, columns)


def unpack(data: bytes) -> list[Ranked]:
    """Returns the values of a metric from the bytes that :func:`pack` returned. Raises UnknownRanks
    if the bytes have a form that this version of the software does not know."""
    header, body, at = _parts(data)
    count: int = header["n"]
    places = accumulate(_column(body, at, count))
    at += count * _SIZE
    versions, minutes = _column(body, at, count), _column(body, at + count * _SIZE, count)
    ids, _ = _ids_at(header["ids"], body, at + 2 * count * _SIZE, count)
    return list(map(_ranked, zip(places, ids, versions, minutes, strict=True)))


def pack_runs(runs: Sequence[RunRanks]) -> bytes:
    """Returns the bytes in which one item of the index of metric values holds all values of several
    runs (other items hold the values of one metric)."""
    header, raw_ids = _ids([run.run_id for run in runs])
    by_key: dict[str, list[tuple[int, int]]] = {}
    for position, run_entries in enumerate(runs):
        for key, inverted_bits in run_entries.inverted_bits.items():
            by_key.setdefault(key, []).append((inverted_bits, position))
    columns = [_numbers([run.version for run in runs]), _numbers([run.minute for run in runs])]
    columns.append(raw_ids)
    for entries in by_key.values():
        columns.append(_numbers([inverted_bits for inverted_bits, _ in entries]))
        columns.append(_numbers([position for _, position in entries]))
    counts = {key: len(entries) for key, entries in by_key.items()}
    return _whole({"runs": len(runs), "ids": header, "keys": counts}, columns)


def unpack_runs(data: bytes) -> dict[str, list[Ranked]]:
    """Returns the metric values from the bytes that :func:`pack_runs` returned, by metric,
    unordered. Raises UnknownRanks."""
    header, body, at = _parts(data)
    count: int = header["runs"]
    versions, minutes = _column(body, at, count), _column(body, at + count * _SIZE, count)
    ids, at = _ids_at(header["ids"], body, at + 2 * count * _SIZE, count)
    ranked: dict[str, list[Ranked]] = {}
    for key, number in header["keys"].items():
        places = _column(body, at, number)
        positions = _column(body, at + number * _SIZE, number)
        ranked[key] = [
            Ranked(inverted_bits, ids[position], versions[position], minutes[position])
            for inverted_bits, position in zip(places, positions, strict=True)
        ]
        at += 2 * number * _SIZE
    return ranked


def unpack_values(data: bytes, wanted: Container[str]) -> dict[str, list[Ranked]]:
    """Returns, by metric and unordered, the values of the metrics ``wanted`` from the bytes that
    :func:`pack_runs` returned. The version and the minute of each value are 0, because searches do
    not need them. Raises UnknownRanks, as :func:`unpack`."""
    header, body, at = _parts(data)
    count: int = header["runs"]
    ids, at = _ids_at(header["ids"], body, at + 2 * count * _SIZE, count)
    ranked: dict[str, list[Ranked]] = {}
    for key, number in header["keys"].items():
        if key in wanted:
            places = _column(body, at, number)
            positions = _column(body, at + number * _SIZE, number)
            named = [ids[position] for position in positions]
            ranked[key] = list(map(_ranked, zip(places, named, repeat(0), repeat(0))))
        at += 2 * number * _SIZE
    return ranked


def pack_places(places: Sequence[int]) -> bytes:
    """Returns the bytes that store where the pages of a segment (values of one metric in order)
    begin and end. Each place is the rank of a value, its 64-bit encoding."""
    return struct.pack(f"<{len(places)}Q", *places)


def unpack_places(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // _SIZE}Q", data))


def current(entries: Iterable[Ranked]) -> list[Ranked]:
    """Returns the values that runs have of one metric, greatest first, without outdated ones.

    A value is outdated if its run has another value of a later version of the run, written later by
    more minutes than clocks differ. The minute of the write alone does not decide, because servers
    with different clocks may write one run. The version alone does not either, because the versions
    of a run that was deleted and imported again start anew.
    """
    of_runs: dict[str, list[Ranked]] = {}
    for entry in entries:
        of_runs.setdefault(entry.run_id, []).append(entry)
    current_entries: list[Ranked] = []
    for group in of_runs.values():
        current_entries += group if len(group) == 1 else _current_of_run(group)
    return sorted(current_entries)


def _current_of_run(group: Sequence[Ranked]) -> Iterator[Ranked]:
    latest: dict[int, int] = {}
    for entry in sorted(group, key=lambda entry: (entry.version, entry.minute), reverse=True):
        # An entry with the same value, later by version and minute, stands for this one.
        if entry.minute > latest.get(entry.inverted_bits, -1):
            latest[entry.inverted_bits] = entry.minute
            if not any(_is_before(entry, other) for other in group):
                yield entry


def _is_before(entry: Ranked, other: Ranked) -> bool:
    return other.version > entry.version and other.minute > entry.minute + CLOCKS_MINUTES


def _ids(ids: Sequence[str]) -> tuple[int | list[str], bytes]:
    """Returns the header's description of run ids, and the column of their bytes. The description
    is 0 if the column has ids of 32 hexadecimal digits as 16 bytes each, the common case; the
    length of the ids if all are ASCII and equally long; otherwise it is the list of the ids, and
    the column is empty."""
    if all(map(_IS_HEX, ids)):
        return 0, byte_planes.apart(bytes.fromhex("".join(ids)), _ID_BYTES)
    text, width = "".join(ids), len(ids[0])
    if width and text.isascii() and all(len(id_) == width for id_ in ids):
        return width, byte_planes.apart(text.encode(), width)
    return list(ids), b""


def _ids_at(
    description: int | list[str], body: bytes, at: int, count: int
) -> tuple[Sequence[str], int]:
    """Returns the ids of ``count`` runs, and the offset in the body at which their column ends.

    Args:
        description: the header's description of the ids, as :func:`_ids` returned it.
        at: the offset in the body at which the column of the ids begins.
    """
    if isinstance(description, list):
        return description, at
    width = description or _ID_BYTES
    raw = byte_planes.together(body, at, count, width)
    text, length = (raw.decode(), width) if description else (raw.hex(), 2 * _ID_BYTES)
    ids = [text[begin : begin + length] for begin in range(0, len(text), length)]
    return ids, at + count * width


def _numbers(numbers: Sequence[int]) -> bytes:
    return byte_planes.apart(struct.pack(f"<{len(numbers)}Q", *numbers))


def _column(body: bytes, at: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}Q", byte_planes.together(body, at, count))


def _whole(header: Mapping[str, Any], columns: Iterable[bytes]) -> bytes:
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    body = b"".join((_HEADER.pack(len(text)), text, *columns))
    return _FORM + compressed(body)


def _parts(data: bytes) -> tuple[dict[str, Any], bytes, int]:
    """Splits a stored form; returns its header, its body, and the offset in the body at which the
    columns start."""
    if data[:1] != _FORM:
        raise UnknownRanks(f"ranks of form {data[0] if data else None}")
    body = zlib.decompress(data[1:])
    (length,) = _HEADER.unpack_from(body)
    at = _HEADER.size + length
    return json.loads(body[_HEADER.size : at]), body, at
