"""Index keys by which the lists of Kubeflow's API find an item.

Kubeflow's API needs an integer id, called the number here. An item that MLflow creates has none and
is indexed as unnumbered until a list of Kubeflow's gives it one. From then on it is indexed by
number, by time of creation and by time of the last update.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.models.base import IndexedItem
from mlcore.models.registry import ModelVersion, RegisteredModel

_MOST_RENAMED: Final = 1_000

Shared = type[RegisteredModel] | type[ModelVersion]
"""Models of items that both MLflow and Kubeflow use, and that appear in every order of a list."""


def numbered_item_keys(workspace: str, kind: str, number: int, created: int, updated: int) -> Raw:
    """Returns the attributes, in DynamoDB's form, by which the indexes find a new item under its
    Kubeflow number, its creation time and the time of its last update. ``created`` and ``updated``
    are milliseconds since the epoch."""
    return _raw(*_index_keys(IndexedItem, workspace, kind, number, created, updated))


def _index_keys(
    item: type[IndexedItem],
    workspace: str,
    kind: str,
    number: int,
    created: int,
    updated: int,
) -> Iterator[tuple[ItemAttribute[str | None], str]]:
    """Yields each key attribute of a numbered item's indexes with its value."""
    gsi1pk, gsi1sk = keys.gsi1_created(workspace, kind, created, number)
    gsi2pk, gsi2sk = keys.gsi2_number(workspace, kind, number)
    gsi4pk, gsi4sk = keys.gsi4_updated(workspace, kind, updated, number)
    yield item.gsi1pk, gsi1pk
    yield item.gsi1sk, gsi1sk
    yield item.gsi2pk, gsi2pk
    yield item.gsi2sk, gsi2sk
    yield item.gsi4pk, gsi4pk
    yield item.gsi4sk, gsi4sk


def set_numbered_item_keys(
    update: Update,
    item: Shared,
    workspace: str,
    kind: str,
    number: int,
    read: Any,
    *,
    renamed_at: int = 0,
) -> None:
    """Adds the index keys of a numbered item to ``update``, which assigns Kubeflow's number to an
    item that MLflow created.

    Args:
        read: the item as it was read; the update fails if it was updated since.
        renamed_at: when its model was renamed, which counts as an update; milliseconds since the
            epoch.
    """
    last_update = max(read.last_update_time, renamed_at)
    update.require_equal(item.last_update_time, read.last_update_time)
    index_keys = _index_keys(item, workspace, kind, number, read.creation_time, last_update)
    for attribute, text in index_keys:
        update.set(attribute, text)


def set_update_time(update: Update, item: Shared, number: int | None, time: int) -> None:
    """Sets in ``update`` the time of an item's last update (milliseconds since the epoch), and the
    item's key in the index that is ordered by these times.

    Args:
        number: Kubeflow's number of the item when it was read. None if it had none: then the update
            sets no key, and fails if the item got a number since.
    """
    update.set(item.last_update_time, time)
    if number is None:
        update.require_absent(item.number)
    else:
        update.set(item.gsi4sk, keys.gsi4_updated_sk(time, number))


def unnumbered_item_keys(workspace: str, kind: str, ulid: str) -> Raw:
    """Returns the index keys of a new item that MLflow creates and that has no Kubeflow number
    yet."""
    gsi2pk, gsi2sk = keys.gsi2_unseen(workspace, kind, ulid)
    return _raw((IndexedItem.gsi2pk, gsi2pk), (IndexedItem.gsi2sk, gsi2sk))


def set_unnumbered_item_keys(update: Update, workspace: str, kind: str, ulid: str) -> None:
    """Adds to ``update`` the keys that index an existing item as one without a Kubeflow number; see
    :func:`unnumbered_item_keys`."""
    gsi2pk, gsi2sk = keys.gsi2_unseen(workspace, kind, ulid)
    update.set(IndexedItem.gsi2pk, gsi2pk)
    update.set(IndexedItem.gsi2sk, gsi2sk)


def remove_unnumbered_item_keys(update: Update) -> None:
    """Adds to ``update``, by which an item becomes a prompt, the removal of the item's keys in the
    index of items without a Kubeflow number. So Kubeflow's lists, which never show prompts, do not
    find the item in that index."""
    update.remove(IndexedItem.gsi2pk)
    update.remove(IndexedItem.gsi2sk)


def make_versions_listable(home: str, incarnation: str, workspace: str) -> None:
    """Adds the versions of a model that have no Kubeflow number to the index of unnumbered items of
    a workspace, so that Kubeflow's lists find them. Idempotent.

    Args:
        home: the partition of the model's versions.
        incarnation: the id of this model among successive models of its name.
    """
    item = ModelVersion
    updates = []
    for raw in table.query_all(home, prefix=keys.model_version_prefix()):
        read = item.of(raw)
        if read.type != item.pattern.name or read.incarnation != incarnation:
            continue
        if read.number is None and read.lsi3sk is not None:
            update = Update()
            set_unnumbered_item_keys(update, workspace, read.type, read.creation_id)
            update.require_absent(item.number)
            update.require_exists(item.lsi3sk)  # deleted versions have none
            updates.append(partial(_update, key_of_item(raw), update))
    table.parallel(updates)


def _update(key: Key, update: Update) -> None:
    with contextlib.suppress(ConditionFailed):  # a list has just numbered it, or it was deleted
        table.update(key, update)


def reorder_versions_of_renamed_model(home: str, incarnation: str, time: int) -> None:
    """Changes the index keys of a renamed model's versions, so that Kubeflow's lists order those
    with a number as if they had been updated when the model was renamed. Idempotent.

    At most 1,000 versions are changed. Lists show the others with the right time, but at the
    position of their own last update.

    Args:
        home: the partition of the model's versions.
        incarnation: the id of this model among successive models of its name.
        time: when the model was renamed, in milliseconds since the epoch.
    """
    item = ModelVersion
    updates = []
    for raw in table.query_all(home, prefix=keys.model_version_prefix()):
        read = item.of(raw)
        if read.type == item.pattern.name and read.incarnation == incarnation and read.number:
            update = Update()
            update.set(item.gsi4sk, keys.gsi4_updated_sk(time, read.number))
            update.require_equal(item.version, read.version)
            updates.append(partial(_update, key_of_item(raw), update))
            if len(updates) == _MOST_RENAMED:
                break
    table.parallel(updates)


def hide_prompt(key: Key) -> None:
    """Removes a prompt's item from the index of unnumbered items, so that Kubeflow's lists never
    show it. Does nothing if the item has a number or was deleted."""
    update = Update()
    remove_unnumbered_item_keys(update)
    update.require_absent(IndexedItem.gsi1pk)  # a numbered item has this key
    update.require_exists(IndexedItem.PK)
    _update(key, update)


def _raw(*values: tuple[ItemAttribute[Any], Any]) -> Raw:
    return {attribute.attr_name: attribute.raw(value) for attribute, value in values}
