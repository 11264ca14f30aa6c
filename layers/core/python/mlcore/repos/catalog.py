"""Generations of the catalog: immutable, written beside the one that is read, and switched to by
one conditional write.

A generation that was replaced stays for as long as somebody may still page through it. One whose
loader was killed is never read, and the next loader deletes it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Condition, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Change, Put, TransactionFailed, key_in, table
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import KEY
from mlcore.models.catalog import Catalog, CatalogGeneration, CatalogShard
from mlcore.settle import Conflict

WRITING: Final = "writing"
READ: Final = "read"
REPLACED: Final = "replaced"
LEAVING: Final = "leaving"

KEPT_MS: Final = 3_600_000
"""How long a generation that was replaced can still be read."""

LOADING_MS: Final = 900_000
"""How long a loader can be at work: Lambda's longest time."""

SHARD_BYTES: Final = 380_000
"""An item has at most 400 KB."""

_SHARDS_AT_ONCE: Final = 20


Place = tuple[int, int]
"""Where a part of a generation is: the number of its first shard, and how many it has."""

Store = Callable[[str], Place]
"""Stores a part, which is JSON."""


class Current(NamedTuple):
    """The generation that is read; an empty one before the first was loaded."""

    generation: str = ""
    directory: bytes = b""
    """Packed: where its parts are, as their writer says it."""
    version: int = 0
    state: Mapping[str, Any] = {}
    """What its loader says of it: JSON."""


def current() -> Current:
    """One consistent GetItem."""
    raw = table.get(keys.catalog())
    if raw is None:
        return Current()
    item = Catalog.of(raw)
    return Current(item.generation, item.directory or b"", item.version, unpacked(item.data))


def earlier(generation: str) -> Current | None:
    """A generation that was read once; None if it can no longer be. One consistent GetItem."""
    raw = table.get(keys.catalog_generation(generation))
    if raw is None:
        return None
    item = CatalogGeneration.of(raw)
    if item.status not in (READ, REPLACED):
        return None
    return Current(generation, item.directory or b"", 0, unpacked(item.data))


def parts(generation: str, places: Sequence[Place]) -> list[Any] | None:
    """What parts of a generation hold, side by side; None where one is no longer there."""
    numbers = [number for first, count in places for number in range(first, first + count)]
    shards: dict[int, bytes] = {}
    asked = [keys.catalog_shard(generation, number) for number in numbers]
    for number, raw in zip(numbers, table.batch_get(asked), strict=True):
        if raw is None:
            return None
        shards[number] = CatalogShard.of(raw).data
    return [
        unpacked(b"".join(shards[number] for number in range(first, first + count)))
        for first, count in places
    ]


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode(), 6)


def unpacked(data: bytes) -> Any:
    """What JSON that is stored says; None where there is none."""
    return json.loads(zlib.decompress(data)) if data else None


# ------------------------------------------------------------------ writing


def write(
    before: Current, fill: Callable[[Store], Mapping[str, Any]], state: Mapping[str, Any]
) -> Current:
    """Writes a generation and switches to it.

    Args:
        before: what was current when the loader began.
        fill: stores its parts, and answers the directory of them.

    Raises:
        Conflict: another loader was first, or took this one for dead.
    """
    generation = new_ulid()
    place = keys.catalog_generation(generation)
    table.put(_generation(generation, state))
    writing = _Writing(generation)
    directory = _packed(json.dumps(fill(writing.store)))
    writing.end()
    after = Current(generation, directory, before.version + 1, state)
    operations: list[Put | Change] = [Put(_head(after), _unchanged(before))]
    finished = _moved(WRITING, READ)
    finished.set(CatalogGeneration.directory, directory)
    operations.append(Change(place, finished))
    if before.generation:
        old = keys.catalog_generation(before.generation)
        operations.append(Change(old, _moved(READ, REPLACED)))
    try:
        table.transact(operations, generation)
    except TransactionFailed as failed:
        raise Conflict from failed
    return after


class _Writing:
    """The shards of a generation on their way."""

    def __init__(self, generation: str) -> None:
        self._generation = generation
        self._count = 0
        self._waiting: list[dict[str, Any]] = []

    def store(self, text: str) -> Place:
        blob = _packed(text)
        first = self._count
        for begin in range(0, len(blob), SHARD_BYTES):
            key = keys.catalog_shard(self._generation, self._count)
            piece = blob[begin : begin + SHARD_BYTES]
            shard = CatalogShard(PK=key.pk, SK=key.sk, data=piece, updated_at=now_ms())
            self._waiting.append(shard.serialize())
            self._count += 1
            if len(self._waiting) >= _SHARDS_AT_ONCE:
                self.end()
        return first, self._count - first

    def end(self) -> None:
        table.batch_write(self._waiting)
        self._waiting = []


def renew(before: Current, state: Mapping[str, Any]) -> Current:
    """The same generation with another state. Raises Conflict."""
    after = before._replace(version=before.version + 1, state=state)
    try:
        table.put(_head(after), _unchanged(before))
    except ConditionFailed as failed:
        raise Conflict from failed
    return after


def sweep(read: Current, now: int, *, unfinished: bool) -> int:
    """Deletes the generations that nobody reads any more; how many.

    Args:
        unfinished: those that are being written too: whoever writes them has lost to the one that
            is read. Else only those whose loader cannot be alive.
    """
    gone = 0
    found = table.query_all(keys.catalog().pk, prefix=keys.catalog_generation_prefix())
    for raw in list(found):
        item = CatalogGeneration.of(raw)
        if item.generation == read.generation:
            continue
        kept = {REPLACED: KEPT_MS, WRITING: 0 if unfinished else LOADING_MS}.get(item.status, 0)
        if kept and (item.updated_at or 0) + kept > now:
            continue
        if item.status != LEAVING:
            try:
                table.update(keys.catalog_generation(item.generation), _moved(item.status, LEAVING))
            except ConditionFailed:
                continue  # it became the one that is read, or somebody else deletes it
        _delete(item.generation)
        gone += 1
    return gone


def _delete(generation: str) -> None:
    places = table.query_all(keys.catalog_shards(generation), attributes=KEY)
    table.batch_write(deletes=[key_in(raw) for raw in places])
    table.delete(keys.catalog_generation(generation))


def _head(one: Current) -> dict[str, Any]:
    place = keys.catalog()
    item = Catalog(
        PK=place.pk,
        SK=place.sk,
        version=one.version,
        generation=one.generation,
        directory=one.directory,
        data=_packed(json.dumps(one.state)),
        updated_at=now_ms(),
    )
    return item.serialize()


def _unchanged(before: Current) -> Condition:
    condition = Condition()
    if before.version:
        condition.require_equal(Catalog.version, before.version)
    else:
        condition.require_absent(Catalog.PK)
    return condition


def _generation(generation: str, state: Mapping[str, Any]) -> dict[str, Any]:
    place = keys.catalog_generation(generation)
    item = CatalogGeneration(
        PK=place.pk,
        SK=place.sk,
        generation=generation,
        status=WRITING,
        data=_packed(json.dumps(state)),
        updated_at=now_ms(),
    )
    return item.serialize()


def _moved(before: str, after: str) -> Update:
    update = Update()
    update.require_equal(CatalogGeneration.status, before)
    update.set(CatalogGeneration.status, after)
    update.set(CatalogGeneration.updated_at, now_ms())
    return update
