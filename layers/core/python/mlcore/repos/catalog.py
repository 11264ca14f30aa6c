"""Generations (complete loads) of Kubeflow's model catalog. The contents of a generation are never
changed: each load writes a new one beside the current one, and one transaction makes the new one
current.

A replaced generation is kept for an hour, because a client may still page through it. A generation
whose loader was killed stays unfinished and is never read; a later loader deletes it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import ItemUpdate, Put, TransactionFailed, key_of_item, table
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import KEY
from mlcore.models.catalog import Catalog, CatalogGeneration, CatalogShard
from mlcore.optimistic_retry import WriteConflict

WRITING: Final = "writing"
READ: Final = "read"
REPLACED: Final = "replaced"
LEAVING: Final = "leaving"

KEPT_MS: Final = 3_600_000
"""How long a generation (a complete load of the catalog) can be read after it was replaced."""

LOADING_MS: Final = 900_000
"""How long a loader may take: Lambda's maximum."""

SHARD_BYTES: Final = 380_000
"""Maximum bytes of one shard: an item has at most 400 KB."""

_SHARDS_AT_ONCE: Final = 20


PartLocation = tuple[int, int]
"""Position of a part in its generation: (number of its first shard, number of shards)."""

Store = Callable[[str], PartLocation]
"""Stores a part, given as JSON, and returns its position."""


class Current(NamedTuple):
    """The current generation (the last complete load of the model catalog); all fields are empty
    before the first load."""

    generation: str = ""
    directory: bytes = b""
    """The compressed list of where the generation's parts are stored, in the loader's format."""
    version: int = 0
    state: Mapping[str, Any] = {}
    """JSON that the loader stored with the generation."""


def current() -> Current:
    """Returns the current generation of the model catalog (its last complete load); one consistent
    GetItem."""
    raw = table.get(keys.catalog())
    if raw is None:
        return Current()
    item = Catalog.of(raw)
    return Current(item.generation, item.directory or b"", item.version, unpacked(item.data))


def earlier(generation: str) -> Current | None:
    """Returns a generation (a complete load of the model catalog) by its id, if it is or was the
    current one; None if it was deleted or never completed. One consistent GetItem."""
    raw = table.get(keys.catalog_generation(generation))
    if raw is None:
        return None
    item = CatalogGeneration.of(raw)
    if item.status not in (READ, REPLACED):
        return None
    return Current(generation, item.directory or b"", 0, unpacked(item.data))


def parts(generation: str, places: Sequence[PartLocation]) -> list[Any] | None:
    """Returns the parsed JSON of parts of a generation (one load of the catalog), read in parallel;
    None if a part no longer exists.

    Args:
        places: the position of each part, from the directory of the generation.
    """
    numbers = [number for first, count in places for number in range(first, first + count)]
    shards: dict[int, bytes] = {}
    shard_keys = [keys.catalog_shard(generation, number) for number in numbers]
    for number, raw in zip(numbers, table.batch_get(shard_keys), strict=True):
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
    """Decompresses stored bytes of the model catalog and parses them as JSON; returns None for
    empty bytes."""
    return json.loads(zlib.decompress(data)) if data else None


# ------------------------------------------------------------------ writing


def write(
    before: Current, fill: Callable[[Store], Mapping[str, Any]], state: Mapping[str, Any]
) -> Current:
    """Writes a new generation (a complete load of the model catalog) and makes it the current one.

    Args:
        before: the current generation when the loader started.
        fill: is given a function that stores one part; stores all parts with it and returns the
            directory of their positions.
        state: JSON of the loader, stored with the generation.

    Raises:
        WriteConflict: another loader wrote the current generation or its state first, or took this
            loader for a killed one and deleted its parts.
    """
    generation = new_ulid()
    key = keys.catalog_generation(generation)
    table.put(_generation(generation, state))
    writing = _Writing(generation)
    directory = _packed(json.dumps(fill(writing.store)))
    writing.end()
    after = Current(generation, directory, before.version + 1, state)
    operations: list[Put | ItemUpdate] = [Put(_head(after), _unchanged(before))]
    finished = _moved(WRITING, READ)
    finished.set(CatalogGeneration.directory, directory)
    operations.append(ItemUpdate(key, finished))
    if before.generation:
        old = keys.catalog_generation(before.generation)
        operations.append(ItemUpdate(old, _moved(READ, REPLACED)))
    try:
        table.transact(operations, generation)
    except TransactionFailed as failed:
        raise WriteConflict from failed
    return after


class _Writing:
    """Collects shards of a new generation and writes them in batches."""

    def __init__(self, generation: str) -> None:
        self._generation = generation
        self._count = 0
        self._waiting: list[dict[str, Any]] = []

    def store(self, text: str) -> PartLocation:
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
    """Stores ``state`` in place of the loader's state beside the current generation (the last
    complete load of the catalog), which does not change. Returns the generation with the new state.
    Raises WriteConflict if another loader wrote since ``before`` was read."""
    after = before._replace(version=before.version + 1, state=state)
    try:
        table.put(_head(after), _unchanged(before))
    except ConditionFailed as failed:
        raise WriteConflict from failed
    return after


def sweep(read: Current, now: int, *, unfinished: bool) -> int:
    """Deletes generations (loads of the model catalog) that no request reads any more; returns how
    many. The current generation stays, also one that another loader has made current meanwhile. Of
    an unfinished generation the parts are deleted in each sweep, until its loader must have ended.

    Args:
        read: the current generation as the caller read or wrote it.
        now: the time, in milliseconds since the epoch.
        unfinished: whether to delete every unfinished generation: no other loader can complete one
            any more. If false, only those older than a loader's maximum duration are deleted.
    """
    gone = 0
    items = table.query_all(keys.catalog().pk, prefix=keys.catalog_generation_prefix())
    for raw in list(items):
        item = CatalogGeneration.of(raw)
        if item.generation == read.generation or item.status == READ:
            continue
        kept = {REPLACED: KEPT_MS, WRITING: 0 if unfinished else LOADING_MS}.get(item.status, 0)
        if kept and (item.updated_at or 0) + kept > now:
            continue
        if item.status != LEAVING:
            try:
                table.update(keys.catalog_generation(item.generation), _moved(item.status, LEAVING))
            except ConditionFailed:
                continue  # it became current, was replaced, or another loader deletes it
        _delete_shards(item.generation)
        # A loader that was taken for a killed one may still write shards until its time is over.
        is_leaving = item.status == LEAVING and (item.updated_at or 0) + LOADING_MS <= now
        if item.status == REPLACED or is_leaving:
            table.delete(keys.catalog_generation(item.generation))
            gone += 1
    return gone


def _delete_shards(generation: str) -> None:
    places = table.query_all(keys.catalog_shards(generation), attributes=KEY)
    table.batch_write(deletes=[key_of_item(raw) for raw in places])


def _head(current_generation: Current) -> dict[str, Any]:
    key = keys.catalog()
    item = Catalog(
        PK=key.pk,
        SK=key.sk,
        version=current_generation.version,
        generation=current_generation.generation,
        directory=current_generation.directory,
        data=_packed(json.dumps(current_generation.state)),
        updated_at=now_ms(),
    )
    return item.serialize()


def _unchanged(before: Current) -> ConditionExpression:
    condition = ConditionExpression()
    if before.version:
        condition.require_equal(Catalog.version, before.version)
    else:
        condition.require_absent(Catalog.PK)
    return condition


def _generation(generation: str, state: Mapping[str, Any]) -> dict[str, Any]:
    key = keys.catalog_generation(generation)
    item = CatalogGeneration(
        PK=key.pk,
        SK=key.sk,
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
