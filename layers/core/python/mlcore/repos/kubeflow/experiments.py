"""Experiments as Kubeflow sees them: MLflow's items. Kubeflow's number (its integer id) of an
experiment is MLflow's id, or is stored with the item if that id is not a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Update
from mlcore.db.table import Check, Delete, ItemUpdate, Operation, TransactionFailed, table
from mlcore.entities.experiments import DEFAULT_EXPERIMENT_ID, Experiment
from mlcore.entities.lifecycle_stages import ACTIVE, DELETED
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.errors import InvalidParameterValue
from mlcore.ids import new_ulid, now_ms
from mlcore.kubeflow import custom_properties
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import missing_id, name_taken
from mlcore.kubeflow.kinds import EXPERIMENT as KIND
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.experiments import experiments, stages
from mlcore.repos.experiments import ids as experiment_ids
from mlcore.repos.experiments.creations import (
    ExperimentNameTaken,
    ExperimentOperationFailed,
    IdTaken,
)
from mlcore.repos.experiments.experiments import StoredExperiment as Record
from mlcore.repos.kubeflow import changes, entities, numbers, tags, transaction_steps
from mlcore.repos.kubeflow.transaction_steps import TransactionStep
from mlcore.repos.kubeflow_keys import context_items

FIELDS = ("owner",)
"""The fields of a Kubeflow experiment that are stored as MLflow tags."""


def number_of(read: Record) -> int | None:
    """Returns the number of an experiment in Kubeflow's API: the MLflow id if it is a number below
    2**31, otherwise the number that was assigned; None if none was assigned yet."""
    own = _own_number(read.experiment.experiment_id)
    return _item(read).number if own is None else own


def _own_number(experiment_id: str) -> int | None:
    """Returns an MLflow experiment id as an integer; None if it is not one."""
    if not experiment_ids.is_number(experiment_id) or len(experiment_id) > 10:
        return None
    number = int(experiment_id)
    return number if number < 2**31 and str(number) == experiment_id else None


def _item(read: Record) -> ExperimentItem:
    return ExperimentItem.of(read.document.item)


def entity_of(read: Record) -> Entity:
    """Returns an MLflow experiment as an entity of Kubeflow's API. It must have a Kubeflow
    number."""
    experiment, item = read.experiment, _item(read)
    live = experiment.lifecycle_stage == ACTIVE
    return Entity(
        kind=KIND.name,
        id=number_of(read) or 0,
        name=experiment.name,
        create_time=experiment.creation_time,
        update_time=experiment.last_update_time,
        description=experiment.tags.get(tags.NOTE),
        external_id=item.external_id,
        properties=custom_properties.of_tags(experiment.tags, item.property_types or {}),
        fields={
            "state": tags.LIVE if live else tags.ARCHIVED,
            **tags.fields_of(KIND._replace(fields=KIND.fields[:1]), experiment.tags),
        },
    )


def find(number: int, workspace: str) -> Record | None:
    """Returns the experiment with a Kubeflow number; None if the workspace has none. One
    BatchGetItem, and another request if the experiment's MLflow id is not a number."""
    item, refer = table.batch_get([keys.experiment(str(number)), keys.context_ref(number)])
    if item is None and number == 0 and workspace == DEFAULT_WORKSPACE:
        return experiments.get(DEFAULT_EXPERIMENT_ID, workspace)
    if item is not None and ExperimentItem.of(item).workspace == workspace:
        return experiments.of_item(item)
    reference = numbers.of_kind(refer, KIND.name, workspace)
    item = None if reference is None else table.get(numbers.key_of(reference))
    if item is None or ExperimentItem.of(item).workspace != workspace:
        return None  # moved to another workspace, where it has the same number
    return experiments.of_item(item)


def get(number: int, workspace: str) -> Record:
    """Returns the experiment whose integer id in Kubeflow's API is ``number``. Raises
    ResourceDoesNotExist if the workspace has none."""
    record = find(number, workspace)
    if record is None:
        raise missing_id(KIND.words, number)
    return record


def find_by_name(workspace: str, name: str) -> Record | None:
    """Returns the experiment with a name; None if the workspace has none. Two consistent GetItem,
    the name's lock and the experiment; more requests if the experiment has no Kubeflow number
    yet."""
    stored = experiments.find_stored_by_name(workspace, name)
    return None if stored is None else next(iter(numbered([stored])), None)


def create(
    entity: Entity, workspace: str, granting: Callable[[str], Sequence[Operation]]
) -> Entity:
    """Takes the next free number (Kubeflow's integer id), then creates the experiment with this
    number in one transaction. Returns the experiment.

    Args:
        granting: (experiment id) → operations that grant the caller rights on it, for the
            transaction.

    Raises:
        ResourceConflict: another experiment has the name or the external id.
    """
    for experiment_id in experiment_ids.unused_ids():
        made = entity._replace(id=int(experiment_id))
        external = transaction_steps.change_external_id(
            workspace, KIND, made.id, None, entity.external_id
        )
        experiment = Experiment(
            experiment_id=experiment_id,
            name=entity.name,
            artifact_location=experiments.default_location(experiment_id, workspace),
            lifecycle_stage=DELETED if entity.fields["state"] == tags.ARCHIVED else ACTIVE,
            creation_time=entity.create_time,
            last_update_time=entity.update_time,
            tags=tags.tags_of_tracked(entity, FIELDS),
            workspace=workspace,
        )
        also = [*(step.operation for step in external), *granting(experiment_id)]
        try:
            experiments.create(experiment, also, entities.own_attributes(ExperimentItem, entity))
        except IdTaken:
            continue
        except ExperimentNameTaken as failed:
            raise name_taken(KIND.title, entity.name) from failed
        except ExperimentOperationFailed as failed:
            errors = (step.error for step in external if step.operation is failed.operation)
            raise next(errors, None) or WriteConflict() from failed
        return made
    raise AssertionError  # numbers do not end


def stays(experiment: Experiment) -> list[TransactionStep]:
    """Returns the step of a transaction that fails if an experiment has moved to another workspace
    since it was read, as a list; an empty list in the default workspace, which nothing leaves."""
    if experiment.workspace == DEFAULT_WORKSPACE:
        return []
    here = ConditionExpression()
    here.require_equal(ExperimentItem.workspace, experiment.workspace)
    gone = missing_id(KIND.words, experiment.experiment_id)
    return [TransactionStep(Check(keys.experiment(experiment.experiment_id), here), gone)]


def numbered(reads: Sequence[Record]) -> list[Record]:
    """Returns the experiments after assigning a Kubeflow number to each that has none; leaves out
    those that were deleted meanwhile."""
    return numbers.numbered(reads, number_of, _number)


def _number(read: Record, number: int) -> Record | None:
    claimed = numbers.claim(ExperimentItem, number)
    claimed.require_exists(ExperimentItem.PK)
    experiment, key = read.experiment, read.document.key
    if experiment.workspace != DEFAULT_WORKSPACE:  # nothing leaves the default one
        claimed.require_equal(ExperimentItem.workspace, experiment.workspace)
    refer = numbers.reference(
        number, KIND.name, experiment.workspace, key, name=experiment.experiment_id
    )
    item = numbers.give(key, [ItemUpdate(key, claimed), refer])
    stored = None if item is None else experiments.of_item(item)
    return stored if stored is not None and number_of(stored) is not None else None


def change(read: Record, alter: Callable[[Entity], Entity]) -> Entity:
    """Writes an experiment changed by ``alter``, retrying on conflicts; returns it as written. If
    its state becomes archived or live, MLflow's experiment is first soft-deleted or restored.

    Raises:
        ResourceDoesNotExist: the experiment was deleted permanently.
        ResourceConflict: another experiment has the external id.
        InvalidParameterValue: the default experiment is to be archived.
    """
    number = number_of(read) or 0
    workspace = read.experiment.workspace

    def attempt(seen: Record) -> Entity:
        before = entity_of(seen)
        after = alter(before)
        if after.fields["state"] != before.fields["state"]:
            archived = after.fields["state"] == tags.ARCHIVED
            if archived and seen.experiment.experiment_id == DEFAULT_EXPERIMENT_ID:
                raise InvalidParameterValue("the default experiment cannot be archived")
            stages.set_stage(seen.experiment, DELETED if archived else ACTIVE)
            seen = get(number, workspace)
            before = entity_of(seen)
            after = alter(before)
        after = after._replace(update_time=max(now_ms(), before.update_time))
        texts = tags.tags_of_tracked(after, FIELDS)
        wanted = tags.changes(seen.experiment.tags, texts, FIELDS)
        external = transaction_steps.change_external_id(
            workspace, KIND, number, before.external_id, after.external_id
        )
        changes.write(seen.document, wanted, partial(_complete, seen, after), external)
        return after

    return changes.write_with_retry(KIND.words, read, lambda: get(number, workspace), attempt)


def _complete(read: Record, after: Entity, update: Update) -> None:
    changes.set_own_attributes(ExperimentItem, after, update)
    update.require_equal(ExperimentItem.version, _item(read).version)


def listed(workspace: str) -> Iterator[Record]:
    """Yields all experiments of a workspace, after assigning a Kubeflow number to each that has
    none. Reads GSI2, which may lag."""
    experiment_ids = sorted(experiments.ids_of_workspace(workspace))
    for at in range(0, len(experiment_ids), 100):
        chunk = experiment_ids[at : at + 100]
        items = table.batch_get([keys.experiment(each) for each in chunk])
        there = [experiments.of_item(item) for item in items if item is not None]
        if DEFAULT_EXPERIMENT_ID in chunk and items[chunk.index(DEFAULT_EXPERIMENT_ID)] is None:
            there.append(experiments.get(DEFAULT_EXPERIMENT_ID, workspace))
        yield from numbered(
            [
                numbered_experiment
                for numbered_experiment in there
                if numbered_experiment.experiment.workspace == workspace
            ]
        )


def delete(read: Record) -> None:
    """Deletes an experiment permanently, and thereby its runs; leftover items and files are deleted
    later.

    Raises:
        InvalidParameterValue: it is the default experiment.
        WriteConflict: it was changed or deleted since it was read.
    """
    experiment = read.experiment
    if experiment.experiment_id == DEFAULT_EXPERIMENT_ID:
        raise InvalidParameterValue("the default experiment cannot be deleted")
    number = number_of(read)
    lock = keys.experiment_name_lock(experiment.workspace, experiment.name)
    unchanged = ConditionExpression()
    # Else, after a rename, the name that is freed could be another experiment's by now.
    unchanged.require_equal(ExperimentItem.version, _item(read).version)
    gone = [Delete(read.document.key, unchanged), Delete(lock)]
    gone += context_items.own_external_id(
        experiment.workspace, KIND.name, _item(read).external_id, number
    )
    try:
        table.transact(gone, token=new_ulid())
    except TransactionFailed as failed:
        raise WriteConflict(experiment.experiment_id) from failed
    if number is not None:
        context_items.delete(context_items.deletions_of_context(number))
