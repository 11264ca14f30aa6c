"""Versions of registered models: items in their model's home (the partition of its versions),
numbered 1, 2, … by the model.

New numbers and changes of stages are written in transactions over the model and its versions. The
item of a deleted version stays and is never shown. The model's item holds the last number given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mlcore import errors, reserved_tags
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import AdditionalOperationFailed
from mlcore.db.table import Check, ItemUpdate, Operation, Put, TransactionFailed, table
from mlcore.entities.registry import ModelVersion, RegisteredModel
from mlcore.ids import new_ulid, now_ms
from mlcore.models.registry import ModelHome, ModelVersionTag, RunModelVersion
from mlcore.models.registry import ModelVersion as ModelVersionItem
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.prompts import is_prompt
from mlcore.repos import document, document_write_retries, document_writes
from mlcore.repos.document import Document
from mlcore.repos.files import location_list
from mlcore.repos.kubeflow_keys import list_keys
from mlcore.repos.property_types import remove_types
from mlcore.repos.registry import registered_models
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.webhooks import announcement

NO_STAGE = "None"
ARCHIVED = "Archived"
DELETED = "Deleted_Internal"
READY = "READY"
MOST_VERSION = 2**63 - 1
READ_TOGETHER = 10
"""Versions per request, where the first one usually decides."""


class StoredModelVersion(NamedTuple):
    """A model version as it was read, with its registered model."""

    version: ModelVersion
    document: Document
    model: StoredRegisteredModel

    @property
    def item(self) -> ModelVersionItem:
        return ModelVersionItem.of(self.document.item)

    @property
    def deleted(self) -> bool:
        return self.version.current_stage == DELETED


def missing(name: str, version: object) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Model Version (name={name}, version={version}) not found")


def get(workspace: str, name: str, version: int) -> StoredModelVersion:
    """Returns a model version; one read, two if the model's versions are not in the partition of
    its name, as after a rename. Raises ResourceDoesNotExist."""
    if not 0 < version <= MOST_VERSION:
        raise missing(name, version)
    key = keys.registered_model(workspace, name)
    model_item, item = table.batch_get([key, keys.model_version(key.pk, version)])
    if model_item is None:
        raise missing(name, version)
    home = registered_models.home_of(model_item)
    if home != key.pk:
        item = table.get(keys.model_version(home, version))
    if item is None:
        raise missing(name, version)
    stored = of_item(item, registered_models.of_item(model_item))
    if stored.deleted:
        raise missing(name, version)
    return stored


def of_model(model: StoredRegisteredModel, version: int) -> StoredModelVersion:
    """Returns a version of ``model`` (one consistent GetItem) or raises ResourceDoesNotExist."""
    item = table.get(keys.model_version(model.home, version))
    stored = None if item is None else of_item(item, model)
    if stored is None or stored.deleted:
        raise missing(model.model.name, version)
    return stored


def all_of(model: StoredRegisteredModel) -> Iterator[StoredModelVersion]:
    """Yields a registered model's versions that are not deleted, by number; one Query per MB."""
    for item in table.query_all(model.home, prefix=keys.model_version_prefix()):
        if ModelVersionItem.of(item).type == ModelVersionItem.pattern.name:
            stored = of_item(item, model)
            if not stored.deleted:
                yield stored


def of_run(workspace: str, run_id: str) -> list[StoredModelVersion]:
    """Returns the model versions that were created from a run, with their models. Reads the run's
    links to versions, then the versions and the items that say which models own them, then the
    models; all consistent, so nothing lags."""
    pk = keys.run_ref(run_id).pk
    linked = map(RunModelVersion.of, table.query_all(pk, prefix=keys.run_model_version_prefix()))
    links = [link for link in linked if link.run_id == run_id]
    places = [keys.model_version(link.home, link.model_version) for link in links]
    homes = [keys.model_home(link.home) for link in links]
    items = table.batch_get([*places, *homes])
    owners = [ModelHome.of(item) for item in items[len(links) :] if item is not None]
    owning = dict.fromkeys(keys.model_at(owner.model_pk) for owner in owners)
    models = {
        model.incarnation: model for model in registered_models.find_many(list(owning), workspace)
    }
    versions = []
    for link, item in zip(links, items[: len(links)], strict=True):
        model = models.get(link.incarnation)
        if model is not None and item is not None:
            stored = of_item(item, model)
            if not stored.deleted and stored.version.run_id == run_id:
                versions.append(stored)
    return versions


def has_prompt_versions(model: StoredRegisteredModel) -> bool:
    """Whether any version of a model, even a deleted one, is tagged as a prompt."""
    if not model.has_prompt_versions:
        return False
    return any(
        ModelVersionItem.of(item).type == ModelVersionItem.pattern.name
        and of_item(item, model).version.tags.get(reserved_tags.IS_PROMPT) == "true"
        for item in table.query_all(
            model.home, prefix=keys.model_version_prefix(), limit=READ_TOGETHER
        )
    )


Also = Callable[[ModelVersion], Sequence[Operation]]
"""Returns further operations for the transaction that creates a version, once its number is
known."""


def create(
    model: StoredRegisteredModel,
    draft: ModelVersion,
    also: Also = lambda _: (),
    more: Raw | None = None,
) -> ModelVersion:
    """Creates a version of a registered model under its next number; executes ``also`` in the same
    transaction. ``more`` are further attributes of the version's item.

    Raises:
        ResourceDoesNotExist: the model was deleted or renamed.
        AdditionalOperationFailed: a condition of ``also`` does not hold.
    """
    creation_id = new_ulid()
    current = model

    def attempt() -> ModelVersion:
        nonlocal current
        version = draft._replace(version=current.last_version + 1, name=current.model.name)
        operations = creation(current, version, creation_id, more)
        try:
            table.transact([*operations, *also(version)], token=new_ulid())
        except TransactionFailed as failed:
            if min(failed.items) >= len(operations):
                raise AdditionalOperationFailed(min(failed.items) - len(operations)) from failed
            made = failed.items.get(1)
            if made is not None and ModelVersionItem.of(made).creation_id == creation_id:
                return version  # the transaction was executed before
            item = failed.items.get(0)
            if item is None and 0 not in failed.items:
                current = registered_models.get(model.model.workspace, model.model.name)
            elif item is None or RegisteredModelItem.of(item).incarnation != model.incarnation:
                raise registered_models.missing(model.model.name) from failed
            else:
                current = registered_models.of_item(item)
            raise WriteConflict from failed
        return version

    return retry_on_conflict("model", attempt)


def creation(
    model: StoredRegisteredModel, version: ModelVersion, creation_id: str, more: Raw | None = None
) -> list[Operation]:
    """Returns the operations that create a model version and make its number the model's greatest;
    ``more`` are further attributes of the version's item."""
    key = keys.model_version(model.home, version.version)
    owner = (model.home, str(version.version))
    attributes, children = document.initial(owner, MAPS, {"tags": version.tags})
    item = ModelVersionItem(
        PK=key.pk,
        SK=key.sk,
        lsi3sk=keys.lsi3_model_version(version.current_stage, version.version),
        incarnation=model.incarnation,
        model_version=version.version,
        creation_id=creation_id,
        description=version.description,
        user_id=version.user_id,
        current_stage=version.current_stage,
        source=version.source,
        storage_location=version.storage_location,
        run_id=version.run_id,
        run_link=version.run_link,
        model_id=version.model_id,
        status=version.status,
        status_message=version.status_message,
        creation_time=version.creation_timestamp,
        last_update_time=version.last_updated_timestamp,
        updated_at=now_ms(),
        event=announcement.version_created(model.model, version),
        version=1,
    )
    change = Update()
    document.touch(change)
    change.set(RegisteredModelItem.last_version, version.version)
    change.set((RegisteredModelItem.latest, version.current_stage), str(version.version))
    list_keys.set_update_time(
        change, RegisteredModelItem, model.item.number, version.last_updated_timestamp
    )
    if version.tags.get(reserved_tags.IS_PROMPT) == "true":
        change.set(RegisteredModelItem.prompt_versions, True)
    change.require_equal(RegisteredModelItem.incarnation, model.incarnation)
    change.require_equal(RegisteredModelItem.last_version, model.last_version)
    absent = ConditionExpression()
    absent.require_absent(ModelVersionItem.PK)
    if more is None and not is_prompt(model.model.tags):
        more = list_keys.unnumbered_item_keys(model.model.workspace, item.type, creation_id)
    operations: list[Operation] = [
        ItemUpdate(model.document.key, change),
        Put({**item.serialize(), **attributes, **(more or {})}, absent),
    ]
    if version.run_id:
        operations.append(Put(_link(model, version)))
    operations += location_list.of_version(
        model.home,
        model.incarnation,
        version.version,
        version.storage_location or version.source,
        model.model.workspace,
    )
    return [*operations, *(Put(child) for child in children)]


def _link(model: StoredRegisteredModel, version: ModelVersion) -> Raw:
    key = keys.run_model_version(version.run_id or "", model.incarnation, version.version)
    item = RunModelVersion(
        PK=key.pk,
        SK=key.sk,
        run_id=version.run_id,
        incarnation=model.incarnation,
        home=model.home,
        model_version=version.version,
        updated_at=now_ms(),
        version=1,
    )
    return item.serialize()


def set_description(stored: StoredModelVersion, description: str | None) -> ModelVersion:
    now = now_ms()

    def complete(item: ModelVersionItem, update: Update) -> None:
        list_keys.set_update_time(update, ModelVersionItem, item.number, now)
        update.set_or_remove(ModelVersionItem.description, description)

    before = _write(stored, {}, (), complete).version
    return before._replace(description=description, last_updated_timestamp=now)


def set_tag(stored: StoredModelVersion, key: str, value: str) -> None:
    beside: list[Operation] = []
    if key == reserved_tags.IS_PROMPT and value == "true":
        change = Update()
        document.touch(change)
        change.set(RegisteredModelItem.prompt_versions, True)
        change.require_equal(RegisteredModelItem.incarnation, stored.model.incarnation)
        beside.append(ItemUpdate(stored.model.document.key, change))
    event = announcement.version_tag_set(stored.model.model, stored.version.version, key)
    write(
        stored,
        {"tags": {key: value}},
        (),
        registered_models.announcing(event, ModelVersionItem.event),
        beside,
    )


def delete_tag(stored: StoredModelVersion, key: str) -> None:
    event = announcement.version_tag_deleted(stored.model.model, stored.version.version, key)
    write(stored, {}, [("tags", key)], registered_models.announcing(event, ModelVersionItem.event))


def write(
    stored: StoredModelVersion,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
    complete: Callable[[Update], None] = lambda _: None,
    beside: Sequence[Operation] = (),
) -> StoredModelVersion:
    """Changes a model version, retrying on conflicts; returns it as it was before. Raises
    ResourceDoesNotExist if the version was deleted, or a condition of ``beside`` does not hold.

    Args:
        sets, removals: values to set by map and key, and (map, key) pairs to remove.
        complete: adds further attributes and conditions to the update.
        beside: further operations of the same transaction.
    """
    return _write(stored, sets, removals, lambda _, update: complete(update), beside)


def _write(
    stored: StoredModelVersion,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
    complete: Callable[[ModelVersionItem, Update], None],
    beside: Sequence[Operation] = (),
) -> StoredModelVersion:
    """Like :func:`write`; ``complete`` is given the item as it was last read."""

    def alive(item: ModelVersionItem, update: Update) -> None:
        update.require_exists(ModelVersionItem.lsi3sk)  # deleted versions have none
        remove_types(update, ModelVersionItem.property_types, item.property_types, sets, removals)
        complete(item, update)

    def send(current: StoredModelVersion) -> None:
        try:
            living = partial(alive, current.item)
            document_writes.write(current.document, sets, removals, living, beside)
        except TransactionFailed as failed:
            raise missing(stored.version.name, stored.version.version) from failed

    def meanwhile(_: StoredModelVersion, item: Raw | None) -> StoredModelVersion:
        if item is None or ModelVersionItem.of(item).current_stage == DELETED:
            raise missing(stored.version.name, stored.version.version)
        return of_item(item, stored.model)

    return document_write_retries.write("model", stored, send, meanwhile)


def set_alias(stored: StoredModelVersion, alias: str) -> None:
    """Points an alias of a model to one of its versions. Raises ResourceDoesNotExist if the version
    or its model was deleted."""
    alive = ConditionExpression()
    alive.require_exists(ModelVersionItem.lsi3sk)  # deleted versions have none
    number, checks = stored.version.version, [Check(stored.document.key, alive)]
    try:
        registered_models.set_alias(stored.model, alias, number, checks)
    except TransactionFailed as failed:
        raise missing(stored.version.name, number) from failed


def of_item(raw: Raw, model: StoredRegisteredModel) -> StoredModelVersion:
    """Returns the model version that an item holds, under its model's present name. A rename of the
    model counts as an update of the version."""
    item = ModelVersionItem.of(raw)
    loaded = document.load(raw, (model.home, str(item.model_version)), MAPS)
    version = ModelVersion(
        name=model.model.name,
        version=item.model_version,
        creation_timestamp=item.creation_time,
        last_updated_timestamp=max(item.last_update_time, model.renamed_at),
        description=item.description,
        user_id=item.user_id,
        current_stage=item.current_stage,
        source=item.source,
        storage_location=item.storage_location,
        run_id=item.run_id,
        run_link=item.run_link or "",
        status=item.status,
        status_message=item.status_message,
        tags=loaded.texts("tags"),
        model_id=item.model_id,
    )
    return StoredModelVersion(version, loaded, model)


def aliases(model: RegisteredModel, version: int) -> list[str]:
    """Returns a model's aliases that point to a version."""
    return sorted(alias for alias, named in model.aliases.items() if named == version)


def _tag(item_key: keys.Key, key: str, value: str) -> Raw:
    return ModelVersionTag(PK=item_key.pk, SK=item_key.sk, key=key, value=value).serialize()


MAPS: document.Maps = {
    "tags": document.Map(
        ModelVersionItem.tags,
        document.REPLACE,
        lambda owner: keys.model_version_tag_prefix(int(owner[1])),
        lambda owner, key: keys.model_version_tag(owner[0], int(owner[1]), key),
        _tag,
    )
}
"""The map attributes of a version's item; the owner of its children is (home, number)."""
