"""What label schemas, review queues and issues share: an item each in the partition of their
experiment, one that leads from the id there, and, where names are unique, one that holds the name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute, TextAttribute
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.experiments import Experiment
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import Item
from mlcore.repos.evaluation import entity_refs
from mlcore.repos.experiments import experiments
from mlcore.settle import Conflict


class NameTaken(Exception):
    """Another entity of the kind has the name in the experiment."""


class Entity(Protocol):
    """A label schema, a review queue or an issue."""

    @property
    def experiment_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int:
        """Of the item that it was read from; 0: it is new."""


E = TypeVar("E", bound=Entity)


class Kind(Generic[E]):
    """How entities of one kind are kept."""

    def __init__(
        self,
        *,
        entity_id: Callable[[E], str],
        place: Callable[[str, str], keys.Key],
        prefix: Callable[[], str],
        item: Callable[[E], Item],
        entity: Callable[[Raw], E],
        version: IntAttribute[int],
    ) -> None:
        """
        Args:
            place: (experiment id, entity id) → key.
            item: the item that follows the one that an entity was read from.
            version: the attribute that counts the writes of an item.
        """
        self.entity_id = entity_id
        self.place = place
        self.prefix = prefix
        self.entity = entity
        self._item = item
        self._version = version

    def item(self, entity: E) -> Raw:
        return self._item(entity).serialize()

    def unchanged(self, entity: E) -> Condition:
        """Nobody has written the item since the entity was read."""
        unchanged = Condition()
        unchanged.require_equal(self._version, entity.version)
        return unchanged

    def place_of(self, entity: E) -> keys.Key:
        return self.place(entity.experiment_id, self.entity_id(entity))


class Names(Generic[E]):
    """How the names of one kind are held."""

    def __init__(
        self, place: Callable[[str, str], keys.Key], lock: type[Item], holder: TextAttribute[str]
    ) -> None:
        """
        Args:
            place: (experiment id, name) → key.
            holder: the attribute of the lock item that tells the id of who holds the name.
        """
        self.place = place
        self._lock = lock
        self._holder = holder

    def holder_in(self, lock: Raw) -> str:
        holder: str = getattr(self._lock.of(lock), self._holder.attr_name)
        return holder

    def place_of(self, entity: E) -> keys.Key:
        return self.place(entity.experiment_id, entity.name)

    def taking(self, entity: E, entity_id: str) -> Put:
        place = self.place_of(entity)
        held: dict[str, Any] = {self._holder.attr_name: entity_id}
        item = self._lock(PK=place.pk, SK=place.sk, updated_at=now_ms(), **held)
        return Put(item.serialize(), self._free_or(entity_id))

    def freeing(self, entity: E, entity_id: str) -> Delete:
        return Delete(self.place_of(entity), self._free_or(entity_id))

    def _free_or(self, entity_id: str) -> Condition:
        mine = Condition()
        mine.require_absent_or_equal(self._holder, entity_id)
        return mine


def create(kind: Kind[E], entity: E, names: Names[E] | None = None) -> None:
    """One transaction: the entity, whose id is new, its place, and its name. Raises NameTaken."""
    entity_id = kind.entity_id(entity)
    operations: list[Operation] = [
        Put(kind.item(entity)),
        entity_refs.put(entity_id, entity.experiment_id),
    ]
    if names is not None:
        operations.append(names.taking(entity, entity_id))
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        raise NameTaken from failed


def find(kind: Kind[E], entity_id: str, workspace: str) -> E | None:
    """None also for an entity of another workspace. A consistent GetItem, then a BatchGetItem of
    the entity and its experiment."""
    experiment_id = entity_refs.experiment_of(entity_id)
    if experiment_id is None:
        return None
    places = [kind.place(experiment_id, entity_id), keys.experiment(experiment_id)]
    item, meta = table.batch_get(places)
    if item is None or experiments.entity_of(experiment_id, meta, workspace) is None:
        return None
    return kind.entity(item)


def find_by_name(kind: Kind[E], names: Names[E], experiment: Experiment, name: str) -> E | None:
    """Two consistent GetItem."""
    lock = table.get(names.place(experiment.experiment_id, name))
    if lock is None:
        return None
    item = table.get(kind.place(experiment.experiment_id, names.holder_in(lock)))
    return None if item is None else kind.entity(item)


def of_experiment(kind: Kind[E], experiment_id: str) -> list[E]:
    """One consistent Query for each MB."""
    pk = keys.experiment(experiment_id).pk
    return [kind.entity(item) for item in table.query_all(pk, prefix=kind.prefix())]


def replace(kind: Kind[E], after: E) -> None:
    """Writes an entity that was read and then changed. Raises Conflict."""
    try:
        table.put(kind.item(after), kind.unchanged(after))
    except ConditionFailed as failed:
        raise Conflict from failed


def rename(kind: Kind[E], names: Names[E], before: E, after: E) -> None:
    """As :func:`replace`, with the name if it is another one. Raises Conflict, NameTaken."""
    operations: list[Operation] = [Put(kind.item(after), kind.unchanged(before))]
    if names.place_of(after) != names.place_of(before):
        entity_id = kind.entity_id(after)
        operations += [names.taking(after, entity_id), Delete(names.place_of(before))]
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        raise (Conflict if 0 in failed.items else NameTaken) from failed


def delete(kind: Kind[E], names: Names[E], entity: E) -> None:
    """With its place and its name; may be repeated. Raises Conflict."""
    entity_id = kind.entity_id(entity)
    gone = [
        Delete(kind.place_of(entity)),
        names.freeing(entity, entity_id),
        entity_refs.gone(entity_id),
    ]
    try:
        table.transact(gone, new_ulid())
    except TransactionFailed as failed:
        raise Conflict from failed
