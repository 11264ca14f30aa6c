"""Experiment runs as Kubeflow sees them: MLflow's runs, each with a number (Kubeflow's integer
id)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from mlcore import errors, reserved_tags
from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import AdditionalOperationFailed, ConditionFailed
from mlcore.db.table import (
    Delete,
    ItemUpdate,
    Operation,
    Put,
    TransactionFailed,
    key_of_item,
    table,
)
from mlcore.entities.lifecycle_stages import ACTIVE, DELETED
from mlcore.entities.runs import Run
from mlcore.ids import new_ulid
from mlcore.kubeflow import custom_properties
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing_id, name_taken
from mlcore.kubeflow.kinds import EXPERIMENT_RUN as KIND
from mlcore.limits.artifact_locations import join
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.kubeflow import ContextChild, ContextRef
from mlcore.models.runs import Run as RunItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.experiments import experiments as mlflow_experiments
from mlcore.repos.experiments.experiments import StoredExperiment as ExperimentRecord
from mlcore.repos.kubeflow import entities, experiments, numbers, tags, transaction_steps
from mlcore.repos.kubeflow_keys import context_items
from mlcore.repos.removal import remains
from mlcore.repos.runs.core import creations, run_writes, runs
from mlcore.repos.runs.core.runs import StoredRun as RunRecord


class NumberedRun(NamedTuple):
    """A run that was read, with the number that identifies its experiment in Kubeflow's API."""

    run: RunRecord
    experiment: int

    @property
    def item(self) -> RunItem:
        return self.run.item

    @property
    def number(self) -> int:
        return self.item.number or 0


def entity_of(read: NumberedRun) -> Entity:
    """Returns an MLflow run as an entity of Kubeflow's API. It must have a Kubeflow number."""
    item = read.item
    texts = read.run.document.texts("tags")
    fields: dict[str, Any] = {
        "experimentId": str(read.experiment),
        "startTimeSinceEpoch": str(item.start_time),
        "status": item.status,
        "state": tags.LIVE if read.run.stage == ACTIVE else tags.ARCHIVED,
    }
    if item.end_time is not None:
        fields["endTimeSinceEpoch"] = str(item.end_time)
    if item.user_id:
        fields["owner"] = item.user_id
    return Entity(
        kind=KIND.name,
        id=read.number,
        name=item.run_name,
        create_time=item.start_time,
        update_time=item.updated_at or item.start_time,
        description=texts.get(tags.NOTE),
        external_id=item.external_id,
        properties=custom_properties.of_tags(texts, item.property_types or {}),
        fields=fields,
    )


def find(number: int, workspace: str) -> NumberedRun | None:
    """Returns the run with a Kubeflow number; None if the workspace has none. Two consistent reads:
    the item that maps the number to MLflow's item, then the run with its experiment."""
    reference = numbers.of_kind(numbers.raw(number), KIND.name, workspace)
    return None if reference is None else at(reference)


def at(reference: ContextRef) -> NumberedRun | None:
    """Returns the run that a reference (the item that maps Kubeflow's number to MLflow's item)
    points to; None if that run no longer exists, or is in another workspace than the reference. One
    BatchGetItem."""
    key = numbers.key_of(reference)
    experiment_id = keys.experiment_id_of(key.pk)
    raw, meta = table.batch_get([key, keys.experiment(experiment_id)])
    if raw is None or meta is None or ExperimentItem.of(meta).workspace != reference.workspace:
        return None
    read = runs.of_item(raw, mlflow_experiments.of_item(meta).experiment)
    return NumberedRun(read, reference.parent or 0)


def get(number: int, workspace: str) -> NumberedRun:
    """Returns the run with a Kubeflow number. Raises ResourceDoesNotExist if the workspace has
    none."""
    record = find(number, workspace)
    if record is None:
        raise missing_id(KIND.words, number)
    return record


def named(experiment: ExperimentRecord, name: str) -> list[NumberedRun]:
    """Returns those runs of an experiment that have the name ``name``, after assigning a Kubeflow
    number to each that has none. One consistent Query per MB, and the requests that assign."""
    pk = keys.experiment(experiment.experiment.experiment_id).pk
    items = table.query_all(pk, index="LSI4", prefix=keys.lsi4_run_name_prefix(name))
    return numbered(
        [record(item, experiment) for item in items if RunItem.of(item).run_name == name]
    )


def record(raw: Raw, experiment: ExperimentRecord) -> NumberedRun:
    number = experiments.number_of(experiment)
    return NumberedRun(runs.of_item(raw, experiment.experiment), number or 0)


def of_experiment(experiment: ExperimentRecord) -> list[NumberedRun]:
    """Returns all runs of an experiment, active and deleted; one consistent Query per MB. First
    assigns a Kubeflow number to each run that has none, which takes more requests."""
    pk = keys.experiment(experiment.experiment.experiment_id).pk
    items = table.query_all(pk, index="LSI2", prefix=keys.lsi2_run_prefix())
    return numbered([record(item, experiment) for item in items])


def create(entity: Entity, experiment: ExperimentRecord, username: str | None) -> Entity:
    """Creates a run for Kubeflow's API, where the names of an experiment's runs are unique, in one
    transaction.

    Args:
        username: the caller's name; None if there is no login.

    Raises:
        ResourceConflict: the name or the external id is taken.
        InvalidParameterValue: the experiment is archived.
        ResourceDoesNotExist: the experiment has moved to another workspace.
    """
    owner = experiment.experiment
    parent = experiments.number_of(experiment) or 0
    if owner.lifecycle_stage != ACTIVE:
        raise errors.InvalidParameterValue(f"the experiment {parent} is archived")
    if named(experiment, entity.name):
        raise name_taken(KIND.title, entity.name)
    run_id = new_ulid()
    fields = entity.fields
    start = int(fields.get("startTimeSinceEpoch", entity.create_time))
    end = fields.get("endTimeSinceEpoch")
    run = Run(
        run_id=run_id,
        experiment_id=owner.experiment_id,
        run_name=entity.name,
        user_id=fields.get("owner", ""),
        status=fields["status"],
        start_time=start,
        end_time=None if end is None else int(end),
        artifact_uri=join(owner.artifact_location, f"{run_id}/artifacts"),
        lifecycle_stage=DELETED if fields["state"] == tags.ARCHIVED else ACTIVE,
        metrics={},
        params={},
        tags={**tags.tags_of_tracked(entity, ()), reserved_tags.RUN_NAME: entity.name},
    )
    key = keys.run(owner.experiment_id, run_id)
    error = name_taken(KIND.title, entity.name)
    parts = [
        transaction_steps.reserve_child_name(parent, KIND, entity.name, entity.id, key, error),
        *transaction_steps.change_external_id(
            owner.workspace, KIND, entity.id, None, entity.external_id
        ),
        *experiments.stays(owner),
    ]
    refer = _reference(entity.id, owner.workspace, run_id, key, parent)
    more = entities.attributes(RunItem, entity, owner.workspace)

    def attempt() -> None:
        try:
            also = [*(part.operation for part in parts), refer]
            creations.create(run, owner, also, more, created_by=username)
        except AdditionalOperationFailed as failed:
            if failed.position == 0 and _free_stale_name(parent, entity.name, owner.workspace):
                raise WriteConflict from failed
            raise transaction_steps.error_at(parts, failed.position) from failed

    retry_on_conflict(KIND.words, attempt)
    made = runs.load(run_id, owner.workspace)
    return entity_of(NumberedRun(made, parent))


def _free_stale_name(parent: int, name: str, workspace: str) -> bool:
    """Returns whether a name is free for a new run of an experiment. If the run that reserved the
    name was renamed or deleted since, deletes the reservation.

    Args:
        parent: the Kubeflow number of the experiment.
    """
    child = transaction_steps.find_child(parent, KIND, name)
    if child is None:
        return True
    holder = find(child.number, workspace)
    if holder is not None and holder.item.run_name == name:
        return False
    mine = ConditionExpression()
    mine.require_equal(ContextChild.number, child.number)
    with contextlib.suppress(ConditionFailed):
        table.delete(keys.context_child(parent, KIND.name, name), mine)
    return True


def _reference(number: int, workspace: str, run_id: str, key: keys.Key, parent: int) -> Put:
    return numbers.reference(number, KIND.name, workspace, key, parent=parent, name=run_id)


def numbered(reads: Sequence[NumberedRun]) -> list[NumberedRun]:
    """Returns the runs after assigning a number (Kubeflow's integer id) to each that has none;
    leaves out those that were deleted meanwhile."""
    return numbers.numbered_together(
        reads, lambda read: read.run.document.item, _claim_operations, _read_again, _number
    )


def _claim_operations(read: NumberedRun, number: int) -> list[Operation]:
    run, run_key = read.run, read.run.document.key
    workspace = run.experiment.workspace
    claimed = numbers.claim(RunItem, number, keys.gsi2_number(workspace, KIND.name, number))
    claimed.require_exists(RunItem.PK)
    refer = _reference(number, workspace, run.run_id, run_key, read.experiment)
    here = [step.operation for step in experiments.stays(run.experiment)]
    return [ItemUpdate(run_key, claimed), refer, *here]


def _read_again(reads: Sequence[NumberedRun]) -> list[NumberedRun | None]:
    items = table.batch_get([read.run.document.key for read in reads])
    return [_reread(read, item) for read, item in zip(reads, items, strict=True)]


def _reread(read: NumberedRun, item: Raw | None) -> NumberedRun | None:
    if item is None:
        return None
    return NumberedRun(runs.of_item(item, read.run.experiment), read.experiment)


def _number(read: NumberedRun, number: int) -> NumberedRun | None:
    """Gives a run that its transaction left without a number one; returns the run afterwards, None
    if it was deleted or its experiment has moved."""
    item = numbers.give(read.run.document.key, _claim_operations(read, number))
    stored = _reread(read, item)
    return None if stored is None or stored.item.number is None else stored


def change(read: NumberedRun, alter: Callable[[Entity], Entity]) -> Entity:
    """Writes a run that ``alter`` changed as an entity of Kubeflow's API; returns it as written. If
    its state changes, it is first deleted or restored as MLflow does it.

    Raises:
        ResourceDoesNotExist: the run was deleted, or moved to another workspace.
        ResourceConflict: another run has the external id.
    """
    workspace = read.run.experiment.workspace
    before = entity_of(read)
    after = alter(before)
    taken_now = transaction_steps.change_external_id(
        workspace, KIND, read.number, None, after.external_id
    )
    if not taken_now or after.external_id == before.external_id:
        return _change(read, before, after, alter)
    transaction_steps.execute(taken_now)
    try:
        return _change(read, before, after, alter)
    except errors.ResourceDoesNotExist:
        _give_up(read, after.external_id)
        raise


def _change(
    read: NumberedRun, before: Entity, after: Entity, alter: Callable[[Entity], Entity]
) -> Entity:
    if after.fields["state"] != before.fields["state"]:
        stage = DELETED if after.fields["state"] == tags.ARCHIVED else ACTIVE
        run_writes.set_stage(read.run, stage)
        read = get(read.number, read.run.experiment.workspace)

    def decide(current: RunRecord) -> tuple[dict[str, dict[str, str]], list[tuple[str, str]]]:
        now = current.document.texts("tags")
        changed = alter(entity_of(NumberedRun(current, read.experiment)))
        wanted = tags.changes(now, tags.tags_of_tracked(changed, ()), ())
        return wanted.sets, wanted.removals

    fields = after.fields
    attributes: list[tuple[ItemAttribute[Any], Any]] = [
        (RunItem.status, fields["status"]),
        (RunItem.property_types, custom_properties.marks(after.properties)),
        (RunItem.lsi3sk, keys.lsi3_run(fields["status"], read.item.start_time, read.run.run_id)),
        (RunItem.external_id, after.external_id),
        (RunItem.user_id, fields.get("owner", "")),
    ]
    if "endTimeSinceEpoch" in fields:
        attributes.append((RunItem.end_time, int(fields["endTimeSinceEpoch"])))
    run_writes.write(read.run, decide, attributes, exclusive=True, any_stage=True)
    if before.external_id and after.external_id != before.external_id:
        _give_up(read, before.external_id)
    return entity_of(get(read.number, read.run.experiment.workspace))


def _give_up(read: NumberedRun, external_id: str | None) -> None:
    """Frees an external id that a run has, unless another run has it by now."""
    workspace = read.run.experiment.workspace
    steps = transaction_steps.change_external_id(workspace, KIND, read.number, external_id, None)
    with contextlib.suppress(WriteConflict):
        transaction_steps.execute(steps)


def delete(read: NumberedRun) -> None:
    """Deletes a run permanently; its files and derived items are deleted later. Raises
    WriteConflict if its external id was changed since it was read."""
    item, run = read.item, read.run
    gone = [Delete(run.document.key), Delete(keys.context_ref(read.number))]
    child = transaction_steps.find_child(read.experiment, KIND, item.run_name)
    if child is not None and child.number == read.number:
        gone.append(Delete(keys.context_child(read.experiment, KIND.name, item.run_name)))
    gone += context_items.own_external_id(
        run.experiment.workspace, KIND.name, item.external_id, read.number
    )
    try:
        table.transact(gone, token=new_ulid())
    except TransactionFailed as failed:  # the external id was given up, and another run took it
        raise WriteConflict from failed
    context_items.delete(context_items.deletions_of_context(read.number))
    remains.of_run(run.experiment.experiment_id, run.run_id)


# ------------------------------------------------------------------ lists


def listed(workspace: str, above: int = 0) -> Iterator[NumberedRun]:
    """Yields all runs of a workspace whose Kubeflow number is greater than ``above``, by number,
    then those that the index of the numbers, which may lag, lacks; a run without a number gets one.
    """

    def unseen() -> Iterator[NumberedRun]:
        return entities.side_by_side(of_experiment, experiments.listed(workspace))

    return entities.by_number(workspace, KIND, above, at_numbers, unseen)


def at_numbers(wanted: Sequence[int], workspace: str) -> list[NumberedRun]:
    """Returns the existing runs with the given Kubeflow numbers, in their order; a few BatchGetItem
    per hundred."""
    references = numbers.find_many(wanted, KIND.name, workspace)
    places = [numbers.key_of(reference) for reference in references]
    owners = list(dict.fromkeys(keys.experiment_id_of(key.pk) for key in places))
    items = table.batch_get([*places, *map(keys.experiment, owners)])
    metas = {
        owner: mlflow_experiments.of_item(meta).experiment
        for owner, meta in zip(owners, items[len(places) :], strict=True)
        if meta is not None
    }
    found_records = []
    for reference, item in zip(references, items[: len(places)], strict=True):
        if item is not None:
            experiment = metas.get(keys.experiment_id_of(key_of_item(item).pk))
            if experiment is not None:
                read = runs.of_item(item, experiment)
                found_records.append(NumberedRun(read, reference.parent or 0))
    return found_records
