"""Registered models as Kubeflow sees them: MLflow's item, under its number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Change, Operation, Put, table
from mlcore.entities.registry import RegisteredModel
from mlcore.errors import ResourceDoesNotExist
from mlcore.ids import now_ms
from mlcore.kubeflow import properties
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing, taken
from mlcore.kubeflow.kinds import REGISTERED_MODEL as KIND
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.prompts import is_prompt
from mlcore.repos.kubeflow import changes, entities, listing, numbers, steps, tags
from mlcore.repos.kubeflow.listing import Place
from mlcore.repos.registry import homes, names, registered_models
from mlcore.repos.registry.names import AlsoFailed, NameTaken
from mlcore.repos.registry.registered_models import StoredRegisteredModel as Record
from mlcore.settle import Conflict, settle

R = TypeVar("R")

FIELDS: Final = tuple(field.name for field in KIND.fields)
"""All are tags."""


def entity_of(read: Record) -> Entity:
    """A model that has its number."""
    model, item = read.model, read.item
    return Entity(
        kind=KIND.name,
        id=item.number or 0,
        name=model.name,
        create_time=model.creation_timestamp,
        update_time=model.last_updated_timestamp,
        description=model.description or None,
        external_id=item.external_id,
        properties=properties.of_tags(model.tags, item.property_types or {}),
        fields={"state": tags.LIVE, **tags.fields_of(KIND, model.tags)},
    )


def find_by_name(workspace: str, name: str) -> Record | None:
    """One consistent GetItem; two requests more for a model that Kubeflow sees for the first
    time."""
    read = registered_models.find(workspace, name)
    if read is None or is_prompt(read.model.tags):
        return None
    if read.item.number is not None:
        return read
    return next((found for found in numbered([read]) if found.model.name == name), None)


def find(number: int, workspace: str) -> Record | None:
    """Two consistent GetItem: the reference, the model."""
    reference = numbers.of_kind(numbers.raw(number), KIND.name, workspace)
    return None if reference is None else at(reference)


def get(number: int, workspace: str) -> Record:
    """As :func:`find`. Raises ResourceDoesNotExist."""
    found = find(number, workspace)
    if found is None:
        raise missing(KIND.words, number)
    return found


def at(reference: ContextRef) -> Record | None:
    """The model that a reference leads to: one consistent GetItem. If MLflow renamed the model
    after the reference was read, the reference is read again: two more for each rename."""
    current = reference

    def attempt() -> Record | None:
        nonlocal current
        item = table.get(numbers.place_of(current))
        if item is not None and RegisteredModelItem.of(item).incarnation == current.incarnation:
            return registered_models.of_item(item)
        again = numbers.of_kind(numbers.raw(current.number), KIND.name, current.workspace)
        # A rename writes model and reference in one transaction, and counts the reference's
        # version up: the same version means that the model itself is gone.
        if again is None or again.version == current.version:
            return None
        current = again
        raise Conflict

    return settle(KIND.words, attempt)


def under_its_name(
    reference: ContextRef, act: Callable[[Record], R], read: Record | None = None
) -> R:
    """What ``act`` answers, which writes by the model's name: done again if a rename came between.

    Args:
        read: the model, if it was read already.

    Raises:
        ResourceDoesNotExist: the model is gone; or ``act`` raised it, of a model that stayed as it
            was read.
    """

    def attempt() -> R:
        nonlocal read
        model, read = read or at(reference), None
        if model is None:
            raise missing(KIND.words, reference.number)
        try:
            return act(model)
        except ResourceDoesNotExist as error:
            again = at(reference)
            if again is None or again.item.version == model.item.version:
                raise
            raise Conflict from error

    return settle(KIND.words, attempt)


def create(entity: Entity, workspace: str, also: Sequence[Operation] = ()) -> None:
    """One transaction. Raises ResourceConflict."""
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
    external = steps.external_id(workspace, KIND, entity.id, None, entity.external_id)

    def following(place: keys.Key, home: str, incarnation: str) -> list[Operation]:
        refer = _reference(entity.id, workspace, place, home, incarnation, entity.name)
        return [*(step.operation for step in external), *also, refer]

    try:
        names.create(
            model, also=following, more=entities.attributes(RegisteredModelItem, entity, workspace)
        )
    except NameTaken as failed:
        raise taken(KIND.title, entity.name) from failed
    except AlsoFailed as failed:
        raise steps.meaning_at(external, failed.position) from failed


def _reference(
    number: int, workspace: str, place: keys.Key, home: str, incarnation: str, name: str
) -> Put:
    return numbers.reference(
        number, KIND.name, workspace, place, incarnation=incarnation, home=home, name=name
    )


def numbered(reads: Sequence[Record]) -> list[Record]:
    """The same models, each with a number; those that are gone meanwhile are left out."""
    return numbers.numbered_together(
        reads, lambda read: read.item.number, _claim_operations, _read_again, _number
    )


def _read_again(reads: Sequence[Record]) -> list[Record | None]:
    """The models as they are now; one that has left its place is answered as it was read."""
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
        found = _claim(current, number)
        if found is None or found.item.number is not None:
            return found
        current = found  # it was updated or renamed meanwhile
        raise Conflict

    return settle(KIND.words, attempt)


def _claim_operations(read: Record, number: int) -> list[Operation]:
    claimed, refer = _claimed(read, number)
    return [Change(read.document.key, claimed), refer]


def _claimed(read: Record, number: int) -> tuple[Update, Put]:
    """What gives a model its number, and the number's reference to it."""
    model, place = read.model, read.document.key
    claimed = numbers.claim(RegisteredModelItem, number)
    listing.enlist(claimed, RegisteredModelItem, model.workspace, KIND.name, number, read.item)
    claimed.require_equal(RegisteredModelItem.incarnation, read.incarnation)
    refer = numbers.reference(
        number,
        KIND.name,
        model.workspace,
        place,
        incarnation=read.incarnation,
        home=read.home,
        name=model.name,
        renamed_at=read.item.renamed_at,
    )
    return claimed, refer


def _claim(read: Record, number: int) -> Record | None:
    """The model as it is when it was to get a number; None if it is gone."""
    place = read.document.key
    item = numbers.give(place, *_claimed(read, number))
    if item is None or RegisteredModelItem.of(item).incarnation != read.incarnation:
        owner = homes.owner_of(read.home)
        mine = owner is not None and owner.incarnation == read.incarnation
        item = homes.model_of(owner) if owner is not None and mine else None
    return None if item is None else registered_models.of_item(item)


def change(read: Record, alter: Callable[[Entity], Entity]) -> Entity:
    """Writes a model as ``alter`` makes it of what is there then; answers it as written.

    Raises:
        ResourceDoesNotExist: it is gone.
        ResourceConflict: another has the external id.
    """
    workspace = read.model.workspace
    number = read.item.number or 0

    def attempt(seen: Record) -> Entity:
        before = entity_of(seen)
        after = alter(before)
        after = after._replace(update_time=max(now_ms(), before.update_time))
        wanted = tags.changes(seen.model.tags, tags.tags_of(after, FIELDS), FIELDS)
        external = steps.external_id(workspace, KIND, number, before.external_id, after.external_id)
        changes.write(seen.document, wanted, partial(_complete, seen, after), external)
        return after

    return changes.settled("model", read, lambda: get(number, workspace), attempt)


def _complete(read: Record, after: Entity, update: Update) -> None:
    item = RegisteredModelItem
    changes.keep(item, after, update)
    update.set(item.description, after.description or "")
    update.require_equal(item.incarnation, read.incarnation)
    update.require_equal(item.version, read.item.version)


def delete(read: Record, also: Sequence[Operation] = (), referred: Condition | None = None) -> None:
    """As MLflow does it: the model is gone at once, then what was in its home.

    Args:
        referred: what must hold of its reference still.

    Raises:
        Conflict: it changed or was renamed meanwhile, or what refers to it changed.
    """
    try:
        names.delete(read, also, referred)
    except (ConditionFailed, ResourceDoesNotExist) as failed:
        raise Conflict from failed
    homes.clear(read.home, read.incarnation)


# ------------------------------------------------------------------ lists


def at_places(places: Sequence[Place], workspace: str) -> list[Record]:
    """The models at places that an index names, in order. One BatchGetItem for each hundred; two
    more where a model was renamed since, or is gone."""
    found = _by_number([place.key for place in places], workspace)
    lost = [place.number for place in places if place.number not in found]
    references = numbers.find_many(lost, KIND.name, workspace) if lost else []
    found |= _by_number([numbers.place_of(one) for one in references], workspace)
    return [found[place.number] for place in places if place.number in found]


def _by_number(places: Sequence[keys.Key], workspace: str) -> dict[int, Record]:
    return {
        read.item.number: read
        for read in registered_models.find_many(places, workspace)
        if read.item.number is not None and not is_prompt(read.model.tags)
    }


def see(places: Sequence[keys.Key], workspace: str) -> list[Record]:
    """Models that no list has shown yet, each with a number now; without those that are gone."""
    reads = registered_models.find_many(places, workspace)
    for read in reads:
        if is_prompt(read.model.tags):
            listing.hide(read.document.key)
    return numbered([read for read in reads if not is_prompt(read.model.tags)])
