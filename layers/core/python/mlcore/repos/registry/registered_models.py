"""Registered models: the ``M#META`` document under the model's name, and the ownership of
partitions.

A model's versions, aliases and overflowing tags are in its *home*: the partition of its first name,
unless that still held another model's items, or the tags overflowed, when the model was created. A
rename moves only ``M#META`` of a model's partitions, in one transaction; the versions stay. A
deletion removes only ``M#META``; the items in the home are deleted later. ``M#HOME`` names the
owner of a partition by its *incarnation* (the model's id among successive models of its name), so a
name is free at once, and a new model of the same name inherits nothing (``docs/adr/0009``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mlcore import errors, reserved_tags
from mlcore.db import keys
from mlcore.db.attribute_types import TextAttribute
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.table import Delete, ItemUpdate, Operation, Put, key_of_item, table
from mlcore.entities.registry import RegisteredModel
from mlcore.ids import now_ms
from mlcore.models.base import KEY
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import ModelAlias, ModelTag
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.prompts import is_prompt
from mlcore.repos import document, document_write_retries, document_writes
from mlcore.repos.document import Document
from mlcore.repos.kubeflow_keys import list_keys
from mlcore.repos.property_types import remove_types
from mlcore.webhooks import announcement


class StoredRegisteredModel(NamedTuple):
    """A registered model as it was read."""

    model: RegisteredModel
    document: Document

    @property
    def item(self) -> RegisteredModelItem:
        return RegisteredModelItem.of(self.document.item)

    @property
    def incarnation(self) -> str:
        return self.item.incarnation

    @property
    def home(self) -> str:
        """The partition key of the model's versions, aliases, and tags that overflow its item."""
        return home_of(self.document.item)

    @property
    def last_version(self) -> int:
        return self.item.last_version

    @property
    def renamed_at(self) -> int:
        return self.item.renamed_at or 0

    @property
    def has_prompt_versions(self) -> bool:
        return self.item.prompt_versions is not None


def find(workspace: str, name: str) -> StoredRegisteredModel | None:
    """Returns a registered model; None if the workspace has none of this name. One consistent
    GetItem, and a Query each for tags and aliases if they overflowed."""
    item = table.get(keys.registered_model(workspace, name))
    return None if item is None else of_item(item)


def get(workspace: str, name: str) -> StoredRegisteredModel:
    """Returns a registered model as :func:`find` does. Raises ResourceDoesNotExist if the workspace
    has none of this name."""
    stored = find(workspace, name)
    if stored is None:
        raise missing(name)
    return stored


def find_many(places: Sequence[keys.Key], workspace: str) -> list[StoredRegisteredModel]:
    """Returns the registered models at the keys ``places``, without those that do not exist in the
    workspace. One BatchGetItem per hundred, and a Query for each map with child items."""
    items = [
        item
        for item in table.batch_get(places)
        if item is not None and RegisteredModelItem.of(item).workspace == workspace
    ]
    return table.parallel([partial(of_item, item) for item in items])


def missing(name: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Registered Model with name={name} not found")


def listed(
    workspace: str,
    prefix: str = "",
    start: str = "",
    *,
    descending: bool = False,
    limit: int | None = None,
) -> Iterator[tuple[str, keys.Key]]:
    """Yields (name, key of the item) of a workspace's registered models in the order of names, from
    GSI5, which may lag.

    Args:
        prefix: the prefix of the names.
        start: the first name to list.
        limit: index entries per request.
    """
    pk = keys.gsi5_model_pk(workspace)
    between = keys.gsi5_model_range(prefix, start, descending=descending)
    entries = table.query_all(
        pk,
        index="GSI5",
        between=between,
        descending=descending,
        limit=limit,
        attributes=[*KEY, RegisteredModelItem.gsi5sk],
    )
    for item in entries:
        yield RegisteredModelItem.of(item).gsi5sk or "", key_of_item(item)


def set_description(stored: StoredRegisteredModel, description: str) -> StoredRegisteredModel:
    """Sets a registered model's description; returns the model as it was before. Raises
    ResourceDoesNotExist if the model was deleted or renamed."""

    def complete(item: RegisteredModelItem, update: Update) -> None:
        update.set(RegisteredModelItem.description, description)
        list_keys.set_update_time(update, RegisteredModelItem, item.number, now_ms())

    return _write(stored, {}, (), complete)


def touch_name(stored: StoredRegisteredModel) -> None:
    """Sets a registered model's times of the last update and of the last rename, as a rename does.
    For a rename to the model's present name, which changes nothing else."""

    now, number = now_ms(), stored.item.number

    def complete(item: RegisteredModelItem, update: Update) -> None:
        list_keys.set_update_time(update, RegisteredModelItem, item.number, now)
        update.set(RegisteredModelItem.renamed_at, now)

    beside: list[Operation] = []
    if number is not None:
        change = Update()
        change.add(ContextRef.version, 1)
        change.set(ContextRef.renamed_at, now)
        change.require_exists(ContextRef.PK)
        beside.append(ItemUpdate(keys.context_ref(number), change))
    _write(stored, {}, (), complete, beside)
    if number is not None:
        list_keys.reorder_versions_of_renamed_model(stored.home, stored.incarnation, now)


def set_tag(stored: StoredRegisteredModel, key: str, value: str) -> None:
    event = announcement.model_tag_set(stored.model, key, value)
    _write(stored, {"tags": {key: value}}, (), _listed_by(key, value, event))


def delete_tag(stored: StoredRegisteredModel, key: str) -> None:
    event = announcement.model_tag_deleted(stored.model, key)
    if key == reserved_tags.IS_PROMPT:
        list_keys.make_versions_listable(stored.home, stored.incarnation, stored.model.workspace)
    _write(stored, {}, [("tags", key)], _listed_by(key, "", event))


def _listed_by(
    key: str, value: str, event: str | None
) -> Callable[[RegisteredModelItem, Update], None]:
    """Returns a function that completes the write of a tag: a model that becomes a prompt is
    removed from Kubeflow's lists, and one that stops being a prompt is added to them."""

    def complete(item: RegisteredModelItem, update: Update) -> None:
        announcing(event)(update)
        if key == reserved_tags.IS_PROMPT and item.number is None:
            if is_prompt({key: value}):
                list_keys.remove_unnumbered_item_keys(update)
            else:
                list_keys.set_unnumbered_item_keys(
                    update, item.workspace, item.type, item.incarnation
                )
            update.require_absent(RegisteredModelItem.number)

    return complete


def announcing(
    event: str | None, attribute: TextAttribute[str | None] = RegisteredModelItem.event
) -> Callable[[Update], None]:
    """Returns a function that adds an event for webhooks to an update of an item.

    Args:
        event: the JSON of the event; None for none.
        attribute: the attribute of the item that takes the event.
    """

    def complete(update: Update) -> None:
        if event is not None:
            update.set(attribute, event)

    return complete


def set_alias(
    stored: StoredRegisteredModel,
    alias: str,
    version: int,
    beside: Sequence[Operation],
    *,
    announced: bool = True,
) -> None:
    """Points an alias of a registered model to a version: writes it in the model's item and as an
    item of its own, in one transaction with ``beside``. Raises TransactionFailed if a condition of
    ``beside`` does not hold.

    Args:
        announced: whether webhooks get an event.
    """
    item = _alias(keys.model_alias(stored.home, alias), alias, str(version))
    event = announcement.alias_set(stored.model, alias, version) if announced else None
    write(stored, {"aliases": {alias: str(version)}}, (), announcing(event), [*beside, Put(item)])


def delete_alias(
    stored: StoredRegisteredModel,
    alias: str,
    *,
    announced: bool = True,
    of_version: int | None = None,
) -> None:
    """Deletes an alias of a registered model.

    Args:
        announced: whether webhooks get an event. MLflow sends none for aliases that are deleted
            with their version.
        of_version: only if the alias points to this version; else raises TransactionFailed.
    """
    key = keys.model_alias(stored.home, alias)
    event = announcement.alias_deleted(stored.model, alias) if announced else None
    same = ConditionExpression()
    if of_version is not None:
        same.require_absent_or_equal(ModelAlias.model_version, of_version)
    deletion = Delete(key, None if of_version is None else same)
    write(stored, {}, [("aliases", alias)], announcing(event), [deletion])


def write(
    stored: StoredRegisteredModel,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
    complete: Callable[[Update], None] = lambda _: None,
    beside: Sequence[Operation] = (),
) -> StoredRegisteredModel:
    """Changes a registered model, retrying on conflicts; returns it as it was before.

    Args:
        sets: values to set, by map and key.
        removals: (map, key) pairs to remove.
        complete: adds further attributes and conditions to the update.
        beside: further operations of the same transaction.

    Raises:
        ResourceDoesNotExist: the model was deleted or renamed.
        TransactionFailed: a condition of ``beside`` does not hold.
    """
    return _write(stored, sets, removals, lambda _, update: complete(update), beside)


def _write(
    stored: StoredRegisteredModel,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
    complete: Callable[[RegisteredModelItem, Update], None],
    beside: Sequence[Operation] = (),
) -> StoredRegisteredModel:
    """Like :func:`write`; ``complete`` is given the item as it was last read. Raises
    ResourceDoesNotExist if the model was deleted or renamed."""

    def mine(item: RegisteredModelItem, update: Update) -> None:
        update.require_equal(RegisteredModelItem.incarnation, stored.incarnation)
        remove_types(
            update, RegisteredModelItem.property_types, item.property_types, sets, removals
        )
        complete(item, update)

    def send(current: StoredRegisteredModel) -> None:
        document_writes.write(current.document, sets, removals, partial(mine, current.item), beside)

    def meanwhile(_: StoredRegisteredModel, item: Raw | None) -> StoredRegisteredModel:
        if item is None or RegisteredModelItem.of(item).incarnation != stored.incarnation:
            raise missing(stored.model.name)
        return of_item(item)

    return document_write_retries.write("model", stored, send, meanwhile)


def home_of(item: Raw) -> str:
    """Returns the partition key of a registered model's versions, from the model's item."""
    model = RegisteredModelItem.of(item)
    return model.PK if model.home is None else model.home


def of_item(raw: Raw) -> StoredRegisteredModel:
    loaded = document.load(raw, (home_of(raw),), MAPS)
    item = RegisteredModelItem.of(raw)
    model = RegisteredModel(
        name=item.name,
        workspace=item.workspace,
        creation_timestamp=item.creation_time,
        last_updated_timestamp=item.last_update_time,
        description=item.description,
        tags=loaded.texts("tags"),
        aliases={alias: int(text) for alias, text in loaded.texts("aliases").items()},
        latest={stage: int(version) for stage, version in item.latest.items()},
    )
    return StoredRegisteredModel(model, loaded)


def _tag(item_key: keys.Key, key: str, value: str) -> Raw:
    return ModelTag(PK=item_key.pk, SK=item_key.sk, key=key, value=value).serialize()


def _alias(key: keys.Key, alias: str, version: str) -> Raw:
    item = ModelAlias(PK=key.pk, SK=key.sk, key=alias, alias=alias, model_version=int(version))
    return item.serialize()


MAPS: document.Maps = {
    "tags": document.Map(
        RegisteredModelItem.tags,
        document.REPLACE,
        lambda _: keys.model_tag_prefix(),
        lambda owner, key: keys.model_tag(owner[0], key),
        _tag,
    ),
    "aliases": document.Map(
        RegisteredModelItem.aliases,
        document.REPLACE,
        lambda _: keys.model_alias_prefix(),
        lambda owner, alias: keys.model_alias(owner[0], alias),
        _alias,
    ),
}
"""The map attributes of ``M#META``; the owner of its children is (home,)."""
