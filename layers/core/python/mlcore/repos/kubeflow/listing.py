"""Lists of what has a number, by number, time of creation or time of the last update, as global
indexes have them; and what MLflow made and no list has shown yet. All of it may lag: whoever lists
reads the items themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from mlcore.db import keys
from mlcore.db.attributes import ItemAttribute
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.keys.pattern import LAST
from mlcore.db.table import key_in, table
from mlcore.kubeflow.pages import Order
from mlcore.models.base import KEY, IndexedItem
from mlcore.models.kubeflow import NumberedItem
from mlcore.models.registry import ModelVersion, RegisteredModel

READ_TOGETHER: Final = 100
"""Items that one BatchGetItem reads."""
_MOST_RENAMED: Final = 1_000
_MOST_KEYS: Final = 1_000
"""Index entries that one Query reads."""

Shared = type[RegisteredModel] | type[ModelVersion]
"""Items that MLflow and Kubeflow share, and that lists show in every order."""


class Place(NamedTuple):
    """Where an entity is, and its position in the order: (number or time, number)."""

    key: Key
    position: tuple[int, int]

    @property
    def number(self) -> int:
        return self.position[1]


# ------------------------------------------------------------------ keys of items


def attributes(workspace: str, kind: str, number: int, created: int, updated: int) -> Raw:
    """The index keys of a new item that has its number."""
    return _raw(*_index_keys(IndexedItem, workspace, kind, number, created, updated))


def _index_keys(
    item: type[IndexedItem],
    workspace: str,
    kind: str,
    number: int,
    created: int,
    updated: int,
) -> Iterator[tuple[ItemAttribute[str | None], str]]:
    """What each attribute of an index key holds."""
    gsi1pk, gsi1sk = keys.gsi1_created(workspace, kind, created, number)
    gsi2pk, gsi2sk = keys.gsi2_number(workspace, kind, number)
    gsi4pk, gsi4sk = keys.gsi4_updated(workspace, kind, updated, number)
    yield item.gsi1pk, gsi1pk
    yield item.gsi1sk, gsi1sk
    yield item.gsi2pk, gsi2pk
    yield item.gsi2sk, gsi2sk
    yield item.gsi4pk, gsi4pk
    yield item.gsi4sk, gsi4sk


def enlist(
    update: Update,
    item: Shared,
    workspace: str,
    kind: str,
    number: int,
    read: Any,
    *,
    renamed_at: int = 0,
) -> None:
    """Gives an item of MLflow's its index keys together with its number.

    Args:
        read: the item as it was read; the update fails if it was updated meanwhile.
        renamed_at: when its model was renamed, which counts as an update.
    """
    last_update = max(read.last_update_time, renamed_at)
    update.require_equal(item.last_update_time, read.last_update_time)
    found = _index_keys(item, workspace, kind, number, read.creation_time, last_update)
    for attribute, text in found:
        update.set(attribute, text)


def updated(update: Update, item: Shared, number: int | None, time: int) -> None:
    """Sets the time of the last update of an item, and its place in the order of these times.

    Args:
        number: what it had when it was read; the update fails if it got one since.
    """
    update.set(item.last_update_time, time)
    if number is None:
        update.require_absent(item.number)
    else:
        update.set(item.gsi4sk, keys.gsi4_updated_sk(time, number))


def unseen_attributes(workspace: str, kind: str, ulid: str) -> Raw:
    """The index keys of a new item of MLflow's, until a list gives it a number."""
    gsi2pk, gsi2sk = keys.gsi2_unseen(workspace, kind, ulid)
    return _raw((IndexedItem.gsi2pk, gsi2pk), (IndexedItem.gsi2sk, gsi2sk))


def set_unseen(update: Update, workspace: str, kind: str, ulid: str) -> None:
    """As :func:`unseen_attributes`, of an item that is there."""
    gsi2pk, gsi2sk = keys.gsi2_unseen(workspace, kind, ulid)
    update.set(IndexedItem.gsi2pk, gsi2pk)
    update.set(IndexedItem.gsi2sk, gsi2sk)


def set_hidden(update: Update) -> None:
    """Takes an item out of what lists have to look at: it is a prompt's."""
    update.remove(IndexedItem.gsi2pk)
    update.remove(IndexedItem.gsi2sk)


def enlist_versions(home: str, incarnation: str, workspace: str) -> None:
    """Lets lists of a workspace find the versions of a model that have no number; again without
    effect."""
    item = ModelVersion
    updates = []
    for raw in table.query_all(home, prefix=keys.model_version_prefix()):
        read = item.of(raw)
        if read.type != item.pattern.name or read.incarnation != incarnation:
            continue
        if read.number is None and read.lsi3sk is not None:
            update = Update()
            set_unseen(update, workspace, read.type, read.creation_id)
            update.require_absent(item.number)
            update.require_exists(item.lsi3sk)  # what is deleted has none
            updates.append(partial(_update, key_in(raw), update))
    table.parallel(updates)


def _update(key: Key, update: Update) -> None:
    with contextlib.suppress(ConditionFailed):  # a list has just given it a number, or it is gone
        table.update(key, update)


def renamed(home: str, incarnation: str, time: int) -> None:
    """Puts the versions of a model that was renamed where lists by the last update expect them;
    again without effect. Of very many the first ones: the others are shown with their time, but
    among those that were updated when they themselves were."""
    item = ModelVersion
    updates = []
    for raw in table.query_all(home, prefix=keys.model_version_prefix()):
        read = item.of(raw)
        if read.type == item.pattern.name and read.incarnation == incarnation and read.number:
            update = Update()
            update.set(item.gsi4sk, keys.gsi4_updated_sk(time, read.number))
            update.require_equal(item.version, read.version)
            updates.append(partial(_update, key_in(raw), update))
            if len(updates) == _MOST_RENAMED:
                break
    table.parallel(updates)


def hide(key: Key) -> None:
    """Takes an item of a prompt out of what lists have to look at."""
    update = Update()
    set_hidden(update)
    update.require_absent(IndexedItem.gsi1pk)  # what has a number has this
    update.require_exists(IndexedItem.PK)
    _update(key, update)


def _raw(*values: tuple[ItemAttribute[Any], Any]) -> Raw:
    return {attribute.attr_name: attribute.raw(value) for attribute, value in values}


# ------------------------------------------------------------------ reading


def places(workspace: str, kind: str, order: Order) -> Iterator[Place]:
    """What has a number, from where the order goes on; as many entries in a request as its page
    needs."""
    index, pk, sort_key = _INDEXES[order.by]
    limit = min(_MOST_KEYS, max(READ_TOGETHER, order.size + 1)) if order.size else _MOST_KEYS
    between = None
    if order.after is not None:
        value, number = order.after
        edge = sort_key(value, max(0, number - 1) if order.descending else number + 1)
        between = ("-", edge) if order.descending else (edge, LAST)
    asked: list[ItemAttribute[Any]] = [*KEY, getattr(NumberedItem, f"{index.lower()}sk")]
    for item in table.query_all(
        pk(workspace, kind),
        index=index,
        between=between,
        descending=order.descending,
        limit=limit,
        attributes=asked,
    ):
        entry = NumberedItem.of(item)
        text: str = getattr(entry, f"{index.lower()}sk") or ""
        position = (int(text), int(text)) if order.is_by_id else keys.time_and_number(text)
        yield Place(key_in(item), position)


def unseen(workspace: str, kind: str) -> Iterator[Key]:
    """Where the items are that no list has shown yet; some may have their number by now. None of a
    kind without a name: MLflow makes nothing of it."""
    if not kind:
        return iter(())
    pk = keys.gsi2_unseen(workspace, kind, "0").pk
    return map(key_in, table.query_all(pk, index="GSI2", limit=_MOST_KEYS, attributes=KEY))


_INDEXES: Final[dict[str, tuple[str, Any, Any]]] = {
    "ID": (
        "GSI2",
        lambda workspace, kind: keys.gsi2_number(workspace, kind, 0).pk,
        lambda _value, number: keys.gsi2_number("", "", number).sk,
    ),
    "CREATE_TIME": (
        "GSI1",
        lambda workspace, kind: keys.gsi1_created(workspace, kind, 0, 0).pk,
        keys.gsi4_updated_sk,
    ),
    "LAST_UPDATE_TIME": (
        "GSI4",
        lambda workspace, kind: keys.gsi4_updated(workspace, kind, 0, 0).pk,
        keys.gsi4_updated_sk,
    ),
}
"""By the name of an order: its index, its partition, and the sort key of a position."""
