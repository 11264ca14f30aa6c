"""Metric history in files of the artifact store: what many batches held, once it is much.

An experiment's items may take 10 GB in all, and a write unit costs as much as a fifth of writing a
file. So the points of many batches go to a file of their own, one segment behind the other, each
with points of one metric in their order. The file's item lies right behind the run's batches and
tells what is where; a read takes what it needs of the file. A file is named by what is in it and
never changes; it belongs to its run and goes with it (:mod:`mlcore.repos.files.owners`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.ids import now_ms
from mlcore.models.runs import RunMetricFile
from mlcore.repos.runs import point_columns, point_places

SEGMENT_POINTS: Final = 4096
"""The most points of a segment, and of a pack: some 30 KB."""
DIRECTORY_BYTES: Final = 200_000
"""Of the keys and places that one item tells, before they are compressed."""
_ENTRY_BYTES: Final = 80
_NAME: Final = "points"
"""Of each file, in a folder of its own: what is removed is a folder."""


class NoStore(errors.TemporarilyUnavailable):
    """This process was not told where files are."""


class Segment(NamedTuple):
    """Points of one metric in a file."""

    location: str
    begin: int
    length: int
    size: int
    """How many points."""
    first: str
    last: str
    """The timestamps and steps of the outermost points, as :mod:`.point_places` writes them."""


class HistoryFile(NamedTuple):
    """A file that is to be written, and its item."""

    location: str
    content: bytes
    item: Raw


_Entry = tuple[int, int, int, int, int, int, int]
"""Begin, length, number of points, timestamp and step of the first one and of the last."""


def chunks(series: Sequence[Metric]) -> Iterator[list[Metric]]:
    """Points of one metric in their order, as many together as belong in a segment or a pack."""
    ordered = sorted(series, key=point_places.order)
    for at in range(0, len(ordered), SEGMENT_POINTS):
        yield ordered[at : at + SEGMENT_POINTS]


def made_of(
    experiment_id: str, run_id: str, series: Mapping[str, Sequence[Metric]]
) -> list[HistoryFile]:
    """The files for distinct points by key: one, unless there are very many keys."""
    made: list[HistoryFile] = []
    named: dict[str, Sequence[Metric]] = {}
    size = 0
    for key, points in series.items():
        weight = len(key.encode()) + _ENTRY_BYTES * (1 + len(points) // SEGMENT_POINTS)
        if named and size + weight > DIRECTORY_BYTES:
            made.append(_file(experiment_id, run_id, named))
            named, size = {}, 0
        named[key] = points
        size += weight
    made.append(_file(experiment_id, run_id, named))
    return made


def has_place(experiment_id: str, run_id: str) -> bool:
    """Whether there is a store, and files of a run have a path in it. (Ids of earlier versions and
    of other servers are whatever they were.)"""
    from mlcore import artifacts  # noqa: PLC0415 -- 5 ms of a cold start that mostly are for nothing

    if not artifacts.has_store():
        return False
    path = f"{experiment_id}/{run_id}"
    try:
        return path.count("/") == 1 and artifacts.exact_path(path) == path
    except errors.InvalidParameterValue:
        return False


def store(made: Sequence[HistoryFile]) -> None:
    """Writes files; their items are to be put when that is done."""
    from mlcore import artifacts  # noqa: PLC0415 -- as above

    table.parallel([partial(artifacts.store().put, one.location, one.content) for one in made])


def segments(item: Raw, key: str) -> list[Segment]:
    """Where points of a metric are in the file of an item; in their order."""
    told = RunMetricFile.of(item)
    return [_segment(told.location, entry) for entry in _directory(told.directory).get(key, ())]


def every(item: Raw) -> list[Segment]:
    """All that is in the file of an item."""
    told = RunMetricFile.of(item)
    listed = _directory(told.directory).values()
    return [_segment(told.location, entry) for entries in listed for entry in entries]


def folder_of(item: Raw) -> str:
    """The key of the folder of an item's file, in which there is nothing else."""
    return RunMetricFile.of(item).location.rpartition("/")[0]


def read(wanted: Iterable[Segment]) -> list[Metric]:
    """The points of segments. Raises what :func:`contents` raises."""
    found = []
    for data in contents(wanted):
        for points in point_columns.unpack(data).values():
            found += points
    return found


def contents(wanted: Iterable[Segment]) -> list[bytes]:
    """What segments hold, as :mod:`.point_columns` unpacks it; what lies side by side in a file is
    one request.

    Raises:
        NoStore: the environment names no store.
        TemporarilyUnavailable: a file is not there (any more), or cannot be read now.
    """
    stretches: list[list[Segment]] = []
    for one in sorted(wanted):
        if stretches and one[:2] == _end(stretches[-1][-1]):
            stretches[-1].append(one)
        else:
            stretches.append([one])
    found = table.parallel([partial(_read, stretch) for stretch in stretches])
    return [data for parts in found for data in parts]


def _end(segment: Segment) -> tuple[str, int]:
    return segment.location, segment.begin + segment.length


def _read(stretch: Sequence[Segment]) -> list[bytes]:
    from mlcore import artifacts  # noqa: PLC0415 -- as above

    if not artifacts.has_store():
        raise NoStore("The files with the history of metrics are out of reach.")
    begin = stretch[0].begin
    length = sum(one.length for one in stretch)
    data = artifacts.store().read(stretch[0].location, begin, length)
    if data is None or len(data) != length:
        raise errors.TemporarilyUnavailable("The history of the metric cannot be read. Try again.")
    places = [one.begin - begin for one in stretch]
    return [data[at : at + one.length] for at, one in zip(places, stretch, strict=True)]


def _segment(location: str, entry: _Entry) -> Segment:
    begin, length, size, *moments = entry
    first, last = (point_places.moment(*moments[at : at + 2]) for at in (0, 2))
    return Segment(location, begin, length, size, first, last)


def _directory(data: bytes) -> dict[str, list[_Entry]]:
    told: dict[str, list[_Entry]] = json.loads(zlib.decompress(data))
    return told


def _file(experiment_id: str, run_id: str, series: Mapping[str, Sequence[Metric]]) -> HistoryFile:
    from mlcore import artifacts  # noqa: PLC0415 -- as above

    directory: dict[str, list[_Entry]] = {}
    content = bytearray()
    named = blake2b(digest_size=16)
    for key, points in series.items():
        entries = directory.setdefault(key, [])
        for chunk in chunks(points):
            data, digest = point_columns.pack({key: chunk})
            first, last = chunk[0], chunk[-1]
            entries.append(
                (
                    len(content),
                    len(data),
                    len(chunk),
                    *(first.timestamp, first.step),
                    *(last.timestamp, last.step),
                )
            )
            content += data
            named.update(digest.encode())
    file_id = named.hexdigest()
    place = keys.run_metric_file(experiment_id, run_id, file_id)
    location = f"{artifacts.history_folder(experiment_id, run_id)}/{file_id}/{_NAME}"
    told = json.dumps(directory, separators=(",", ":"), ensure_ascii=False)
    model = RunMetricFile(
        PK=place.pk,
        SK=place.sk,
        experiment_id=experiment_id,
        run_id=run_id,
        location=location,
        directory=zlib.compress(told.encode(), 9),
        updated_at=now_ms(),
        version=1,
    )
    return HistoryFile(location, bytes(content), model.serialize())
