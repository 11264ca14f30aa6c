"""Entities that only Kubeflow's registry has: environments, services, serve models and artifacts.
Each is an item under its own number (Kubeflow's integer id)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import ItemUpdate, Put, key_of_item, table
from mlcore.ids import now_ms
from mlcore.kubeflow import custom_properties, kinds
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing_id
from mlcore.kubeflow.kinds import ARTIFACT_KINDS, KINDS, EntityKind
from mlcore.models.base import KEY
from mlcore.models.experiments import Experiment
from mlcore.models.kubeflow import (
    Artifact,
    InferenceService,
    NumberedItem,
    ServeModel,
    ServingEnvironment,
)
from mlcore.models.registry import ModelVersion, RegisteredModel
from mlcore.models.runs import Run
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.kubeflow import changes, file_uris, transaction_steps
from mlcore.repos.kubeflow.numbers import absent
from mlcore.repos.kubeflow.transaction_steps import TransactionStep
from mlcore.repos.kubeflow_keys import list_keys

LISTED_TOGETHER: Final = 100


class Numbered(Protocol):
    """An entity that MLflow has too, as it was read, with its number (Kubeflow's integer id; 0 if
    it has none yet)."""

    @property
    def number(self) -> int: ...


R = TypeVar("R", bound=Numbered)
P = TypeVar("P")

_MODELS: Final[dict[str, tuple[type[NumberedItem], Callable[[int], Key]]]] = {
    kinds.SERVING_ENVIRONMENT.name: (ServingEnvironment, keys.serving_environment),
    kinds.INFERENCE_SERVICE.name: (InferenceService, keys.inference_service),
    kinds.SERVE_MODEL.name: (ServeModel, keys.serve_model),
    **dict.fromkeys(ARTIFACT_KINDS, (Artifact, keys.artifact)),
}


def key_of(kind: str, number: int) -> Key:
    return _MODELS[kind][1](number)


def entity_of(raw: Raw) -> Entity:
    item = NumberedItem.of(raw)
    kind = KINDS[item.kind]
    details = item.details or {}
    read = Entity(
        kind=item.kind,
        id=item.number,
        name=item.name,
        create_time=item.creation_time,
        update_time=item.last_update_time,
        description=item.description,
        external_id=item.external_id,
        properties=custom_properties.of_stored(item.properties or {}),
        fields={
            field.name: _value(field.type, details[field.name])
            for field in kind.fields
            if field.name in details
        },
    )
    return file_uris.shown(read, Artifact.of(raw).location, item.workspace)


def _value(kind: str, text: str) -> Any:
    if kind == kinds.DOUBLE:
        return float(text)
    if kind == kinds.INT64:
        return int(text)
    return json.loads(text) if kind == kinds.TEXTS else text


def _texts(kind: EntityKind, fields: Mapping[str, Any]) -> dict[str, str]:
    texts = {}
    for field in kind.fields:
        value = fields.get(field.name)
        if value is None:
            continue
        if field.type == kinds.DOUBLE:
            texts[field.name] = repr(float(value))
        else:
            texts[field.name] = json.dumps(value) if isinstance(value, list) else str(value)
    return texts


def list_kind(kind: str) -> str:
    """Returns the name of the list in which the Kubeflow entities of a kind appear: all kinds of
    artifacts share one list."""
    return "artifact" if KINDS[kind].artifact_type else kind


def item_of(entity: Entity, workspace: str, **more: Any) -> Raw:
    """Returns the item to store for a new entity that Kubeflow's registry has and MLflow lacks.

    Args:
        more: further attributes of the item.
    """
    model, key_of = _MODELS[entity.kind]
    key = key_of(entity.id)
    item = model(
        PK=key.pk,
        SK=key.sk,
        number=entity.id,
        kind=entity.kind,
        workspace=workspace,
        name=entity.name,
        description=entity.description,
        external_id=entity.external_id,
        creation_time=entity.create_time,
        last_update_time=entity.update_time,
        properties=custom_properties.stored(entity.properties),
        details=_texts(entity.of_kind, entity.fields),
        updated_at=now_ms(),
        version=1,
        **more,
    )
    listed = list_keys.numbered_item_keys(
        workspace, list_kind(entity.kind), entity.id, entity.create_time, entity.update_time
    )
    return {**item.serialize(), **listed}


def attributes(
    item: type[RegisteredModel | ModelVersion | Run], entity: Entity, workspace: str
) -> Raw:
    """Returns the attributes that an MLflow item has in addition if Kubeflow creates it: its number
    (Kubeflow's integer id), the keys of indexes for lists, and what only Kubeflow has."""
    if item is Run:
        gsi2pk, gsi2sk = keys.gsi2_number(workspace, entity.kind, entity.id)
        listed = _raw([(item.gsi2pk, gsi2pk), (item.gsi2sk, gsi2sk)])
    else:
        listed = list_keys.numbered_item_keys(
            workspace, entity.kind, entity.id, entity.create_time, entity.update_time
        )
    return {**_raw([(item.number, entity.id)]), **listed, **own_attributes(item, entity)}


def own_attributes(
    item: type[Experiment | ModelVersion | RegisteredModel | Run], entity: Entity
) -> Raw:
    """Returns the attributes of an MLflow item that only Kubeflow has: the types of custom
    properties and the external id."""
    values: list[tuple[ItemAttribute[Any], Any]] = [
        (item.property_types, custom_properties.marks(entity.properties)),
    ]
    if entity.external_id is not None:
        values.append((item.external_id, entity.external_id))
    return _raw(values)


def _raw(values: Sequence[tuple[ItemAttribute[Any], Any]]) -> Raw:
    return {attribute.attr_name: attribute.raw(value) for attribute, value in values}


def creation(entity: Entity, workspace: str, **more: Any) -> list[TransactionStep]:
    """Returns the first steps of the transaction that creates an entity which only Kubeflow's
    registry has: the puts of its item and of the lock of its external id."""
    made = TransactionStep(Put(item_of(entity, workspace, **more), absent()))
    external = transaction_steps.change_external_id(
        workspace, entity.of_kind, entity.id, None, entity.external_id
    )
    return [made, *external]


def find(kind: str, number: int, workspace: str) -> Raw | None:
    """Returns the item of an entity that only Kubeflow's registry has; None if there is none with
    the number, or it is of another kind or workspace. One consistent GetItem."""
    return _of(table.get(key_of(kind, number)), (kind,), workspace)


def get(kind: str, number: int, workspace: str) -> Raw:
    """Returns the item of an entity that only Kubeflow's registry has, by its kind and Kubeflow
    number. Raises ResourceDoesNotExist if the workspace has none."""
    item = find(kind, number, workspace)
    if item is None:
        raise missing_id(KINDS[kind].words, number)
    return item


def _of(raw: Raw | None, wanted: Sequence[str], workspace: str) -> Raw | None:
    if raw is None:
        return None
    item = NumberedItem.of(raw)
    return raw if item.kind in wanted and item.workspace == workspace else None


def find_many(kind: str, numbers: Sequence[int]) -> list[Raw]:
    """Returns, in the order of ``numbers`` (Kubeflow numbers), the items of those entities of
    ``kind`` that exist, in whatever workspace. The kind is one that only Kubeflow's registry has;
    for a kind of artifact, artifacts of other kinds are included. One BatchGetItem per hundred."""
    key_of = _MODELS[kind][1]
    return [item for item in table.batch_get(list(map(key_of, numbers))) if item is not None]


def numbers_of(workspace: str, kind: str, *, above: int = 0) -> Iterator[int]:
    """Yields the numbers (Kubeflow's integer ids) of a workspace's entities of a kind, in order,
    from GSI2, which may lag.

    Args:
        kind: as :func:`list_kind` returns it.
        above: yield only greater numbers.
    """
    for item in _numbered(workspace, kind, above):
        yield int(NumberedItem.of(item).gsi2sk or 0)


def _numbered(workspace: str, kind: str, above: int) -> Iterator[Raw]:
    pk, least = keys.gsi2_number(workspace, kind, above + 1)
    most = keys.gsi2_number(workspace, kind, 2**62).sk
    attributes: list[ItemAttribute[Any]] = [*KEY, NumberedItem.gsi2sk]
    return table.query_all(
        pk, index="GSI2", between=(least, most), limit=1_000, attributes=attributes
    )


def by_number(
    workspace: str,
    kind: EntityKind,
    above: int,
    at: Callable[[Sequence[int], str], list[R]],
    unseen: Callable[[], Iterable[R]],
) -> Iterator[R]:
    """Yields all entities of a kind that exists in MLflow too, such as models: first those in the
    index, by their numbers (Kubeflow's integer ids), then those that the index lacks. Some of the
    latter had no number and get one now.

    Args:
        above: yield only entities with greater numbers.
        at: returns the existing entities with the given numbers in a workspace.
        unseen: returns all entities, found through their parents, and gives each a number.
    """
    seen = set()
    numbers = numbers_of(workspace, kind.name, above=above)
    while chunk := list(islice(numbers, LISTED_TOGETHER)):
        for read in at(chunk, workspace):
            seen.add(read.number)
            yield read
    late = [read for read in unseen() if read.number > above and read.number not in seen]
    yield from sorted(late, key=lambda read: read.number)


def side_by_side(children: Callable[[P], list[R]], parents: Iterator[P]) -> Iterator[R]:
    """Yields what ``children`` returns for each of the parents (such as experiments), in the order
    of the parents, reading a hundred of them in parallel."""
    while chunk := list(islice(parents, LISTED_TOGETHER)):
        for results in table.parallel([partial(children, parent) for parent in chunk]):
            yield from results


def listed(workspace: str, kind: str) -> Iterator[Raw]:
    """Yields the items of a workspace's entities of a kind that only Kubeflow has (for a kind of
    artifact: all artifacts), by number, reading a hundred per request."""
    numbers = numbers_of(workspace, list_kind(kind))
    while chunk := list(islice(numbers, LISTED_TOGETHER)):
        yield from find_many(kind, chunk)


def change(
    raw: Raw,
    workspace: str,
    alter: Callable[[Entity], Entity],
    beside: Callable[[Entity, Entity], Sequence[TransactionStep]] = lambda _before, _after: (),
) -> Entity:
    """Writes an entity that only Kubeflow's registry has, as ``alter`` changes it, retrying on
    conflicts; returns it as written.

    Args:
        raw: the entity's item as it was read.
        alter: returns the changed entity; called again after a conflict.
        beside: returns further steps of the transaction, from the entity before and after.

    Raises:
        ResourceDoesNotExist: the entity was deleted.
        ResourceConflict: another entity has the external id.
    """
    key = key_of_item(raw)
    kind = KINDS[NumberedItem.of(raw).kind]
    number = NumberedItem.of(raw).number

    def again() -> Raw:
        current_item = table.get(key)
        if current_item is None:
            raise missing_id(kind.words, number)
        return current_item

    def attempt(current: Raw) -> Entity:
        before = entity_of(current)
        after = alter(before)
        after = after._replace(update_time=max(now_ms(), before.update_time))
        update = _update(current, after)
        external = transaction_steps.change_external_id(
            workspace, kind, number, before.external_id, after.external_id
        )
        more = [*external, *beside(before, after)]
        if more:
            transaction_steps.execute([TransactionStep(ItemUpdate(key, update)), *more])
            return after
        try:
            table.update(key, update)
        except ConditionFailed as failed:
            raise WriteConflict from failed
        return after

    return changes.write_with_retry(kind.words, raw, again, attempt)


def _update(raw: Raw, after: Entity) -> Update:
    update = Update()
    update.add(NumberedItem.version, 1)
    update.set(NumberedItem.updated_at, now_ms())
    update.set(NumberedItem.last_update_time, after.update_time)
    update.set(NumberedItem.gsi4sk, keys.gsi4_updated_sk(after.update_time, after.id))
    update.set(NumberedItem.properties, custom_properties.stored(after.properties))
    update.set(NumberedItem.details, _texts(after.of_kind, after.fields))
    update.set_or_remove(NumberedItem.description, after.description)
    update.set_or_remove(NumberedItem.external_id, after.external_id)
    update.require_equal(NumberedItem.version, NumberedItem.of(raw).version)
    return update
