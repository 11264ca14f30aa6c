"""Changes of entities: what was read decides what is written, until nobody comes between; what
each part of the transaction means when it does not hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import TransactionFailed
from mlcore.kubeflow import properties
from mlcore.kubeflow.entity import Entity
from mlcore.models.experiments import Experiment
from mlcore.models.registry import ModelVersion, RegisteredModel
from mlcore.repos import document_writes
from mlcore.repos.document import Document
from mlcore.repos.kubeflow import listing, steps
from mlcore.repos.kubeflow.steps import Step
from mlcore.repos.kubeflow.tags import Changes
from mlcore.settle import Conflict, settle

R = TypeVar("R")


def settled(words: str, read: R, again: Callable[[], R], attempt: Callable[[R], Entity]) -> Entity:
    """Writes an entity by how it was read, and by how ``again`` reads it after each Conflict."""
    current: R | None = read

    def once() -> Entity:
        nonlocal current
        seen, current = current, None
        return attempt(again() if seen is None else seen)

    return settle(words, once)


def write(
    written: Document,
    wanted: Changes,
    complete: Callable[[Update], None],
    external: Sequence[Step],
) -> None:
    """Writes the tags of an item of MLflow's, its attributes, and its external id.

    Raises:
        Conflict: it is not as it was read.
        ResourceConflict: another has the external id.
    """
    operations = [step.operation for step in external]
    try:
        document_writes.write(written, wanted.sets, wanted.removals, complete, operations)
    except ConditionFailed as failed:
        raise Conflict from failed
    except TransactionFailed as failed:
        raise steps.meaning(external, failed) from failed


def keep(
    item: type[Experiment | ModelVersion | RegisteredModel], after: Entity, update: Update
) -> None:
    """What MLflow has no word for: the types of its properties, its external id."""
    if issubclass(item, Experiment):
        update.set(item.last_update_time, after.update_time)
    else:
        listing.updated(update, item, after.id, after.update_time)
    update.set(item.property_types, properties.marks(after.properties))
    update.set_or_remove(item.external_id, after.external_id)
