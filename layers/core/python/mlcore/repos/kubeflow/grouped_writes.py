"""Groups of operations that are each executed whole or not at all, many in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from mlcore.db import item_size
from mlcore.db.keys import Key
from mlcore.db.table import Check, Operation, Put, TransactionFailed, table
from mlcore.errors import RequestLimitExceeded
from mlcore.ids import new_ulid


class Group(NamedTuple):
    """Operations that belong together. Groups may have the same check."""

    operations: Sequence[Operation]
    updated_bytes: int
    """The size of the items that the operations update."""

    @property
    def checks(self) -> frozenset[Key]:
        return frozenset(each.key for each in self.operations if isinstance(each, Check))

    @property
    def size(self) -> int:
        """The bytes of the items that the operations update and put."""
        puts = (each.item for each in self.operations if isinstance(each, Put))
        return self.updated_bytes + sum(map(item_size.estimate, puts))


class _Transaction:
    """Groups for one transaction, and what they take of its limits."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self._checks: set[Key] = set()
        self._operations = 0
        self._bytes = 0

    def add(self, groups: Sequence[Group]) -> bool:
        """Adds groups, unless they exceed a limit; returns whether it did. An empty transaction
        takes any single group."""
        checks = self._checks.union(*(group.checks for group in groups))
        operations = self._operations + sum(
            sum(not isinstance(each, Check) for each in group.operations) for group in groups
        )
        size = self._bytes + sum(group.size for group in groups)
        fits = (
            operations + len(checks) <= item_size.TRANSACTION_OPERATIONS
            and size <= item_size.TRANSACTION_BYTES
        )
        if not fits and (self.groups or len(groups) > 1):
            return False
        self.groups += groups
        self._checks, self._operations, self._bytes = checks, operations, size
        return True


def execute(groups: Sequence[Group]) -> None:
    """Executes groups of operations in few transactions. Groups whose conditions fail are left
    out, and so are several groups whose transaction still conflicts with other writes after many
    attempts: the more items it has, the more often one of them is being written. Transactions with
    the same check would conflict with each other, so they are executed one after the other, all
    others in parallel."""
    table.parallel([partial(_execute_in_turn, chain) for chain in _chains(groups)])


def _chains(groups: Iterable[Group]) -> Iterator[list[_Transaction]]:
    """Yields lists of transactions; only those of one list have a check in common."""
    by_checks: dict[frozenset[Key], list[Group]] = {}
    bundles: list[list[Group]] = []
    for group in groups:
        if not group.checks:
            bundles.append([group])
        elif group.checks in by_checks:
            by_checks[group.checks].append(group)
        else:
            by_checks[group.checks] = [group]
            bundles.append(by_checks[group.checks])
    shared = _Transaction()
    for bundle in bundles:
        if shared.add(bundle):
            continue
        own = list(_split(bundle))
        if len(own) > 1:
            yield own
        else:
            yield [shared]
            (shared,) = own
    if shared.groups:
        yield [shared]


def _split(bundle: Sequence[Group]) -> Iterator[_Transaction]:
    transaction = _Transaction()
    for group in bundle:
        if not transaction.add([group]):
            yield transaction
            transaction = _Transaction()
            transaction.add([group])
    yield transaction


def _execute_in_turn(transactions: Sequence[_Transaction]) -> None:
    for transaction in transactions:
        _execute(transaction.groups)


def _execute(groups: Sequence[Group]) -> None:
    """Executes groups of operations in one transaction. If conditions fail, repeats it without
    their groups. A transaction names an item only once, so a check of several groups is sent
    once."""
    remaining = list(groups)
    while remaining:
        operations: list[Operation] = []
        owners: list[set[int]] = []
        checks: dict[Key, int] = {}
        for at, group in enumerate(remaining):
            for operation in group.operations:
                position = len(operations)
                if isinstance(operation, Check):
                    position = checks.setdefault(operation.key, position)
                if position == len(operations):
                    operations.append(operation)
                    owners.append(set())
                owners[position].add(at)
        try:
            table.transact(operations, token=new_ulid())
        except TransactionFailed as failed:
            refused = {at for position in failed.items for at in owners[position]}
            remaining = [group for at, group in enumerate(remaining) if at not in refused]
        except RequestLimitExceeded:
            if len(groups) == 1:
                raise
            return
        else:
            return
