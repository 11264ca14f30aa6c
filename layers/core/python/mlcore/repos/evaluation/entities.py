"""The common storage of label schemas, review queues and issues: one item in their experiment's
partition, one item that maps the id to the experiment, and, for kinds with unique names, one item
that locks the name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from mlcore.db import keys
from mlcore.db.attribute_types import IntAttribute, TextAttribute
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.experiments import Experiment
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import Item
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.evaluation import entity_experiments
from mlcore.repos.experiments import experiments


class EntityNameTaken(Exception):
    """Another label schema or review queue of the experiment has the name, or another entity has
    the id that the caller chose."""


class EvaluationEntity(Protocol):
    """A label schema, a review queue or an issue."""

    @property
    def experiment_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int:
        """The version of the item that was read; 0 for a new entity."""


E = TypeVar("E", bound=EvaluationEntity)


class StoredKind(Generic[E]):
    """How one kind of entities (label schemas, review queues or issues) is stored: how they are
    converted to items, and the keys of these items."""

    def __init__(
        self,
        *,
        entity_id: Callable[[E], str],
        key_of: Callable[[str, str], keys.Key],
        prefix: Callable[[], str],
        item: Callable[[E], Item],
        entity: Callable[[Raw], E],
        version: IntAttribute[int],
    ) -> None:
        """
        Args:
            entity_id: returns an entity's id.
            key_of: (experiment id, entity id) → key of the entity's item.
            prefix: returns the sort-key prefix of all entities of the kind.
            item: returns the item to store for an entity, with the next version.
            entity: returns the entity that an item holds.
            version: the attribute that counts the writes of an item.
        """
        self.entity_id = entity_id
        self.key_of = key_of
        self.prefix = prefix
        self.entity = entity
        self._item = item
        self._version = version

    def item(self, entity: E) -> Raw:
        return self._item(entity).serialize()

    def unchanged(self, entity: E) -> ConditionExpression:
        """Returns the condition that the item of ``entity`` was not written since it was read."""
        unchanged = ConditionExpression()
        unchanged.require_equal(self._version, entity.version)
        return unchanged

    def absent_or_unchanged(self, entity: E) -> ConditionExpression:
        """Returns the condition that the entity's item does not exist, or was not written since the
        entity was read."""
        condition = ConditionExpression()
        condition.require_absent_or_equal(self._version, entity.version)
        return condition

    def entity_key(self, entity: E) -> keys.Key:
        return self.key_of(entity.experiment_id, self.entity_id(entity))


class NameLocks(Generic[E]):
    """The items that lock the names of one kind of entities (label schemas or review queues)."""

    def __init__(
        self, key_of: Callable[[str, str], keys.Key], lock: type[Item], holder: TextAttribute[str]
    ) -> None:
        """
        Args:
            key_of: (experiment id, name) → key of the lock item.
            lock: the model of the lock item.
            holder: the attribute of the lock item with the id of the entity that has the name.
        """
        self.key_of = key_of
        self._lock = lock
        self._holder = holder

    def holder_in(self, lock: Raw) -> str:
        holder: str = getattr(self._lock.of(lock), self._holder.attr_name)
        return holder

    def entity_key(self, entity: E) -> keys.Key:
        return self.key_of(entity.experiment_id, entity.name)

    def taking(self, entity: E, entity_id: str) -> Put:
        name_key = self.entity_key(entity)
        held: dict[str, Any] = {self._holder.attr_name: entity_id}
        item = self._lock(PK=name_key.pk, SK=name_key.sk, updated_at=now_ms(), **held)
        return Put(item.serialize(), self._free_or(entity_id))

    def freeing(self, entity: E, entity_id: str) -> Delete:
        return Delete(self.entity_key(entity), self._free_or(entity_id))

    def _free_or(self, entity_id: str) -> ConditionExpression:
        mine = ConditionExpression()
        mine.require_absent_or_equal(self._holder, entity_id)
        return mine


def create(
    kind: StoredKind[E], entity: E, names: NameLocks[E] | None = None, *, chosen_id: bool = False
) -> None:
    """Writes a label schema, review queue or issue, the item that maps its id to its experiment,
    and, if ``names`` is given, the lock of its name, in one transaction.

    Args:
        names: how names of the kind are locked; None for a kind without unique names.
        chosen_id: whether the caller chose the id, so that it may exist already.

    Raises:
        EntityNameTaken: another entity has the name or the chosen id.
    """
    entity_id = kind.entity_id(entity)
    operations: list[Operation] = [
        Put(kind.item(entity)),
        entity_experiments.creation(entity_id, entity.experiment_id, must_be_new=chosen_id),
    ]
    if names is not None:
        operations.append(names.taking(entity, entity_id))
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        raise EntityNameTaken from failed


def find(kind: StoredKind[E], entity_id: str, workspace: str) -> E | None:
    """Returns a label schema, review queue or issue; None if it does not exist or is in another
    workspace. At most two reads: a consistent GetItem of the item that maps its id to its
    experiment, then a BatchGetItem of the entity and the experiment."""
    experiment_id = entity_experiments.experiment_of(entity_id)
    if experiment_id is None:
        return None
    places = [kind.key_of(experiment_id, entity_id), keys.experiment(experiment_id)]
    item, meta = table.batch_get(places)
    if item is None or experiments.entity_of(experiment_id, meta, workspace) is None:
        return None
    return kind.entity(item)


def find_by_name(
    kind: StoredKind[E], names: NameLocks[E], experiment: Experiment, name: str
) -> E | None:
    """Returns the label schema or review queue of an experiment that has a name; None if there is
    none. At most two consistent GetItem."""
    lock = table.get(names.key_of(experiment.experiment_id, name))
    if lock is None:
        return None
    item = table.get(kind.key_of(experiment.experiment_id, names.holder_in(lock)))
    return None if item is None else kind.entity(item)


def of_experiment(kind: StoredKind[E], experiment_id: str) -> list[E]:
    """Returns the label schemas, review queues or issues of an experiment, as ``kind`` says; one
    consistent Query per MB."""
    pk = keys.experiment(experiment_id).pk
    return [kind.entity(item) for item in table.query_all(pk, prefix=kind.prefix())]


def replace(kind: StoredKind[E], after: E) -> None:
    """Writes a changed label schema, review queue or issue. Raises WriteConflict if it was written
    or deleted since it was read."""
    try:
        table.put(kind.item(after), kind.unchanged(after))
    except ConditionFailed as failed:
        raise WriteConflict from failed


def rename(kind: StoredKind[E], names: NameLocks[E], before: E, after: E) -> None:
    """Writes the changed label schema or review queue ``after``, and moves the lock of its name if
    the name changed. Raises WriteConflict if it was written or deleted since ``before`` was read,
    EntityNameTaken if another one has the new name."""
    operations: list[Operation] = [Put(kind.item(after), kind.unchanged(before))]
    if names.entity_key(after) != names.entity_key(before):
        entity_id = kind.entity_id(after)
        operations += [names.taking(after, entity_id), Delete(names.entity_key(before))]
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        raise (WriteConflict if 0 in failed.items else EntityNameTaken) from failed


def delete(kind: StoredKind[E], names: NameLocks[E], entity: E) -> None:
    """Deletes a label schema or review queue, the item that maps its id to its experiment, and the
    lock of its name. Idempotent. Raises WriteConflict if it was written since it was read: it may
    have been renamed, and the lock of the new name would stay."""
    entity_id = kind.entity_id(entity)
    gone = [
        Delete(kind.entity_key(entity), kind.absent_or_unchanged(entity)),
        names.freeing(entity, entity_id),
        entity_experiments.deletion(entity_id),
    ]
    try:
        table.transact(gone, new_ulid())
    except TransactionFailed as failed:
        raise WriteConflict from failed
