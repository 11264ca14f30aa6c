"""Landing objects: what one batch of the stream brought, as compressed lines of JSON; decides
nothing.

A line is a point (``PointRow`` under short names), or names what changed: ``{"x": experiment}`` or
``{"x": experiment, "r": run}``. How that is now is read from the table when it is published, so a
line that comes twice, late or out of order changes nothing.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from mlcore.system_tables.location import store
from mlcore.system_tables.rows import PointRow

FOLDER: Final = "landing"
BACKFILL: Final = "backfill-"
"""How shards begin that no stream has: they hold what is in the table already."""
_SUFFIX: Final = ".ndjson.gz"
_LEVEL: Final = 6

NAMES: Final = ("x", "r", "k", "s", "t", "v", "i", "d")
"""Names of a line's fields, in the order of ``PointRow``."""


class Changed(NamedTuple):
    """What is to be read again: experiments, and runs as (experiment id, run id)."""

    experiments: Collection[str]
    runs: Collection[tuple[str, str]]


def name_of(shard: str, first: str, last: str) -> str:
    """The name of a batch's object. Numbers of one shard sort as they came; a batch that is
    delivered again has the same name and replaces its object."""
    return f"{shard}/{first.zfill(40)}-{last.zfill(40)}"


def encode(points: Iterable[PointRow], changed: Changed) -> bytes:
    """Equal contents give equal bytes."""
    lines = [json.dumps({"x": one}) for one in sorted(changed.experiments)]
    lines += [json.dumps({"x": one, "r": run}) for one, run in sorted(changed.runs)]
    lines += [json.dumps(dict(zip(NAMES, point, strict=True))) for point in points]
    return gzip.compress("\n".join([*lines, ""]).encode(), _LEVEL, mtime=0)


def put(name: str, content: bytes) -> None:
    store().put(f"{FOLDER}/{name}{_SUFFIX}", content)


def waiting(most_bytes: float = math.inf) -> Iterator[tuple[str, int]]:
    """Keys and sizes of objects that nobody has taken away, oldest of each shard first, those of a
    backfill last, until they have so many bytes together (but always one)."""
    total = 0
    for shard in _shards():
        for key, size in _landed(shard):
            total += size
            yield key, size
            if total >= most_bytes:
                return


def age(now: float) -> float | None:
    """For how many seconds the oldest that a stream brought has waited; None when none does.

    One list, and for each shard that has any one more and one HEAD: what was landed first has the
    first name of its shard.

    Args:
        now: seconds since 1970.
    """
    landed = []
    for shard in _shards():
        if shard.startswith(BACKFILL):
            break
        oldest = next(_landed(shard), None)
        # What another publisher takes away meanwhile waits no more.
        if oldest is not None and (found := store().open(oldest[0], 0)) is not None:
            landed.append(found.modified)
    return max(0.0, now - min(landed)) if landed else None


def _shards() -> list[str]:
    """Those of streams first: what is written now does not wait for a backfill."""
    names = [entry.name for entry in store().list(FOLDER) if entry.size is None]
    return sorted(names, key=lambda name: (name.startswith(BACKFILL), name))


def _landed(shard: str) -> Iterator[tuple[str, int]]:
    """Keys and sizes of a shard's objects, oldest first."""
    for entry in store().list(f"{FOLDER}/{shard}"):
        if entry.size is not None and entry.name.endswith(_SUFFIX):
            yield f"{FOLDER}/{shard}/{entry.name}", entry.size


def read(keys: Sequence[str]) -> Iterator[bytes]:
    """The contents of objects, unpacked; one that somebody else has taken away is left out."""
    for key in keys:
        content = store().get(key)
        if content is not None:
            yield gzip.decompress(content)


def remove(keys: Iterable[str]) -> None:
    for key in keys:
        store().delete(key)
