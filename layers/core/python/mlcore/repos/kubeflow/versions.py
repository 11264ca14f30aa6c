"""Model versions as Kubeflow sees them: MLflow's item, with a number (Kubeflow's integer id) and a
name. A *reference* maps such a number to its item (:mod:`mlcore.repos.kubeflow.numbers`).
Kubeflow's name of a version that MLflow created is its version number, or ``mlflow-<version
number>`` if another version has that name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import AdditionalOperationFailed
from mlcore.db.keys import Key
from mlcore.db.table import ItemUpdate, Operation, Put, TransactionFailed, table
from mlcore.entities.registry import ModelVersion
from mlcore.ids import new_ulid, now_ms
from mlcore.kubeflow.custom_properties import of_tags
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing_id, name_taken
from mlcore.kubeflow.kinds import MODEL_VERSION as KIND
from mlcore.kubeflow.kinds import REGISTERED_MODEL
from mlcore.models.kubeflow import ContextChild, ContextRef
from mlcore.models.registry import ModelVersion as ModelVersionItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos import document
from mlcore.repos.document import Document
from mlcore.repos.kubeflow import changes, entities, models, numbers, source_artifacts, tags
from mlcore.repos.kubeflow.transaction_steps import change_external_id, error_at, reserve_child_name
from mlcore.repos.kubeflow_keys import list_keys
from mlcore.repos.registry import model_versions, stages
from mlcore.repos.registry.model_versions import ARCHIVED, DELETED, NO_STAGE, READY
from mlcore.repos.registry.registered_models import StoredRegisteredModel as ModelRecord
from mlcore.webhooks import announcement

_OF_MLFLOW: Final = re.compile(r"(?:mlflow-)?([1-9][0-9]{0,17})")


class VersionOfModel(NamedTuple):
    """A model version as it was read, with the item that links its model to a Kubeflow number."""

    model: ContextRef
    document: Document

    @property
    def item(self) -> ModelVersionItem:
        return ModelVersionItem.of(self.document.item)

    @property
    def number(self) -> int:
        return self.item.number or 0

    @property
    def archived(self) -> bool:
        return self.item.current_stage == ARCHIVED


def record(raw: Raw | None, model: ContextRef) -> VersionOfModel | None:
    if raw is None:
        return None
    item = ModelVersionItem.of(raw)
    if item.incarnation != model.incarnation or item.current_stage == DELETED:
        return None
    owner = (model.home or "", str(item.model_version))
    return VersionOfModel(model, document.load(raw, owner, model_versions.MAPS))


def entity_of(read: VersionOfModel) -> Entity:
    """Returns a model version as an entity of Kubeflow's API, where it must have an id already."""
    item = read.item
    fields: dict[str, Any] = {
        "registeredModelId": str(read.model.number),
        "state": tags.ARCHIVED if read.archived else tags.LIVE,
    }
    if item.user_id:
        fields["author"] = item.user_id
    return Entity(
        kind=KIND.name,
        id=read.number,
        name=item.kubeflow_name or str(item.model_version),
        create_time=item.creation_time,
        update_time=max(item.last_update_time, read.model.renamed_at or 0),
        description=item.description,
        external_id=item.external_id,
        properties=of_tags(read.document.texts("tags"), item.property_types or {}),
        fields=fields,
    )


def find(number: int, workspace: str) -> VersionOfModel | None:
    """Returns the model version with a Kubeflow number; None if the workspace has none. Two reads:
    the reference (number → MLflow's item), then the version with its model's reference."""
    reference = numbers.of_kind(table.get(keys.context_ref(number)), KIND.name, workspace)
    return None if reference is None else at(reference, workspace)


def at(reference: ContextRef, workspace: str) -> VersionOfModel | None:
    """Returns the model version to which a reference (Kubeflow's number → MLflow's item) points;
    None if it was deleted or its model is in another workspace. One BatchGetItem."""
    raw, owner = table.batch_get(
        [numbers.key_of(reference), keys.context_ref(reference.parent or 0)]
    )
    model = numbers.of_kind(owner, REGISTERED_MODEL.name, workspace)
    return None if model is None else record(raw, model)


def get(number: int, workspace: str) -> VersionOfModel:
    """Returns the model version with a Kubeflow number. Raises ResourceDoesNotExist."""
    version = find(number, workspace)
    if version is None:
        raise missing_id(KIND.words, number)
    return version


def find_by_name(parent: int, name: str, workspace: str) -> VersionOfModel | None:
    """Returns the version of a model (``parent`` is its Kubeflow number) that has a name in
    Kubeflow; None if there is none. At most two consistent reads for a version with a number."""
    owner, child = table.batch_get(
        [keys.context_ref(parent), keys.context_child(parent, KIND.name, name)]
    )
    model = numbers.of_kind(owner, REGISTERED_MODEL.name, workspace)
    if model is None:
        return None
    if child is not None:
        reference = ContextChild.of(child)
        return record(table.get(Key(reference.item_pk or "", reference.item_sk or "")), model)
    read = _number_named(model, name)
    return read if read is not None and read.item.kubeflow_name == name else None


def _number_named(model: ContextRef, name: str) -> VersionOfModel | None:
    """Assigns a Kubeflow number to the MLflow version whose default name in Kubeflow is ``name``,
    and returns the version; None if there is none."""
    named = _OF_MLFLOW.fullmatch(name)
    if named is None:
        return None
    key = keys.model_version(model.home or "", int(named[1]))
    read = record(table.get(key), model)
    if read is None or read.item.number is not None:
        return read
    return next(iter(numbered([read])), None)


def of_model(model: ContextRef) -> list[VersionOfModel]:
    """Returns a model's versions in order; those without a Kubeflow number get one first."""
    records = []
    pattern = ModelVersionItem.pattern.name
    for item in table.query_all(model.home or "", prefix=keys.model_version_prefix()):
        if ModelVersionItem.of(item).type == pattern:
            read = record(item, model)
            if read is not None:
                records.append(read)
    return numbered(records)


def create(
    entity: Entity, model: ModelRecord, reference: ContextRef, also: Sequence[Operation] = ()
) -> Entity:
    """Creates a model version in one transaction; retries if MLflow renames the model meanwhile.

    Raises:
        ResourceConflict: another version has the name or the external id.
        ResourceDoesNotExist: the model was deleted.
    """
    if (other := _number_named(reference, entity.name)) is not None and (
        other.item.kubeflow_name == entity.name
    ):
        raise name_taken(KIND.title, entity.name)
    workspace = model.model.workspace
    archived = entity.fields.get("state") == tags.ARCHIVED
    draft = ModelVersion(
        name=model.model.name,
        version=0,
        creation_timestamp=entity.create_time,
        last_updated_timestamp=entity.update_time,
        description=entity.description,
        user_id=entity.fields.get("author"),
        current_stage=ARCHIVED if archived else NO_STAGE,
        source="",
        storage_location="",
        run_id=None,
        run_link="",
        status=READY,
        status_message=None,
        tags=tags.tags_of(entity, ()),
    )
    error = name_taken(KIND.title, entity.name)
    external = change_external_id(workspace, KIND, entity.id, None, entity.external_id)

    home = model.home  # stays when the model is renamed

    def following(version: ModelVersion) -> list[Operation]:
        key = keys.model_version(home, version.version)
        child = reserve_child_name(reference.number, KIND, entity.name, entity.id, key, error)
        refer = _reference(entity.id, reference, key)
        return [child.operation, *(step.operation for step in external), *also, refer]

    def make(current: ModelRecord) -> ModelVersion:
        named = draft._replace(name=current.model.name)
        return model_versions.create(current, named, following, _attributes(entity, workspace))

    try:
        models.under_its_name(reference, make, model)
    except AdditionalOperationFailed as failed:
        if failed.position == 0:
            raise error from failed
        raise error_at(external, failed.position - 1) from failed
    return entity


def _reference(number: int, model: ContextRef, key: Key) -> Put:
    return numbers.reference(
        number,
        KIND.name,
        model.workspace,
        key,
        parent=model.number,
        incarnation=model.incarnation,
        home=model.home,
    )


def _attributes(entity: Entity, workspace: str) -> Raw:
    name = ModelVersionItem.kubeflow_name
    raw_attributes = entities.attributes(ModelVersionItem, entity, workspace)
    return {**raw_attributes, name.attr_name: name.raw(entity.name)}


def numbered(reads: Sequence[VersionOfModel]) -> list[VersionOfModel]:
    """Returns the model versions after giving each that has none a Kubeflow number, a name and, if
    it has a source, an artifact for it; omits those deleted meanwhile."""
    source_artifacts = [
        read.document.key for read in reads if read.item.number is None and read.item.source
    ]
    artifacts = dict(
        zip(source_artifacts, numbers.take(numbers.ARTIFACTS, len(source_artifacts)), strict=True)
    )

    def give(read: VersionOfModel, number: int) -> VersionOfModel | None:
        return _number(read, number, artifacts.get(read.document.key))

    def operations(read: VersionOfModel, number: int) -> list[Operation]:
        name = str(read.item.model_version)
        return _claim_operations(read, number, artifacts.get(read.document.key), name)

    return numbers.numbered_together(
        reads, lambda read: read.document.item, operations, _read_again, give
    )


def _read_again(reads: Sequence[VersionOfModel]) -> list[VersionOfModel | None]:
    items = table.batch_get([read.document.key for read in reads])
    return [record(item, read.model) for item, read in zip(items, reads, strict=True)]


def _number(read: VersionOfModel, number: int, artifact: int | None) -> VersionOfModel | None:
    current = read

    def attempt() -> VersionOfModel | None:
        nonlocal current
        _claim(current, number, artifact)
        stored = record(table.get(read.document.key), read.model)
        if stored is None or stored.item.number is not None:
            return stored
        if not numbers.has_stayed(read.model):
            return None
        current = stored  # it was updated meanwhile
        raise WriteConflict

    return retry_on_conflict(KIND.words, attempt)


def _claim(read: VersionOfModel, number: int, artifact: int | None) -> None:
    """Gives a version its number and the first free of three names, one transaction each. Has no
    effect if another request was first."""
    version = str(read.item.model_version)
    for name in (version, f"mlflow-{version}", f"mlflow-{version}-{number}"):
        operations = _claim_operations(read, number, artifact, name)
        try:
            table.transact(operations, token=new_ulid())
        except TransactionFailed as failed:
            if 0 not in failed.items and 1 in failed.items:
                continue  # the name is another's
        break


def _claim_operations(
    read: VersionOfModel, number: int, artifact: int | None, name: str
) -> list[Operation]:
    """Returns the operations that give a version its number, name and source artifact."""
    key = read.document.key
    error = name_taken(KIND.title, name)
    child = reserve_child_name(read.model.number, KIND, name, number, key, error)
    made = source_artifacts.of_version(read.item, read.model, number, artifact)
    return [
        ItemUpdate(key, _claimed(read, number, name, artifact)),
        child.operation,
        _reference(number, read.model, key),
        *made,
        *numbers.stays(read.model),
    ]


def _claimed(read: VersionOfModel, number: int, name: str, artifact: int | None) -> Update:
    update = numbers.claim(ModelVersionItem, number)
    list_keys.set_numbered_item_keys(
        update,
        ModelVersionItem,
        read.model.workspace,
        KIND.name,
        number,
        read.item,
        renamed_at=read.model.renamed_at or 0,
    )
    update.set(ModelVersionItem.kubeflow_name, name)
    if artifact is not None:
        update.set(ModelVersionItem.source_artifact, artifact)
        update.require_equal(ModelVersionItem.source, read.item.source)
    update.require_exists(ModelVersionItem.lsi3sk)  # deleted versions have none
    return update


def change(read: VersionOfModel, alter: Callable[[Entity], Entity]) -> Entity:
    """Writes a model version changed by ``alter``, retrying on conflicts; returns it as written. If
    its state changes, its stage is changed first, as MLflow does it. Raises ResourceDoesNotExist if
    the version was deleted, ResourceConflict if another version has the external id."""
    workspace = read.model.workspace

    def attempt(seen: VersionOfModel) -> Entity:
        before = entity_of(seen)
        after = alter(before)
        if after.fields["state"] != before.fields["state"]:
            _move(seen, after.fields["state"])
            seen = get(read.number, workspace)
            before = entity_of(seen)
            after = alter(before)
        after = after._replace(update_time=max(now_ms(), before.update_time))
        now = seen.document.texts("tags")
        wanted = tags.changes(now, tags.tags_of(after, ()), ())
        external = change_external_id(
            workspace, KIND, read.number, before.external_id, after.external_id
        )
        events = _tag_events(seen, wanted) if wanted.any else None
        changes.write(seen.document, wanted, partial(_complete, seen, after, events), external)
        return after

    return changes.write_with_retry(KIND.words, read, lambda: get(read.number, workspace), attempt)


def _move(read: VersionOfModel, state: str) -> None:
    stage = ARCHIVED if state == tags.ARCHIVED else NO_STAGE

    def move(model: ModelRecord) -> None:
        stored = model_versions.of_item(read.document.item, model)
        stages.transition(stored, stage, archive_existing=False)

    models.under_its_name(read.model, move)


def _tag_events(read: VersionOfModel, wanted: tags.Changes) -> str | None:
    """Returns the announcements of changed tags to webhooks; None if the model was deleted."""
    model = models.at(read.model)
    if model is None:
        return None
    version = read.item.model_version
    texts = [announcement.version_tag_set(model.model, version, key) for key in wanted.sets["tags"]]
    texts += [
        announcement.version_tag_deleted(model.model, version, key) for _, key in wanted.removals
    ]
    return announcement.join_texts(texts)


def _complete(read: VersionOfModel, after: Entity, events: str | None, update: Update) -> None:
    item = ModelVersionItem
    changes.set_own_attributes(item, after, update)
    update.set_or_remove(item.description, after.description)
    update.set_or_remove(item.user_id, after.fields.get("author"))
    if events is not None:
        update.set(item.event, events)
    update.require_exists(item.lsi3sk)
    update.require_equal(item.version, read.item.version)


def delete(read: VersionOfModel, allowed: Callable[[], Sequence[Operation]]) -> None:
    """Deletes a model version as :func:`mlcore.repos.registry.stages.delete` does, to which it
    passes ``allowed``. Raises ResourceDoesNotExist if the version was deleted before."""

    def remove(model: ModelRecord) -> None:
        stages.delete(model_versions.of_item(read.document.item, model), allowed)

    models.under_its_name(read.model, remove)


def reference_of(read: VersionOfModel) -> ContextRef:
    """Returns a model version's reference (Kubeflow number → MLflow item), without a request."""
    return ContextRef.of(_reference(read.number, read.model, read.document.key).item)
