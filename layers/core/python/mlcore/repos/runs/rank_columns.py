"""The stored forms of ranked values: of one metric in their order, and of whole runs.

Each value is kept as its place in the order "greatest first, NaN last" (64 bits), beside the run
that has it, the version of the run in which it was read, and the minute of that. Of a column of
numbers all first bytes come first (:mod:`mlcore.repos.runs.byte_planes`), places as differences,
and the whole is compressed by zlib: between 15 and 25 bytes a value, most of them the run's id.

A body is its form (one byte), the length of a header (4 bytes), the header (JSON), and columns::

    of one metric  {"n": values, "ids": …}, places, versions, minutes, ids
    of runs        {"runs": runs, "ids": …, "keys": {metric: values}}, versions, minutes, ids, then
                   for each metric places, and the positions of their runs
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from mlcore.repos.runs import byte_planes

_FORM: Final = b"\x01"
_HEADER: Final = struct.Struct("<I")
_LEVEL: Final = 6
_ID_BYTES: Final = 16
_IS_HEX: Final = re.compile(r"[0-9a-f]{32}").fullmatch
_SIZE: Final = byte_planes.NUMBER_BYTES
CLOCKS_MINUTES: Final = 3
"""By so much the clocks of two who write may differ."""


class UnknownRanks(ValueError):
    """A later version wrote this."""


class Ranked(NamedTuple):
    """A run in the order of a metric. Sorted, the greatest value comes first, NaN last."""

    place: int
    """:func:`mlcore.db.sortable.descending_place` of its latest value."""
    run_id: str
    version: int
    """Of the run, when it had this value."""
    minute: int
    """Since the epoch, in which that version was written."""


class SettledRun(NamedTuple):
    """What is ranked of a run that was settled."""

    run_id: str
    version: int
    minute: int
    places: Mapping[str, int]
    """By metric."""


def pack(entries: Sequence[Ranked]) -> bytes:
    """The stored form of values of one metric, in their order."""
    ids = [one.run_id for one in entries]
    header, raw_ids = _ids(ids)
    places = [one.place for one in entries]
    columns = (
        _numbers(byte_planes.differences(places)),
        _numbers([one.version for one in entries]),
        _numbers([one.minute for one in entries]),
        raw_ids,
    )
    return _whole({"n": len(entries), "ids": header}, columns)


def unpack(data: bytes) -> list[Ranked]:
    """What :func:`pack` was given. Raises UnknownRanks."""
    header, body, at = _parts(data)
    count: int = header["n"]
    places = accumulate(_column(body, at, count))
    at += count * _SIZE
    versions, minutes = _column(body, at, count), _column(body, at + count * _SIZE, count)
    ids, _ = _ids_at(header["ids"], body, at + 2 * count * _SIZE, count)
    return list(map(Ranked, places, ids, versions, minutes))


def pack_runs(runs: Sequence[SettledRun]) -> bytes:
    """The stored form of whole runs."""
    header, raw_ids = _ids([one.run_id for one in runs])
    by_key: dict[str, list[tuple[int, int]]] = {}
    for position, one in enumerate(runs):
        for key, place in one.places.items():
            by_key.setdefault(key, []).append((place, position))
    columns = [_numbers([one.version for one in runs]), _numbers([one.minute for one in runs])]
    columns.append(raw_ids)
    for found in by_key.values():
        columns.append(_numbers([place for place, _ in found]))
        columns.append(_numbers([position for _, position in found]))
    counts = {key: len(found) for key, found in by_key.items()}
    return _whole({"runs": len(runs), "ids": header, "keys": counts}, columns)


def unpack_runs(data: bytes, wanted: Iterable[str] | None = None) -> dict[str, list[Ranked]]:
    """The values of each metric, in no order; of some metrics, if they are named. Raises
    UnknownRanks."""
    header, body, at = _parts(data)
    count: int = header["runs"]
    versions, minutes = _column(body, at, count), _column(body, at + count * _SIZE, count)
    ids, at = _ids_at(header["ids"], body, at + 2 * count * _SIZE, count)
    chosen = None if wanted is None else set(wanted)
    found: dict[str, list[Ranked]] = {}
    for key, number in header["keys"].items():
        if chosen is None or key in chosen:
            places = _column(body, at, number)
            positions = _column(body, at + number * _SIZE, number)
            found[key] = [
                Ranked(place, ids[position], versions[position], minutes[position])
                for place, position in zip(places, positions, strict=True)
            ]
        at += 2 * number * _SIZE
    return found


def pack_places(places: Sequence[int]) -> bytes:
    """The stored form of places alone."""
    return struct.pack(f"<{len(places)}Q", *places)


def unpack_places(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // _SIZE}Q", data))


def current(entries: Iterable[Ranked]) -> list[Ranked]:
    """In their order, without what their runs had before.

    A value is one of before if another is of a later version and of a later minute, by more than
    clocks differ. Minutes alone would not do, because those of one run may be told by several
    clocks; versions alone would not, because those of a run that was removed and imported again
    begin anew.
    """
    of_runs: dict[str, list[Ranked]] = {}
    for one in entries:
        of_runs.setdefault(one.run_id, []).append(one)
    found: list[Ranked] = []
    for group in of_runs.values():
        found += group if len(group) == 1 else _current_of_run(group)
    return sorted(found)


def _current_of_run(group: Sequence[Ranked]) -> Iterator[Ranked]:
    latest: dict[int, int] = {}
    for one in sorted(group, key=lambda one: (one.version, one.minute), reverse=True):
        # Another of the same value, later by both, is left where this one would be.
        if one.minute > latest.get(one.place, -1):
            latest[one.place] = one.minute
            if not any(_is_before(one, other) for other in group):
                yield one


def _is_before(one: Ranked, other: Ranked) -> bool:
    return other.version > one.version and other.minute > one.minute + CLOCKS_MINUTES


def _ids(ids: Sequence[str]) -> tuple[int | list[str], bytes]:
    """What the header says of ids, and the column that they are: 0 for numbers of 16 bytes in
    hexadecimal digits, the length of each where all are as long, else the ids themselves."""
    if all(map(_IS_HEX, ids)):
        return 0, byte_planes.apart(bytes.fromhex("".join(ids)), _ID_BYTES)
    text, width = "".join(ids), len(ids[0])
    if width and text.isascii() and all(len(one) == width for one in ids):
        return width, byte_planes.apart(text.encode(), width)
    return list(ids), b""


def _ids_at(told: int | list[str], body: bytes, at: int, count: int) -> tuple[Sequence[str], int]:
    """The ids that :func:`_ids` was given, and where their column ends."""
    if isinstance(told, list):
        return told, at
    width = told or _ID_BYTES
    raw = byte_planes.together(body, at, count, width)
    text, length = (raw.decode(), width) if told else (raw.hex(), 2 * _ID_BYTES)
    found = [text[begin : begin + length] for begin in range(0, len(text), length)]
    return found, at + count * width


def _numbers(numbers: Sequence[int]) -> bytes:
    return byte_planes.apart(struct.pack(f"<{len(numbers)}Q", *numbers))


def _column(body: bytes, at: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}Q", byte_planes.together(body, at, count))


def _whole(header: Mapping[str, Any], columns: Iterable[bytes]) -> bytes:
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    body = b"".join((_HEADER.pack(len(text)), text, *columns))
    return _FORM + zlib.compress(body, _LEVEL)


def _parts(data: bytes) -> tuple[dict[str, Any], bytes, int]:
    """The header, and where in the body the columns begin."""
    if data[:1] != _FORM:
        raise UnknownRanks(f"ranks of form {data[0] if data else None}")
    body = zlib.decompress(data[1:])
    (length,) = _HEADER.unpack_from(body)
    at = _HEADER.size + length
    return json.loads(body[_HEADER.size : at]), body, at
