"""Artifacts: one item each under its own number (Kubeflow's integer id), and a child item for every
version or run that has the artifact.

A version or run is the *parent* of its artifacts. Its *reference* is the item that maps its number
to MLflow's item (:mod:`mlcore.repos.kubeflow.numbers`). The URI of a version's first model artifact
is MLflow's source of the version. When a version that MLflow created gets its number, its first
model artifact is created (:mod:`mlcore.repos.kubeflow.source_artifacts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.table import Check, Delete, table
from mlcore.kubeflow import kinds
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing_id, name_taken
from mlcore.kubeflow.kinds import KINDS, MODEL_ARTIFACT, MODEL_VERSION, EntityKind
from mlcore.models.kubeflow import Artifact, ContextChild, ContextRef
from mlcore.repos.kubeflow import (
    entities,
    file_uris,
    numbers,
    transaction_steps,
    version_sources,
    versions,
)
from mlcore.repos.kubeflow.transaction_steps import TransactionStep

UNNAMED: Final = "\0"
"""Prefix of the child names of artifacts whose own names need not be unique; no name from a client
contains it."""

WORDS: Final = "artifact"


def child_name(entity: Entity) -> str:
    """Returns the name under which a new artifact of Kubeflow's API is listed among the artifacts
    of its version or run. For a data set that name is made from its number, because several may
    have the same name."""
    return unnamed(entity.id) if entity.kind == kinds.DATA_SET.name else entity.name


def unnamed(number: int) -> str:
    return f"{UNNAMED}{number}"


# ------------------------------------------------------------------ reading


def find(number: int, workspace: str) -> Raw | None:
    """Returns the item of an artifact in Kubeflow's registry; None if the workspace lacks the
    artifact, or if the model version or run to which it belongs is gone. Two consistent reads: the
    artifact, then its owners."""
    raw = table.get(keys.artifact(number))
    if raw is None or Artifact.of(raw).workspace != workspace:
        return None
    return next(iter(alive([raw])), None)


def get(number: int, workspace: str, kind: EntityKind | None = None) -> Raw:
    """Returns a Kubeflow artifact's item as :func:`find` does. Raises ResourceDoesNotExist if there
    is no such artifact, or it is not of ``kind``."""
    raw = find(number, workspace)
    if raw is None or (kind is not None and Artifact.of(raw).kind != kind.name):
        raise missing_id(WORDS if kind is None else kind.words, number)
    return raw


class Owned(NamedTuple):
    """A Kubeflow artifact, with the owner that it belongs to: an existing model version or run, or
    none if it was created alone."""

    raw: Raw
    model: str | None
    """The name of the model to whose version the artifact belongs; None if it belongs to none."""
    experiment: str | None
    """The id of the experiment to whose run the artifact belongs; None if it belongs to none."""


def alive(raws: Sequence[Raw]) -> list[Raw]:
    """Returns those of the Kubeflow artifacts whose model version or run exists, and those without
    an owner. One BatchGetItem per hundred owners."""
    return [artifact.raw for artifact in owned(raws)]


def owned(raws: Sequence[Raw]) -> list[Owned]:
    """Returns those of the Kubeflow artifacts that :func:`alive` returns, each with its model's
    name or its experiment's id; one BatchGetItem per hundred owners."""
    items = [Artifact.of(raw) for raw in raws]
    wanted = list(
        dict.fromkeys(
            owner for item in items for owner in (item.parent, item.model) if owner is not None
        )
    )
    references = dict(zip(wanted, numbers.get_many(wanted), strict=True))
    existing = []
    for raw, item in zip(raws, items, strict=True):
        owners = [references[number] for number in (item.parent, item.model) if number is not None]
        last = owners[-1] if owners else None
        if any(owner is None for owner in owners):
            continue
        if last is None:
            existing.append(Owned(raw, None, None))
        elif item.model is not None:
            existing.append(Owned(raw, last.name or "", None))
        else:
            existing.append(Owned(raw, None, keys.experiment_id_of(last.item_pk)))
    return existing


def owners(raws: Sequence[Raw]) -> list[tuple[str | None, str | None]]:
    """Returns for each Kubeflow artifact the model version or run under which it was created (its
    owner), as (model's name, experiment's id). The model's name is None for the artifact of a run
    or of no owner, and "" if the owner was deleted; the experiment's id is None unless the owner is
    a run. One BatchGetItem per hundred owners."""
    items = [Artifact.of(raw) for raw in raws]
    wanted = list(
        dict.fromkeys(item.model or item.parent or 0 for item in items if item.parent is not None)
    )
    references = dict(zip(wanted, numbers.get_many(wanted), strict=True))
    names_and_ids: list[tuple[str | None, str | None]] = []
    for item in items:
        owner = references.get(item.model or item.parent or 0)
        if item.parent is None:
            names_and_ids.append((None, None))
        elif owner is None:
            names_and_ids.append(("", None))
        elif item.model is not None:
            names_and_ids.append((owner.name or "", None))
        else:
            names_and_ids.append((None, keys.experiment_id_of(owner.item_pk)))
    return names_and_ids


def is_there(parent: ContextRef) -> bool:
    """Whether the run, or the model version with its model, to which artifacts belong exists. Reads
    their references (the items that map Kubeflow's numbers to MLflow's items) from the table.

    Args:
        parent: the reference of the version or run as it was read before.
    """
    owners = [parent.number, *([parent.parent] if parent.parent is not None else [])]
    if parent.kind != MODEL_VERSION.name:
        owners = owners[:1]
    return all(reference is not None for reference in numbers.get_many(owners))


def children(parent: int, wanted: Iterable[str]) -> list[Raw]:
    """Returns the items of Kubeflow's artifacts of a model version or run. One Query per MB of
    references to artifacts, and one BatchGetItem per hundred artifacts.

    Args:
        parent: Kubeflow's number of the version or run.
        wanted: the kinds of artifacts to return.
    """
    kinds_wanted = set(wanted)
    prefix = keys.context_child_prefix(*kinds_wanted) if len(kinds_wanted) == 1 else None
    items = table.query_all(keys.context(parent), prefix=prefix or keys.context_child_prefix())
    linked = [child for child in map(ContextChild.of, items) if child.kind in kinds_wanted]
    return entities.find_many(MODEL_ARTIFACT.name, [child.number for child in linked])


def named(parent: int, name: str, wanted: Iterable[str]) -> tuple[ContextRef | None, list[Raw]]:
    """Returns the reference of a model version or run (the item that maps its Kubeflow number to
    MLflow's item; None if it does not exist), and the items of the artifacts that are listed in it
    under the name ``name``, at most one per kind. (Data sets are not listed under their own names:
    :func:`child_name`.) One BatchGetItem, two if there are such artifacts.

    Args:
        parent: Kubeflow's number of the version or run.
        wanted: the kinds of artifacts to return.
    """
    places = [keys.context_child(parent, kind, name) for kind in wanted]
    owner, *items = table.batch_get([keys.context_ref(parent), *places])
    numbers_found = [ContextChild.of(child).number for child in items if child is not None]
    reference = None if owner is None else ContextRef.of(owner)
    raws = entities.find_many(MODEL_ARTIFACT.name, numbers_found) if numbers_found else []
    return reference, raws


def external(value: str, wanted: Iterable[str], workspace: str) -> list[Raw]:
    """Returns the items of the Kubeflow artifacts with an external id, at most one per kind; at
    most three consistent reads per kind.

    Args:
        value: the external id.
        wanted: the kinds of artifacts to return.
    """
    given = (transaction_steps.find_external(workspace, KINDS[kind], value) for kind in wanted)
    raws = (find(number, workspace) for number in given if number is not None)
    return [raw for raw in raws if raw is not None]


# ------------------------------------------------------------------ writing


def create(entity: Entity, workspace: str, username: str | None) -> None:
    """Creates an artifact of Kubeflow's registry that belongs to no model version or run. Raises
    ResourceConflict if another artifact has its external id."""
    made = entities.creation(entity, workspace, created_by=username)
    execute([*transaction_steps.enter(workspace), *made])


def create_under(
    entity: Entity,
    parent: ContextRef,
    beside: Sequence[TransactionStep] = (),
    *,
    name: str | None = None,
    **more: Any,
) -> None:
    """Creates a Kubeflow artifact of a model version or run.

    Args:
        parent: the reference of the version or run (the item that maps its Kubeflow number to
            MLflow's item).
        beside: further steps of the transaction.
        name: the name under which it is listed among the artifacts of the version or run; None for
            :func:`child_name`.
        more: further attributes of the artifact's item.

    Raises:
        ResourceConflict: another artifact has the name or the external id.
        ResourceDoesNotExist: the version or run was deleted.
    """
    owner = parent.parent if parent.kind == MODEL_VERSION.name else None
    made = entities.creation(entity, parent.workspace, parent=parent.number, model=owner, **more)
    execute([*made, link(entity, parent, name or child_name(entity)), *present(parent), *beside])


def link(entity: Entity, parent: ContextRef, name: str) -> TransactionStep:
    error = name_taken(KINDS[entity.kind].title, entity.name)
    return transaction_steps.reserve_child_name(
        parent.number, KINDS[entity.kind], name, entity.id, None, error
    )


def present(parent: ContextRef) -> list[TransactionStep]:
    """Returns the steps of a transaction that fail if a Kubeflow artifact's parent (a run, or a
    model version and its model) was deleted, or moved to another workspace."""
    error = missing_id(KINDS[parent.kind].words, parent.number)
    owners = [parent.number]
    if parent.kind == MODEL_VERSION.name and parent.parent is not None:
        owners.append(parent.parent)
    here = ConditionExpression()
    here.require_equal(ContextRef.workspace, parent.workspace)
    return [TransactionStep(Check(keys.context_ref(owner), here), error) for owner in owners]


def attribute(entity: Entity, parent: ContextRef) -> None:
    """Adds an existing Kubeflow artifact to those of another model version or run. Idempotent.
    Raises ResourceDoesNotExist if that was deleted.

    Args:
        parent: the reference of that version or run (the item that maps its Kubeflow number to
            MLflow's item).
    """
    prefix = keys.context_child_prefix(entity.kind)
    known = table.query_all(keys.context(parent.number), prefix=prefix)
    if any(ContextChild.of(item).number == entity.id for item in known):
        return
    free = transaction_steps.find_child(parent.number, KINDS[entity.kind], entity.name) is None
    name = entity.name if free and entity.kind != kinds.DATA_SET.name else unnamed(entity.id)
    step = link(entity, parent, name)
    execute([TransactionStep(step.operation), *present(parent)])


def execute(parts: Sequence[TransactionStep]) -> None:
    transaction_steps.execute(parts)


def change(
    raw: Raw,
    alter: Callable[[Entity], Entity],
    beside: Callable[[Entity, Entity], Sequence[TransactionStep]] = lambda _before, _after: (),
) -> Entity:
    """Writes a changed artifact of Kubeflow's registry. If it is the source of its model version,
    also sets the version's ``source`` in MLflow to the artifact's URI.

    Args:
        alter: returns the changed artifact; called again after a conflict.
        beside: returns further steps of the transaction, from the artifact before and after.

    Raises:
        ResourceDoesNotExist: the artifact was deleted.
        ResourceConflict: another artifact has the external id.
    """
    item = Artifact.of(raw)

    def following(before: Entity, after: Entity) -> list[TransactionStep]:
        changes = [*beside(before, after)]
        if before.fields.get("uri") != after.fields.get("uri"):
            changes += _source_steps(item, after)
        return changes

    def stored(before: Entity) -> Entity:
        return file_uris.written(before, alter(before), item)

    return entities.change(raw, item.workspace, stored, following)


def _source_steps(item: Artifact, after: Entity) -> list[TransactionStep]:
    if item.kind != MODEL_ARTIFACT.name or item.model is None or item.parent is None:
        return []
    version = versions.find(item.parent, item.workspace)
    if version is None or version.item.source_artifact != item.number:
        return []
    uri = after.fields.get("uri")
    return version_sources.source_change(version, uri, item.number, first=False)


def delete(raw: Raw, parents: Sequence[int] = ()) -> None:
    """Deletes an artifact of Kubeflow's API, the lock of its external id, and the items that list
    it below its versions and runs. If it is the source of its version, the version's next model
    artifact becomes the source. Raises WriteConflict if the artifact was written since it was read.

    Args:
        raw: the artifact's item.
        parents: the Kubeflow numbers of the versions and runs to which the artifact was added after
            it was created.
    """
    item = Artifact.of(raw)
    mine = ConditionExpression()
    mine.require_equal(Artifact.version, item.version)
    gone: list[TransactionStep] = [TransactionStep(Delete(keys.artifact(item.number), mine))]
    gone += transaction_steps.change_external_id(
        item.workspace, KINDS[item.kind], item.number, item.external_id, None
    )
    for parent in dict.fromkeys([*([item.parent] if item.parent else []), *parents]):
        gone += [
            TransactionStep(Delete(keys.context_child(parent, child.kind, child.name)))
            for child in map(
                ContextChild.of,
                table.query_all(keys.context(parent), prefix=keys.context_child_prefix(item.kind)),
            )
            if child.number == item.number
        ]
    gone += _source_after(item)
    execute(gone)


def _source_after(item: Artifact) -> list[TransactionStep]:
    """Returns the transaction steps that make the version's next model artifact its source, when
    the artifact that is the source is deleted; an empty list if ``item`` is not the source of its
    version."""
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
    version: versions.VersionOfModel,
    reference: ContextRef,
    *,
    name_is_shared: bool = False,
) -> None:
    """Creates an artifact of a model version in Kubeflow's registry; a version's first model
    artifact becomes the source of the version.

    Args:
        version: the version as it was read.
        reference: the item that maps the version's Kubeflow number to its MLflow item.
        name_is_shared: the version is allowed to have several artifacts of this type and name.

    Raises:
        ResourceConflict: another artifact has the name or the external id.
        ResourceDoesNotExist: the version was deleted.
        WriteConflict: another request gave the version its source first.
    """
    beside: list[TransactionStep] = []
    if entity.kind == MODEL_ARTIFACT.name and version.item.source_artifact is None:
        uri = entity.fields.get("uri")
        beside = version_sources.source_change(version, uri, entity.id, first=True)
    name = None
    if name_is_shared and transaction_steps.find_child(
        reference.number, entity.of_kind, entity.name
    ):
        name = unnamed(entity.id)
    create_under(entity, reference, beside, name=name)
