"""Expressions as DynamoDB is sent them, and whether it takes them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.expression import MAX_EXPRESSION_BYTES, ConditionExpression, Update
from mlcore.models.runs import Run


def readable(update: Update) -> tuple[str, str]:
    """The update and the condition expression with the placeholders filled in."""
    parameters = update.parameters()
    names = parameters.get("ExpressionAttributeNames", {})
    values = parameters.get("ExpressionAttributeValues", {})

    def fill(text: str) -> str:
        text = re.sub(r"#\d+", lambda match: f"[{names[match[0]]}]", text)
        return re.sub(r":\d+", lambda match: next(iter(values[match[0]].values())), text)

    return fill(parameters.get("UpdateExpression", "")), fill(
        parameters.get("ConditionExpression", "")
    )


def test_clauses() -> None:
    update = Update()
    update.set(Run.status, "1")
    update.set((Run.tags, "my key.x"), "2")
    update.set_once(Run.run_name, "3")
    update.remove(Run.ttl)
    update.remove((Run.tags, "b"))
    update.add(Run.version, 1)
    assert readable(update) == (
        "SET [status]=1,[tags].[my key.x]=2,[run_name]=if_not_exists([run_name],3)"
        " REMOVE [ttl],[tags].[b] ADD [version] 1",
        "",
    )


def test_conditions_are_joined() -> None:
    update = Update()
    update.require_equal(Run.start_time, -5)
    update.require_exists(Run.ttl)
    update.require_absent((Run.tags, "k"))
    update.require_less(Run.user_id, "x")
    update.require_absent_or_less((Run.tags, "k"), "y")
    update.require_absent_or_equal(Run.stage, "z")
    update.require_absent_or_greater(Run.epoch, 1)
    assert readable(update) == (
        "",
        "[start_time]=-5 AND attribute_exists([ttl]) AND attribute_not_exists([tags].[k])"
        " AND [user_id]<x AND (attribute_not_exists([tags].[k]) OR [tags].[k]<y)"
        " AND (attribute_not_exists([stage]) OR [stage]=z)"
        " AND (attribute_not_exists([epoch]) OR [epoch]>1)",
    )


def test_nothing_is_sent_for_nothing() -> None:
    assert Update().parameters() == {}
    assert ConditionExpression().condition_parameters() == {}


def test_a_name_has_one_placeholder() -> None:
    update = Update()
    update.set((Run.tags, "k"), "1")
    update.require_absent((Run.tags, "k"))
    assert sorted(update.parameters()["ExpressionAttributeNames"].values()) == ["k", "tags"]


@given(
    sets=st.integers(0, 400),
    removals=st.integers(0, 50),
    conditions=st.integers(0, 120),
)
def test_what_fits_is_within_the_limits(sets: int, removals: int, conditions: int) -> None:
    """4 KB and 300 operators each; a clause, comparison, function, AND and OR is one."""
    update = Update()
    for n in range(sets):
        update.set((Run.tags, f"set {n}"), "v")
    for n in range(removals):
        update.remove((Run.tags, f"removed {n}"))
    for n in range(conditions):
        update.require_absent_or_less((Run.tags, f"set {n}"), "v")
    parameters = update.parameters()
    changed = parameters.get("UpdateExpression", "")
    required = parameters.get("ConditionExpression", "")
    operators = len(re.findall(r"AND|OR|<|attribute_not_exists", required))
    if update.fits():
        assert len(changed.encode()) <= MAX_EXPRESSION_BYTES
        assert len(required.encode()) <= MAX_EXPRESSION_BYTES
        assert max(sets + removals, operators) <= 300
    if sets <= 60 and removals <= 10 and conditions <= 60:
        assert update.fits(), "an ordinary log-batch goes key by key"
