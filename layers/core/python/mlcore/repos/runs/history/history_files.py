"""Metric history in files of the artifact store, for runs with many points.

An experiment's items may take 10 GB, and a write unit costs an eighth of writing a file. So the
points of many batches go into one file as a sequence of segments, each with points of one metric in
order. An item describes the file and sorts right after the run's batches. It contains the file's
*directory*, the list of its segments: offset, length, first and last time and step. So a read
fetches only the segments that it needs. A file never changes; it is deleted with its run
(:mod:`mlcore.repos.files.removable_files`), or after its item is deleted or names another file."""

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
from mlcore.db.table import key_of_item, table
from mlcore.entities.metrics import Metric
from mlcore.ids import now_ms
from mlcore.models.runs import RunMetricFile
from mlcore.repos.runs.history import point_columns, point_positions

SEGMENT_POINTS: Final = 4096
"""Maximum number of points in a segment, and in a pack: about 30 KB."""
DIRECTORY_BYTES: Final = 200_000
"""Maximum bytes of a directory in one item (metric keys and positions), before compression."""
REPLACED: Final = "replaced"
_ENTRY_BYTES: Final = 80
_NAME: Final = "points"
"""The name of each file. Each file has a folder of its own, because only folders are removed."""


class NoStore(errors.TemporarilyUnavailable):
    """Files with metric points cannot be reached: no environment variable names an artifact store,
    or the ids of a run cannot be part of a path in the store."""


class Segment(NamedTuple):
    """A part of a file of metric history that has points of one metric: the file, the part's offset
    and length in it, and its first and last point."""

    location: str
    begin: int
    length: int
    size: int
    """Number of points."""
    first: str
    """Timestamp and step of the first point, in the form of :mod:`.point_positions`."""
    last: str
    """The same of the last point."""


class HistoryFile(NamedTuple):
    """A file of metric history to write, and the item to put for it."""

    location: str
    content: bytes
    item: Raw


_Entry = tuple[int, int, int, int, int, int, int]
"""A segment in the directory of a file: its offset and length in bytes, its number of points, and
timestamp and step of its first and of its last point."""


def chunks(series: Sequence[Metric]) -> Iterator[list[Metric]]:
    """Sorts the points and yields them in lists of at most :data:`SEGMENT_POINTS`, each for one
    segment of a file of metric history or for one pack (an item with a segment).

    Args:
        series: points of one metric of one run, in any order.
    """
    ordered = sorted(series, key=point_positions.order)
    for at in range(0, len(ordered), SEGMENT_POINTS):
        yield ordered[at : at + SEGMENT_POINTS]


def made_of(
    experiment_id: str, run_id: str, series: Mapping[str, Sequence[Metric]]
) -> list[HistoryFile]:
    """Returns the files of metric history to write for points of a run: one file, or several if the
    table of contents of one (its *directory*) would exceed :data:`DIRECTORY_BYTES`.

    Args:
        series: the points by metric, in order and without duplicates.
    """
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


def in_place_of(item: Raw, series: Mapping[str, Sequence[Metric]]) -> HistoryFile:
    """Returns the file of metric history, with its item, that replaces the file described by
    ``item``, of which only some points stay. The new file has another name, so that readers of the
    former item find the former file.

    Args:
        series: the points that stay, by metric, in order and without duplicates.
    """
    view = RunMetricFile.of(item)
    return _file(view.experiment_id, view.run_id, series, instead_of=view.location)


def has_place(experiment_id: str, run_id: str) -> bool:
    """Whether a run's metric history can be stored in files: there is an artifact store, and the
    ids can be segments of a path in it (ids of imported experiments and runs may contain any
    characters)."""
    from mlcore import artifacts  # noqa: PLC0415 -- 5 ms of a cold start that mostly are for nothing

    if not artifacts.has_store():
        return False
    path = f"{experiment_id}/{run_id}"
    try:
        return path.count("/") == 1 and artifacts.exact_path(path) == path
    except errors.InvalidParameterValue:
        return False


def copy(item: Raw, owner: tuple[str, str], suffix: str) -> str:
    """Copies the file of metric history that an item describes to the folder of a run in another
    experiment; returns the location of the copy.

    Args:
        owner: experiment id and run id.
        suffix: makes the location one that was never used before.

    Raises:
        NoStore: the deployment has no artifact store, or the ids cannot be part of a path in it.
        TemporarilyUnavailable: the file cannot be read now.
    """
    from mlcore import artifacts  # noqa: PLC0415 -- as above

    if not has_place(*owner):
        raise NoStore("The files with the history of metrics are out of reach.")
    content = artifacts.store().get(RunMetricFile.of(item).location)
    if content is None:
        raise errors.TemporarilyUnavailable("The history of the run cannot be read. Try again.")
    file_id = keys.parse(*key_of_item(item)).fields["file_id"]
    location = f"{artifacts.history_folder(*owner)}/{file_id}.{suffix}/{_NAME}"
    artifacts.store().put(location, content)
    return location


def store(made: Sequence[HistoryFile]) -> None:
    """Writes files of metric history to the artifact store. The caller must put the items that
    describe them afterwards, so that no reader finds an item without its file."""
    from mlcore import artifacts  # noqa: PLC0415 -- as above

    table.parallel([partial(artifacts.store().put, file.location, file.content) for file in made])


def segments(item: Raw, key: str) -> list[Segment]:
    """Returns the segments (parts with points of one metric) that the metric ``key`` has in the
    file of metric history that an item describes, in the order of the points."""
    item_view = RunMetricFile.of(item)
    return [
        _segment(item_view.location, entry)
        for entry in _directory(item_view.directory).get(key, ())
    ]


def every(item: Raw) -> list[Segment]:
    """Returns the segments (parts with points of one metric) of all metrics in the file of metric
    history that an item describes."""
    item_view = RunMetricFile.of(item)
    listed = _directory(item_view.directory).values()
    return [_segment(item_view.location, entry) for entries in listed for entry in entries]


def folder_of(item: Raw) -> str:
    """Returns the key in the artifact store of the folder that contains only the file of points
    that an item of metric history describes."""
    return RunMetricFile.of(item).location.rpartition("/")[0]


def read(wanted: Iterable[Segment]) -> list[Metric]:
    """Returns the points in the given segments of metric history files. Raises as
    :func:`contents`."""
    in_files = []
    for data in contents(wanted):
        for points in point_columns.unpack(data).values():
            in_files += points
    return in_files


def contents(wanted: Iterable[Segment]) -> list[bytes]:
    """Returns the bytes of the given segments of metric history files, for :mod:`.point_columns` to
    unpack, ordered by file and offset. Adjacent segments are read with one request.

    Raises:
        NoStore: the deployment has no artifact store.
        TemporarilyUnavailable: a file no longer exists, or cannot be read now.
    """
    stretches: list[list[Segment]] = []
    for part in sorted(wanted):
        if stretches and part[:2] == _end(stretches[-1][-1]):
            stretches[-1].append(part)
        else:
            stretches.append([part])
    chunks_read = table.parallel([partial(_read, stretch) for stretch in stretches])
    return [data for parts in chunks_read for data in parts]


def _end(segment: Segment) -> tuple[str, int]:
    return segment.location, segment.begin + segment.length


def _read(stretch: Sequence[Segment]) -> list[bytes]:
    from mlcore import artifacts  # noqa: PLC0415 -- as above

    if not artifacts.has_store():
        raise NoStore("The files with the history of metrics are out of reach.")
    begin = stretch[0].begin
    length = sum(each.length for each in stretch)
    data = artifacts.store().read(stretch[0].location, begin, length)
    if data is None or len(data) != length:
        raise errors.TemporarilyUnavailable("The history of the metric cannot be read. Try again.")
    places = [each.begin - begin for each in stretch]
    return [data[at : at + each.length] for at, each in zip(places, stretch, strict=True)]


def _segment(location: str, entry: _Entry) -> Segment:
    begin, length, size, *moments = entry
    first, last = (point_positions.position_prefix(*moments[at : at + 2]) for at in (0, 2))
    return Segment(location, begin, length, size, first, last)


def _directory(data: bytes) -> dict[str, list[_Entry]]:
    entries: dict[str, list[_Entry]] = json.loads(zlib.decompress(data))
    return entries


def _file(
    experiment_id: str,
    run_id: str,
    series: Mapping[str, Sequence[Metric]],
    *,
    instead_of: str = "",
) -> HistoryFile:
    from mlcore import artifacts  # noqa: PLC0415 -- as above

    directory: dict[str, list[_Entry]] = {}
    content = bytearray()
    named = blake2b(instead_of.encode(), digest_size=16)
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
    item_key = keys.run_metric_file(experiment_id, run_id, file_id)
    location = f"{artifacts.history_folder(experiment_id, run_id)}/{file_id}/{_NAME}"
    directory_text = json.dumps(directory, separators=(",", ":"), ensure_ascii=False)
    model = RunMetricFile(
        PK=item_key.pk,
        SK=item_key.sk,
        experiment_id=experiment_id,
        run_id=run_id,
        location=location,
        directory=zlib.compress(directory_text.encode(), 9),
        event=REPLACED if instead_of else None,
        updated_at=now_ms(),
        version=1,
    )
    return HistoryFile(location, bytes(content), model.serialize())
