"""Registered models as Kubeflow sees them: MLflow's items, each with a number (Kubeflow's integer
id). A model's *reference* is the item that maps its number to MLflow's item
(:mod:`mlcore.repos.kubeflow.numbers`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import AdditionalOperationFailed, ConditionFailed
from mlcore.db.table import ItemUpdate, Operation, Put, table
from mlcore.entities.registry import RegisteredModel
from mlcore.errors import ResourceDoesNotExist
from mlcore.ids import now_ms
from mlcore.kubeflow import custom_properties
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing_id, name_taken
from mlcore.kubeflow.kinds import REGISTERED_MODEL as KIND
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.prompts import is_prompt
from mlcore.repos.kubeflow import changes, entities, numbers, tags, transaction_steps
from mlcore.repos.kubeflow.listing import ListEntry
from mlcore.repos.kubeflow_keys import list_keys
from mlcore.repos.registry import homes, model_lifecycle, registered_models
from mlcore.repos.registry.model_lifecycle import ModelNameTaken
from mlcore.repos.registry.registered_models import StoredRegisteredModel as Record

R = TypeVar("R")

FIELDS: Final = tuple(field.name for field in KIND.fields)
"""The fields of a Kubeflow model that are stored as MLflow tags: all of them."""


def entity_of(read: Record) -> Entity:
    """Returns an MLflow registered model as an entity of Kubeflow's API. It must have a Kubeflow
    number."""
    model, item = read.model, read.item
    return Entity(
        kind=KIND.name,
        id=item.number or 0,
        name=model.name,
        create_time=model.creation_timestamp,
        update_time=model.last_updated_timestamp,
        description=model.description or None,
        external_id=item.external_id,
        properties=custom_properties.of_tags(model.tags, item.property_types or {}),
        fields={"state": tags.LIVE, **tags.fields_of(KIND, model.tags)},
    )


def find_by_name(workspace: str, name: str) -> Record | None:
    """Returns the registered model with a name; None if there is none or it is a prompt. Reads with
    one consistent GetItem. A model without a Kubeflow number gets one, with a few more requests."""
    read = registered_models.find(workspace, name)
    if read is None or is_prompt(read.model.tags):
        return None
    if read.item.number is not None:
        return read
    return next((record for record in numbered([read]) if record.model.name == name), None)


def find(number: int, workspace: str) -> Record | None:
    """Returns the registered model with a Kubeflow number; None if the workspace has none. Usually
    two consistent GetItem: the item that maps the number to the model, then the model (:func:`at`).
    """
    reference = numbers.of_kind(numbers.raw(number), KIND.name, workspace)
    return None if reference is None else at(reference)


def get(number: int, workspace: str) -> Record:
    """Returns the registered model whose numeric id in Kubeflow's API is ``number``. Raises
    ResourceDoesNotExist if the workspace has none."""
    record = find(number, workspace)
    if record is None:
        raise missing_id(KIND.words, number)
    return record


def at(reference: ContextRef) -> Record | None:
    """Returns the model to which a reference (the item that maps a Kubeflow number to MLflow's
    item) points; None if the model was deleted. One consistent GetItem. If the model is not where
    the reference says, one more GetItem reads the reference again, because MLflow may have renamed
    the model after the caller read the reference. If so, a third GetItem reads the model under its
    new name."""
    current = reference

    def attempt() -> Record | None:
        nonlocal current
        item = table.get(numbers.key_of(current))
        if item is not None and RegisteredModelItem.of(item).incarnation == current.incarnation:
            return registered_models.of_item(item)
        again = numbers.of_kind(numbers.raw(current.number), KIND.name, current.workspace)
        # A rename writes model and reference in one transaction, and counts the reference's
        # version up: the same version means that the model itself was deleted.
        if again is None or again.version == current.version:
            return None
        current = again
        raise WriteConflict

    return retry_on_conflict(KIND.words, attempt)


def under_its_name(
    reference: ContextRef, act: Callable[[Record], R], read: Record | None = None
) -> R:
    """Calls ``act``, which writes the model by its current name, and returns its result. If MLflow
    renames the model meanwhile, calls ``act`` again with the renamed model.

    Args:
        reference: the model's reference (the item that maps its Kubeflow number to MLflow's item).
        act: is given the model as it was read.
        read: the model, if it was read already.

    Raises:
        ResourceDoesNotExist: the model was deleted; or ``act`` raised it for an unchanged model.
    """

    def attempt() -> R:
        nonlocal read
        model, read = read or at(reference), None
        if model is None:
            raise missing_id(KIND.words, reference.number)
        try:
            return act(model)
        except ResourceDoesNotExist as error:
            again = at(reference)
            if again is None or again.item.version == model.item.version:
                raise
            raise WriteConflict from error

    return retry_on_conflict(KIND.words, attempt)


def create(entity: Entity, workspace: str, also: Sequence[Operation] = ()) -> None:
    """Creates a registered model from a Kubeflow entity, in one transaction with the operations
    ``also``. Raises ResourceConflict if its name or external id is taken."""
    model = RegisteredModel(
        name=entity.name,
        workspace=workspace,
        creation_timestamp=entity.create_time,
        last_updated_timestamp=entity.update_time,
        description=entity.description or "",
        tags=tags.tags_of(entity, FIELDS),
        aliases={},
        latest={},
    )
    external = transaction_steps.change_external_id(
        workspace, KIND, entity.id, None, entity.external_id
    )

    def following(key: keys.Key, home: str, incarnation: str) -> list[Operation]:
        refer = _reference(entity.id, workspace, key, home, incarnation, entity.name)
        return [*(step.operation for step in external), *also, refer]

    try:
        model_lifecycle.create(
            model, also=following, more=entities.attributes(RegisteredModelItem, entity, workspace)
        )
    except ModelNameTaken as failed:
        raise name_taken(KIND.title, entity.name) from failed
    except AdditionalOperationFailed as failed:
        raise transaction_steps.error_at(external, failed.position) from failed


def _reference(
    number: int, workspace: str, key: keys.Key, home: str, incarnation: str, name: str
) -> Put:
    return numbers.reference(
        number, KIND.name, workspace, key, incarnation=incarnation, home=home, name=name
    )


def numbered(reads: Sequence[Record]) -> list[Record]:
    """Returns the registered models after assigning a Kubeflow number to each that has none; leaves
    out those that were deleted meanwhile."""
    return numbers.numbered_together(
        reads, lambda read: read.document.item, _claim_operations, _read_again, _number
    )


def _read_again(reads: Sequence[Record]) -> list[Record | None]:
    """Returns the models as they are now. One that was renamed or deleted since is returned as it
    was read before."""
    items = table.batch_get([read.document.key for read in reads])
    return table.parallel(
        [partial(_at_its_place, read, item) for read, item in zip(reads, items, strict=True)]
    )


def _at_its_place(read: Record, item: Raw | None) -> Record | None:
    if item is None or RegisteredModelItem.of(item).incarnation != read.incarnation:
        return read
    return registered_models.of_item(item)


def _number(read: Record, number: int) -> Record | None:
    current = read

    def attempt() -> Record | None:
        nonlocal current
        claimed = _claim(current, number)
        if claimed is None or claimed.item.number is not None:
            return claimed
        current = claimed  # it was updated or renamed meanwhile
        raise WriteConflict

    return retry_on_conflict(KIND.words, attempt)


def _claim_operations(read: Record, number: int) -> list[Operation]:
    """Returns the update that gives a model its Kubeflow number, and the put of the model's
    reference."""
    model, key = read.model, read.document.key
    claimed = numbers.claim(RegisteredModelItem, number)
    list_keys.set_numbered_item_keys(
        claimed, RegisteredModelItem, model.workspace, KIND.name, number, read.item
    )
    claimed.require_equal(RegisteredModelItem.incarnation, read.incarnation)
    refer = numbers.reference(
        number,
        KIND.name,
        model.workspace,
        key,
        incarnation=read.incarnation,
        home=read.home,
        name=model.name,
        renamed_at=read.item.renamed_at,
    )
    return [ItemUpdate(key, claimed), refer]


def _claim(read: Record, number: int) -> Record | None:
    """Gives a model a Kubeflow number, unless it has one; returns the model afterwards, None if it
    was deleted."""
    key = read.document.key
    item = numbers.give(key, _claim_operations(read, number))
    if item is None or RegisteredModelItem.of(item).incarnation != read.incarnation:
        owner = homes.owner_of(read.home)
        mine = owner is not None and owner.incarnation == read.incarnation
        item = homes.model_of(owner) if owner is not None and mine else None
    return None if item is None else registered_models.of_item(item)


def change(read: Record, alter: Callable[[Entity], Entity]) -> Entity:
    """Writes a registered model that ``alter`` changed as an entity of Kubeflow's API, retrying on
    conflicts; returns it as written.

    Raises:
        ResourceDoesNotExist: the model was deleted.
        ResourceConflict: another model has the external id.
    """
    workspace = read.model.workspace
    number = read.item.number or 0

    def attempt(seen: Record) -> Entity:
        before = entity_of(seen)
        after = alter(before)
        after = after._replace(update_time=max(now_ms(), before.update_time))
        wanted = tags.changes(seen.model.tags, tags.tags_of(after, FIELDS), FIELDS)
        external = transaction_steps.change_external_id(
            workspace, KIND, number, before.external_id, after.external_id
        )
        changes.write(seen.document, wanted, partial(_complete, seen, after), external)
        return after

    return changes.write_with_retry("model", read, lambda: get(number, workspace), attempt)


def _complete(read: Record, after: Entity, update: Update) -> None:
    item = RegisteredModelItem
    changes.set_own_attributes(item, after, update)
    update.set(item.description, after.description or "")
    update.require_equal(item.incarnation, read.incarnation)
    update.require_equal(item.version, read.item.version)


def delete(
    read: Record, also: Sequence[Operation] = (), referred: ConditionExpression | None = None
) -> None:
    """Deletes a registered model as MLflow does: first the model, then its versions and aliases.

    Args:
        also: further operations of the transaction that deletes the model.
        referred: a condition on the model's reference (the item that maps its Kubeflow number to
            MLflow's item); fails the transaction if a service has started to serve the model since
            (:func:`mlcore.repos.kubeflow.serving.unserved`). None for no condition.

    Raises:
        WriteConflict: the model was changed or renamed since it was read, or the condition
            ``referred`` or one of ``also`` does not hold.
    """
    try:
        executed = model_lifecycle.delete(read, also, referred)
    except (ConditionFailed, ResourceDoesNotExist) as failed:
        raise WriteConflict from failed
    homes.clear(read.home, read.incarnation, executed=executed)


# ------------------------------------------------------------------ lists


def of_entries(entries: Sequence[ListEntry], workspace: str) -> list[Record]:
    """Returns the registered models that entries of Kubeflow's index of models point to, in the
    order of the entries. Deleted models and prompts are left out. One BatchGetItem per hundred
    entries, up to two more per hundred models that were renamed or deleted since."""
    models = _by_number([entry.key for entry in entries], workspace)
    missing_numbers = [entry.number for entry in entries if entry.number not in models]
    references = numbers.find_many(missing_numbers, KIND.name, workspace) if missing_numbers else []
    models |= _by_number([numbers.key_of(reference) for reference in references], workspace)
    return [models[entry.number] for entry in entries if entry.number in models]


def _by_number(places: Sequence[keys.Key], workspace: str) -> dict[int, Record]:
    return {
        read.item.number: read
        for read in registered_models.find_many(places, workspace)
        if read.item.number is not None and not is_prompt(read.model.tags)
    }


def number_and_read(model_keys: Sequence[keys.Key], workspace: str) -> list[Record]:
    """Assigns Kubeflow numbers to those of the registered models that have none. Returns the models
    that still exist. A prompt among them gets no number and is removed from the index of models
    without numbers.

    Args:
        model_keys: the keys of the models' items.
    """
    reads = registered_models.find_many(model_keys, workspace)
    for read in reads:
        if is_prompt(read.model.tags):
            list_keys.hide_prompt(read.document.key)
    return numbered([read for read in reads if not is_prompt(read.model.tags)])
