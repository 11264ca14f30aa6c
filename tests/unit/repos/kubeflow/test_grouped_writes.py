"""However many groups of operations there are, each is in one transaction, which DynamoDB takes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.db import item_size
from mlcore.db.expression import ConditionExpression
from mlcore.db.keys import Key
from mlcore.db.table import Check, Delete, Operation, Put
from mlcore.repos.kubeflow import grouped_writes
from mlcore.repos.kubeflow.grouped_writes import Group
from tests.examples import number_of

CHECKED = st.sampled_from(["", "", "a", "b", "c"])
SIZES = st.integers(0, 400_000)


def group(number: int, checked: str, operations: int, size: int) -> Group:
    own: list[Operation] = [Delete(Key(str(number), str(each))) for each in range(operations)]
    own.append(Put({"data": {"S": "x" * (size // 2)}}))
    if checked:
        own.append(Check(Key(checked, ""), ConditionExpression()))
    return Group(own, size - size // 2)


@settings(max_examples=number_of(60), deadline=None)
@given(st.lists(st.tuples(CHECKED, st.integers(0, 5), SIZES), max_size=150))
def test_transactions(drawn: list[tuple[str, int, int]]) -> None:
    groups = [group(number, *each) for number, each in enumerate(drawn)]
    chains = list(grouped_writes._chains(groups))
    transactions = [transaction.groups for chain in chains for transaction in chain]
    executed = [id(each) for transaction in transactions for each in transaction]
    assert sorted(executed) == sorted(map(id, groups))
    for transaction in transactions:
        others = sum(len(each.operations) - len(each.checks) for each in transaction)
        checks = frozenset[Key]().union(*(each.checks for each in transaction))
        assert others + len(checks) <= item_size.TRANSACTION_OPERATIONS
        assert sum(each.size for each in transaction) <= item_size.TRANSACTION_BYTES
    named = Counter(
        key
        for chain in chains
        for key in frozenset[Key]().union(
            *(each.checks for transaction in chain for each in transaction.groups)
        )
    )
    assert set(named.values()) <= {1}
    # Not more than twice as many as the operations and bytes need, and one for each check.
    needed = max(
        sum(len(each.operations) for each in groups) / item_size.TRANSACTION_OPERATIONS,
        sum(each.size for each in groups) / item_size.TRANSACTION_BYTES,
    )
    assert len(transactions) <= 2 * needed + 1 + len(named)
