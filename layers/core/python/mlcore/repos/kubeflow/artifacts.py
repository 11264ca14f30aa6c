"""Artifacts: each an item under its own number, and a child of every version or run that it is
attributed to.

The first model artifact of a version is what MLflow calls the version's source. A version that was
born in MLflow gets one together with its number (:mod:`mlcore.repos.kubeflow.sources`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.table import Delete, table
from mlcore.kubeflow import kinds
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing, taken
from mlcore.kubeflow.kinds import KINDS, MODEL_ARTIFACT, MODEL_VERSION, Kind
from mlcore.models.kubeflow import Artifact, ContextChild, ContextRef
from mlcore.repos.kubeflow import entities, file_uris, numbers, steps, version_sources, versions
from mlcore.repos.kubeflow.steps import Step

UNNAMED: Final = "\0"
"""Begins the names of children that others may have too; no name from outside holds it."""

WORDS: Final = "artifact"


def child_name(entity: Entity) -> str:
    """What a new artifact is called among its parent's children: every data set is told from all
    others."""
    return unnamed(entity.id) if entity.kind == kinds.DATA_SET.name else entity.name


def unnamed(number: int) -> str:
    return f"{UNNAMED}{number}"


# ------------------------------------------------------------------ reading


def find(number: int, workspace: str) -> Raw | None:
    """Two consistent reads: the artifact; whether what it was made under is there."""
    raw = table.get(keys.artifact(number))
    if raw is None or Artifact.of(raw).workspace != workspace:
        return None
    return next(iter(alive([raw])), None)


def get(number: int, workspace: str, kind: Kind | None = None) -> Raw:
    """As :func:`find`. Raises ResourceDoesNotExist."""
    raw = find(number, workspace)
    if raw is None or (kind is not None and Artifact.of(raw).kind != kind.name):
        raise missing(WORDS if kind is None else kind.words, number)
    return raw


class Owned(NamedTuple):
    """An artifact whose version or run is there, or that belongs to none."""

    raw: Raw
    model: str | None
    """The name of its version's model."""
    experiment: str | None
    """The id of its run's experiment."""


def alive(raws: Sequence[Raw]) -> list[Raw]:
    """Those of the artifacts whose version or run is there; one BatchGetItem."""
    return [one.raw for one in owned(raws)]


def owned(raws: Sequence[Raw]) -> list[Owned]:
    """As :func:`alive`, with whose they are."""
    items = [Artifact.of(raw) for raw in raws]
    wanted = list(
        dict.fromkeys(
            owner for item in items for owner in (item.parent, item.model) if owner is not None
        )
    )
    references = dict(zip(wanted, numbers.get_many(wanted), strict=True))
    found = []
    for raw, item in zip(raws, items, strict=True):
        owners = [references[one] for one in (item.parent, item.model) if one is not None]
        last = owners[-1] if owners else None
        if any(one is None for one in owners):
            continue
        if last is None:
            found.append(Owned(raw, None, None))
        elif item.model is not None:
            found.append(Owned(raw, last.name or "", None))
        else:
            found.append(Owned(raw, None, keys.experiment_id_of(last.item_pk)))
    return found


def owners(raws: Sequence[Raw]) -> list[tuple[str | None, str | None]]:
    """Returns (model's name, experiment's id) of the version or run that each artifact was made
    under, with None for what it is not; the name is empty where that is gone. One BatchGetItem."""
    items = [Artifact.of(raw) for raw in raws]
    wanted = list(
        dict.fromkeys(item.model or item.parent or 0 for item in items if item.parent is not None)
    )
    found = dict(zip(wanted, numbers.get_many(wanted), strict=True))
    told: list[tuple[str | None, str | None]] = []
    for item in items:
        owner = found.get(item.model or item.parent or 0)
        if item.parent is None:
            told.append((None, None))
        elif owner is None:
            told.append(("", None))
        elif item.model is not None:
            told.append((owner.name or "", None))
        else:
            told.append((None, keys.experiment_id_of(owner.item_pk)))
    return told


def is_there(parent: ContextRef) -> bool:
    """Whether a version or run is there as far as references tell: its model too."""
    owners = [parent.number, *([parent.parent] if parent.parent is not None else [])]
    if parent.kind != MODEL_VERSION.name:
        owners = owners[:1]
    return all(found is not None for found in numbers.get_many(owners))


def children(parent: int, wanted: Iterable[str]) -> list[Raw]:
    """The artifacts of a parent; one Query, and one BatchGetItem for each hundred."""
    kinds_wanted = set(wanted)
    prefix = keys.context_child_prefix(*kinds_wanted) if len(kinds_wanted) == 1 else None
    found = table.query_all(keys.context(parent), prefix=prefix or keys.context_child_prefix())
    linked = [child for child in map(ContextChild.of, found) if child.kind in kinds_wanted]
    return entities.find_many(MODEL_ARTIFACT.name, [child.number for child in linked])


def named(parent: int, name: str, wanted: Iterable[str]) -> tuple[ContextRef | None, list[Raw]]:
    """The parent, and its artifacts of a name; two BatchGetItem."""
    places = [keys.context_child(parent, kind, name) for kind in wanted]
    owner, *found = table.batch_get([keys.context_ref(parent), *places])
    numbers_found = [ContextChild.of(child).number for child in found if child is not None]
    reference = None if owner is None else ContextRef.of(owner)
    raws = entities.find_many(MODEL_ARTIFACT.name, numbers_found) if numbers_found else []
    return reference, raws


def external(value: str, wanted: Iterable[str], workspace: str) -> list[Raw]:
    """Those of some kinds that have an external id: of each kind one at most; three consistent
    reads for each kind."""
    given = (steps.find_external(workspace, KINDS[kind], value) for kind in wanted)
    raws = (find(number, workspace) for number in given if number is not None)
    return [raw for raw in raws if raw is not None]


# ------------------------------------------------------------------ writing


def create(entity: Entity, workspace: str, username: str | None) -> None:
    """A standalone artifact. Raises ResourceConflict."""
    execute(entities.creation(entity, workspace, created_by=username))


def create_under(
    entity: Entity,
    parent: ContextRef,
    beside: Sequence[Step] = (),
    *,
    name: str | None = None,
    **more: Any,
) -> None:
    """An artifact of a version or a run. Raises ResourceConflict, ResourceDoesNotExist."""
    owner = parent.parent if parent.kind == MODEL_VERSION.name else None
    made = entities.creation(entity, parent.workspace, parent=parent.number, model=owner, **more)
    execute([*made, link(entity, parent, name or child_name(entity)), *present(parent), *beside])


def link(entity: Entity, parent: ContextRef, name: str) -> Step:
    error = taken(KINDS[entity.kind].title, entity.name)
    return steps.child(parent.number, KINDS[entity.kind], name, entity.id, None, error)


def present(parent: ContextRef) -> list[Step]:
    """What fails when a parent is gone."""
    error = missing(KINDS[parent.kind].words, parent.number)
    owners = [parent.number]
    if parent.kind == MODEL_VERSION.name and parent.parent is not None:
        owners.append(parent.parent)
    return [Step(numbers.present(keys.context_ref(owner)), error) for owner in owners]


def attribute(entity: Entity, parent: ContextRef) -> None:
    """Makes an artifact one of a parent's too; again without effect."""
    known = table.query(keys.context(parent.number), prefix=keys.context_child_prefix(entity.kind))
    linked = {ContextChild.of(item).number for item in known.items}
    if entity.id in linked:
        return
    free = steps.find_child(parent.number, KINDS[entity.kind], entity.name) is None
    name = entity.name if free and entity.kind != kinds.DATA_SET.name else unnamed(entity.id)
    step = link(entity, parent, name)
    execute([Step(step.operation), *present(parent)])


def execute(parts: Sequence[Step]) -> None:
    steps.execute(parts)


def change(
    raw: Raw,
    alter: Callable[[Entity], Entity],
    beside: Callable[[Entity, Entity], Sequence[Step]] = lambda _before, _after: (),
) -> Entity:
    """Writes an artifact; the source of its version follows its uri.

    Raises:
        ResourceDoesNotExist: it is gone.
        ResourceConflict: another has the external id.
    """
    item = Artifact.of(raw)

    def following(before: Entity, after: Entity) -> list[Step]:
        found = [*beside(before, after)]
        if before.fields.get("uri") != after.fields.get("uri"):
            found += _source_steps(item, after)
        return found

    def stored(before: Entity) -> Entity:
        return file_uris.written(before, alter(before), item)

    return entities.change(raw, item.workspace, stored, following)


def _source_steps(item: Artifact, after: Entity) -> list[Step]:
    if item.kind != MODEL_ARTIFACT.name or item.model is None or item.parent is None:
        return []
    version = versions.find(item.parent, item.workspace)
    if version is None or version.item.source_artifact != item.number:
        return []
    uri = after.fields.get("uri")
    return version_sources.source_change(version, uri, item.number, first=False)


def delete(raw: Raw, parents: Sequence[int] = ()) -> None:
    """Removes an artifact with what names it."""
    item = Artifact.of(raw)
    mine = Condition()
    mine.require_equal(Artifact.version, item.version)
    gone: list[Step] = [Step(Delete(keys.artifact(item.number), mine))]
    gone += steps.external_id(item.workspace, KINDS[item.kind], item.number, item.external_id, None)
    for parent in dict.fromkeys([*([item.parent] if item.parent else []), *parents]):
        gone += [
            Step(Delete(keys.context_child(parent, child.kind, child.name)))
            for child in map(
                ContextChild.of,
                table.query_all(keys.context(parent), prefix=keys.context_child_prefix(item.kind)),
            )
            if child.number == item.number
        ]
    gone += _source_after(item)
    execute(gone)


def _source_after(item: Artifact) -> list[Step]:
    """The next model artifact of the version becomes its source."""
    if item.kind != MODEL_ARTIFACT.name or item.model is None or item.parent is None:
        return []
    version = versions.find(item.parent, item.workspace)
    if version is None or version.item.source_artifact != item.number:
        return []
    others = [
        entities.entity_of(raw)
        for raw in children(item.parent, (MODEL_ARTIFACT.name,))
        if Artifact.of(raw).parent == item.parent and Artifact.of(raw).number != item.number
    ]
    following = min(others, key=lambda other: other.id, default=None)
    if following is None:
        return version_sources.source_change(version, None, None, first=False)
    uri = following.fields.get("uri")
    return version_sources.source_change(version, uri, following.id, first=False)


# ------------------------------------------------------------------ a version's source


def create_of_version(
    entity: Entity,
    version: versions.Record,
    reference: ContextRef,
    *,
    name_is_shared: bool = False,
) -> None:
    """An artifact of a version; the first model artifact is its source.

    Args:
        name_is_shared: another artifact of the version may have the same type and name.

    Raises:
        ResourceConflict, ResourceDoesNotExist.
        Conflict: somebody else was first to give the version its source.
    """
    beside: list[Step] = []
    if entity.kind == MODEL_ARTIFACT.name and version.item.source_artifact is None:
        uri = entity.fields.get("uri")
        beside = version_sources.source_change(version, uri, entity.id, first=True)
    name = None
    if name_is_shared and steps.find_child(reference.number, entity.of_kind, entity.name):
        name = unnamed(entity.id)
    create_under(entity, reference, beside, name=name)
