"""Changes entities of Kubeflow's registry: reads an entity, computes the change, writes it on the
condition that the entity was not written since the read, and retries after conflicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import TransactionFailed
from mlcore.kubeflow import custom_properties
from mlcore.kubeflow.entity import Entity
from mlcore.models.experiments import Experiment
from mlcore.models.registry import ModelVersion, RegisteredModel
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos import document_writes
from mlcore.repos.document import Document
from mlcore.repos.kubeflow import transaction_steps
from mlcore.repos.kubeflow.tags import Changes
from mlcore.repos.kubeflow.transaction_steps import TransactionStep
from mlcore.repos.kubeflow_keys import list_keys

R = TypeVar("R")


def write_with_retry(
    words: str, read: R, again: Callable[[], R], attempt: Callable[[R], Entity]
) -> Entity:
    """Calls ``attempt`` with the entity that was read. After a WriteConflict, reads the entity with
    ``again`` and calls ``attempt`` again. Returns the written entity.

    Args:
        words: the kind of entity, for the error message if conflicts persist.
        again: reads the entity; raises if it no longer exists.
        attempt: computes the change of an entity, writes it and returns it as written.
    """
    current: R | None = read

    def once() -> Entity:
        nonlocal current
        seen, current = current, None
        return attempt(again() if seen is None else seen)

    return retry_on_conflict(words, once)


def write(
    written: Document,
    wanted: Changes,
    complete: Callable[[Update], None],
    external: Sequence[TransactionStep],
) -> None:
    """Writes the tags of an MLflow item, further attributes, and the external id that Kubeflow gave
    it.

    Args:
        written: the item with its tags as it was read.
        wanted: the tags to set and to remove.
        complete: adds further attributes and conditions to the update.
        external: the steps that take a new external id and free the former one.

    Raises:
        WriteConflict: the item changed since it was read.
        ResourceConflict: another entity has the external id.
    """
    operations = [step.operation for step in external]
    try:
        document_writes.write(written, wanted.sets, wanted.removals, complete, operations)
    except ConditionFailed as failed:
        raise WriteConflict from failed
    except TransactionFailed as failed:
        raise transaction_steps.error_of(external, failed) from failed


def set_own_attributes(
    item: type[Experiment | ModelVersion | RegisteredModel], after: Entity, update: Update
) -> None:
    """Adds to the update of an MLflow item the attributes that only Kubeflow has: the types of
    custom properties, the external id, and the time of the last update by which lists are ordered.

    Args:
        item: the model of the item.
        after: the entity as it will be written.
    """
    if issubclass(item, Experiment):
        update.set(item.last_update_time, after.update_time)
    else:
        list_keys.set_update_time(update, item, after.id, after.update_time)
    update.set(item.property_types, custom_properties.marks(after.properties))
    update.set_or_remove(item.external_id, after.external_id)
