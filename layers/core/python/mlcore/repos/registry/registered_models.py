"""Registered models: the ``M#META`` document under the model's name, and who owns which partition.

A model's versions, aliases and overflowing tags are in its home: its own partition, unless that was
full of another model's when it was created. Renaming moves only ``M#META``, in one transaction, and
the versions stay where they are; deleting removes only ``M#META``, and what was in its home can be
cleared at leisure. ``M#HOME`` says whose a partition is, so a name is free at once, and nothing of
a former model comes back with it (decision 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.attributes import TextAttribute
from mlcore.db.expression import Raw, Update
from mlcore.db.table import Change, Delete, Operation, Put, key_in, table
from mlcore.entities.registry import RegisteredModel
from mlcore.ids import now_ms
from mlcore.models.base import KEY
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import ModelAlias, ModelTag
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.prompts import IS_PROMPT, is_prompt
from mlcore.repos import document, document_writes, settlement
from mlcore.repos.document import Document
from mlcore.repos.kubeflow import listing
from mlcore.repos.kubeflow.tags import untype
from mlcore.webhooks import announcement


class StoredRegisteredModel(NamedTuple):
    """A model as it was read."""

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
        """The partition key of its versions."""
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
    """One consistent GetItem (a second request when tags overflowed)."""
    item = table.get(keys.registered_model(workspace, name))
    return None if item is None else of_item(item)


def get(workspace: str, name: str) -> StoredRegisteredModel:
    """As :func:`find`. Raises ResourceDoesNotExist."""
    found = find(workspace, name)
    if found is None:
        raise missing(name)
    return found


def find_many(places: Sequence[keys.Key], workspace: str) -> list[StoredRegisteredModel]:
    """Those of the models that exist in the workspace; one BatchGetItem for each hundred."""
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
    """The models of a workspace by name, through GSI5, which may lag: (name, key) pairs.

    Args:
        prefix: what the names begin with.
        start: the first name to be listed.
        limit: names that one request reads.
    """
    pk = keys.gsi5_model_pk(workspace)
    between = keys.gsi5_model_range(prefix, start, descending=descending)
    found = table.query_all(
        pk,
        index="GSI5",
        between=between,
        descending=descending,
        limit=limit,
        attributes=[*KEY, RegisteredModelItem.gsi5sk],
    )
    for item in found:
        yield RegisteredModelItem.of(item).gsi5sk or "", key_in(item)


def set_description(stored: StoredRegisteredModel, description: str) -> StoredRegisteredModel:
    """Raises ResourceDoesNotExist when the model is gone."""

    def complete(item: RegisteredModelItem, update: Update) -> None:
        update.set(RegisteredModelItem.description, description)
        listing.updated(update, RegisteredModelItem, item.number, now_ms())

    return _write(stored, {}, (), complete)


def touch_name(stored: StoredRegisteredModel) -> None:
    """A model that is renamed to the name it has: only times move."""

    now, number = now_ms(), stored.item.number

    def complete(item: RegisteredModelItem, update: Update) -> None:
        listing.updated(update, RegisteredModelItem, item.number, now)
        update.set(RegisteredModelItem.renamed_at, now)

    beside: list[Operation] = []
    if number is not None:
        change = Update()
        change.add(ContextRef.version, 1)
        change.set(ContextRef.renamed_at, now)
        change.require_exists(ContextRef.PK)
        beside.append(Change(keys.context_ref(number), change))
    _write(stored, {}, (), complete, beside)
    if number is not None:
        listing.renamed(stored.home, stored.incarnation, now)


def set_tag(stored: StoredRegisteredModel, key: str, value: str) -> None:
    said = announcement.model_tag_set(stored.model, key, value)
    _write(stored, {"tags": {key: value}}, (), _listed_by(key, value, said))


def delete_tag(stored: StoredRegisteredModel, key: str) -> None:
    said = announcement.model_tag_deleted(stored.model, key)
    if key == IS_PROMPT:
        listing.enlist_versions(stored.home, stored.incarnation, stored.model.workspace)
    _write(stored, {}, [("tags", key)], _listed_by(key, "", said))


def _listed_by(
    key: str, value: str, said: str | None
) -> Callable[[RegisteredModelItem, Update], None]:
    """Completes the write of a tag: a prompt is in no list of models that Kubeflow's API shows."""

    def complete(item: RegisteredModelItem, update: Update) -> None:
        saying(said)(update)
        if key == IS_PROMPT and item.number is None:
            if is_prompt({key: value}):
                listing.set_hidden(update)
            else:
                listing.set_unseen(update, item.workspace, item.type, item.incarnation)
            update.require_absent(RegisteredModelItem.number)

    return complete


def saying(
    event: str | None, attribute: TextAttribute[str | None] = RegisteredModelItem.event
) -> Callable[[Update], None]:
    """Lets a write announce itself to webhooks, by this attribute of the item that it writes."""

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
    """One transaction over the model, the alias's item and what else there is.

    Raises:
        TransactionFailed: a condition of ``beside`` does not hold.
    """
    item = _alias(keys.model_alias(stored.home, alias), alias, str(version))
    said = announcement.alias_set(stored.model, alias, version) if announced else None
    write(stored, {"aliases": {alias: str(version)}}, (), saying(said), [*beside, Put(item)])


def delete_alias(stored: StoredRegisteredModel, alias: str, *, announced: bool = True) -> None:
    """MLflow does not announce the aliases that go with their version."""
    place = keys.model_alias(stored.home, alias)
    said = announcement.alias_deleted(stored.model, alias) if announced else None
    write(stored, {}, [("aliases", alias)], saying(said), [Delete(place)])


def write(
    stored: StoredRegisteredModel,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
    complete: Callable[[Update], None] = lambda _: None,
    beside: Sequence[Operation] = (),
) -> StoredRegisteredModel:
    """Writes the model, whoever else writes it meanwhile; answers it as it was before. Raises
    ResourceDoesNotExist: the model is gone from its name."""
    return _write(stored, sets, removals, lambda _, update: complete(update), beside)


def _write(
    stored: StoredRegisteredModel,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
    complete: Callable[[RegisteredModelItem, Update], None],
    beside: Sequence[Operation] = (),
) -> StoredRegisteredModel:
    """As :func:`write`; ``complete`` is given the item as it was last read.

    Raises:
        ResourceDoesNotExist: the model is gone from its name.
    """

    def mine(item: RegisteredModelItem, update: Update) -> None:
        update.require_equal(RegisteredModelItem.incarnation, stored.incarnation)
        untype(update, RegisteredModelItem.property_types, item.property_types, sets, removals)
        complete(item, update)

    def send(current: StoredRegisteredModel) -> None:
        document_writes.write(current.document, sets, removals, partial(mine, current.item), beside)

    def meanwhile(_: StoredRegisteredModel, item: Raw | None) -> StoredRegisteredModel:
        if item is None or RegisteredModelItem.of(item).incarnation != stored.incarnation:
            raise missing(stored.model.name)
        return of_item(item)

    return settlement.write("model", stored, send, meanwhile)


def home_of(item: Raw) -> str:
    """The partition of a model's versions."""
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


def _tag(place: keys.Key, key: str, value: str) -> Raw:
    return ModelTag(PK=place.pk, SK=place.sk, key=key, value=value).serialize()


def _alias(place: keys.Key, alias: str, version: str) -> Raw:
    item = ModelAlias(PK=place.pk, SK=place.sk, key=alias, alias=alias, model_version=int(version))
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
