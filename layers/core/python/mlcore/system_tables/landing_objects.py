"""Reads and writes landing objects. Each holds a batch of changes (from the stream, a backfill or
the audit) as compressed lines of JSON, until the publisher adds it to the system tables.

An object of the kind :data:`RUNS` is about experiments, runs and points, one of the kind
:data:`TRACES` about traces (``trace_landing``), one of the kind :data:`ENTITIES` about registered
models and other entities outside of experiments (``entity_landing``). Objects of the kinds
:data:`AUDIT` (of a laptop) and :data:`AUDIT_LOGS` (written by Firehose in AWS) are about audited
requests (``audit_landing``).
The kind is the end of the object's name, and a publisher ignores kinds that it does not know:
version 0.1.0 knows only the first. Objects are grouped by shard of the stream; a backfill and the
audit have shards of their own.

A line about runs is a metric point (``PointRow`` with short field names), or names a changed
experiment or run: ``{"x": experiment}`` or ``{"x": experiment, "r": run}``, whose current state the
publisher reads from the table. So a line that is delivered twice, late or out of order has no
further effect. A line that names a run may also have the record id (``f``), the metric (``k``) and
the time of insertion (``i``) of a point whose request was refused after the point was written.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from mlcore.system_tables.run_rows import PointRow
from mlcore.system_tables.storage import store

FOLDER: Final = "landing"
BACKFILL: Final = "backfill-"
"""Prefix of the shard names of a backfill, which no stream has."""
RUNS: Final = ".ndjson.gz"
TRACES: Final = ".traces.gz"
ENTITIES: Final = ".entities.gz"
AUDIT: Final = ".audit.gz"
AUDIT_LOGS: Final = ".logs.gz"
DEFERRED: Final = ".deferred.gz"
"""The kind of landing objects about traces that could not be published, as they did not fit into
memory or had a value that cannot be a row's. It is not in :data:`KINDS`: these traces are retried
once an hour, before the tables are maintained."""
KINDS: Final = (RUNS, TRACES, ENTITIES, AUDIT, AUDIT_LOGS)
"""The kinds of landing objects: suffixes of their names, of which none is a suffix of another."""
_DEPTH: Final = 2
"""Number of slashes in the key of a landing object, which is directly below its shard's folder."""
_BACKFILLS: Final = f"{FOLDER}/{BACKFILL}"
_LEVEL: Final = 6

NAMES: Final = ("x", "r", "k", "s", "t", "v", "i", "d")
"""Names of a line's fields, in the order of ``PointRow``."""


class Landed(NamedTuple):
    """A landing object: its key, its size in bytes and the time at which it was written (seconds
    since 1970)."""

    key: str
    size: int
    modified: int


class Changed(NamedTuple):
    """The experiments and runs that changed, so that the system tables' publisher must read them
    again; runs as (experiment id, run id)."""

    experiments: Collection[str]
    runs: Collection[tuple[str, str]]


def name_of(shard: str, first: str, last: str) -> str:
    """Returns the name of the landing object of a batch of stream records (``first`` to ``last``).
    Names of one shard sort in the order of the stream. A batch that is delivered again has the same
    name and replaces its object."""
    return f"{shard}/{first.zfill(40)}-{last.zfill(40)}"


def encode(points: Iterable[PointRow], changed: Changed, refused: Iterable[PointRow] = ()) -> bytes:
    """Returns the content of a landing object about runs: compressed lines of JSON, one for each
    metric point, for each changed experiment or run, and for each point whose request was refused
    after an earlier landing object had got the point. Equal inputs give equal bytes."""
    lines = [json.dumps({"x": experiment}) for experiment in sorted(changed.experiments)]
    lines += [
        json.dumps({"x": experiment_id, "r": run}) for experiment_id, run in sorted(changed.runs)
    ]
    lines += [
        json.dumps(
            {
                "x": point.experiment_id,
                "r": point.run_id,
                "k": point.metric_name,
                "i": point.insert_time,
                "f": point.record_id,
            }
        )
        for point in refused
    ]
    lines += [json.dumps(dict(zip(NAMES, point, strict=True))) for point in points]
    return compress(lines)


def compress(lines: Iterable[str]) -> bytes:
    """Compresses lines of JSON to the content of a landing object (a file of changes)."""
    return gzip.compress("\n".join([*lines, ""]).encode(), _LEVEL, mtime=0)


def put(name: str, content: bytes, kind: str = RUNS) -> None:
    store().put(f"{FOLDER}/{name}{kind}", content)


def waiting(kinds: tuple[str, ...] = KINDS) -> list[Landed]:
    """Returns the landing objects of these kinds that are not yet published: by shard, oldest
    first, shards of a backfill last, so that new data does not wait for a backfill.

    Costs one list request for each thousand objects.
    """
    landed = [
        Landed(file.key, file.size, file.modified)
        for file in store().below(FOLDER)
        if file.key.endswith(kinds) and file.key.count("/") == _DEPTH
    ]
    return sorted(landed, key=lambda each: each.key.startswith(_BACKFILLS))


def without_deferred(landed: Iterable[Landed]) -> list[Landed]:
    """Returns the landing objects that a publication without upkeep publishes."""
    return [each for each in landed if not each.key.endswith(DEFERRED)]


def age(landed: Iterable[Landed], now: float) -> float | None:
    """Returns for how many seconds the oldest of these landing objects has waited to be published;
    None if none waits. Objects of a backfill do not count, except deferred traces.

    Args:
        now: seconds since 1970.
    """
    times = [
        each.modified
        for each in landed
        if each.key.endswith(DEFERRED) or not each.key.startswith(_BACKFILLS)
    ]
    return max(0.0, now - min(times)) if times else None


def read(keys: Sequence[str]) -> Iterator[bytes]:
    """Yields the decompressed contents of landing objects (files of changes to publish to the
    system tables), without those that another publisher has removed meanwhile."""
    for key in keys:
        content = store().get(key)
        if content is not None:
            yield gzip.decompress(content)


def remove(keys: Iterable[str]) -> None:
    for key in keys:
        store().delete(key)
