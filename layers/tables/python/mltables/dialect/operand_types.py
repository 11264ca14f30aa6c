"""Determines the types of an SQL expression's operands, as far as the syntax alone shows them."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

_MAKE_DATES: Final = """
date to_date date_add date_sub add_months last_day next_day trunc make_date curdate current_date
date_from_unix_date
"""
_MAKE_TIMES: Final = """
now current_timestamp timestamp to_timestamp date_trunc timestamp_seconds timestamp_millis
timestamp_micros make_timestamp from_utc_timestamp to_utc_timestamp
"""
_OF_SAME_TYPE: Final = frozenset(("min", "max", "first", "last", "any_value"))
"""Aggregates whose result has the type of their first argument."""
_WITH_UNIT: Final = 3
"""Arguments of ``date_add()`` if the first is a unit."""
_DATES: Final = frozenset(_MAKE_DATES.split())
_TIMES: Final = frozenset(_MAKE_TIMES.split())


def is_number(node: exp.Expr) -> bool:
    if isinstance(node, exp.Paren | exp.Neg):
        return is_number(node.this)
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type(*exp.DataType.NUMERIC_TYPES))
    return isinstance(node, exp.Literal) and not node.is_string


def is_date(node: exp.Expr) -> bool:
    if isinstance(node, exp.Paren):
        return is_date(node.this)
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type(exp.DType.DATE))
    if isinstance(node, exp.Add | exp.Sub) and is_number(node.expression):
        return is_date(node.this)
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        if name == "date_add" and len(node.expressions) == _WITH_UNIT:
            return False  # date_add(HOUR, 1, x) is a TIMESTAMP
        return name in _DATES or (name in _OF_SAME_TYPE and any(map(is_date, node.expressions[:1])))
    return isinstance(node, exp.CurrentDate)


def is_time(node: exp.Expr) -> bool:
    """Whether an SQL expression is a call of a function whose result is always a TIMESTAMP."""
    if isinstance(node, exp.Paren):
        return is_time(node.this)
    return isinstance(node, exp.Anonymous) and node.name.lower() in _TIMES


def may_be_date(node: exp.Expr) -> bool:
    """Whether an SQL expression may be a DATE although the syntax tree does not show its type."""
    return not (isinstance(node, exp.Anonymous) and node.name.lower() in _TIMES) and not isinstance(
        node, exp.Cast | exp.CurrentTimestamp | exp.Interval | exp.Placeholder
    )


def digit_count(node: exp.Expr) -> str:
    """Returns, as SQL, the number of digits of an integer literal, which is its precision as a
    decimal; NULL for any other expression. A sign and parentheses around the literal are
    allowed."""
    if isinstance(node, exp.Neg | exp.Paren):
        return digit_count(node.this)
    if isinstance(node, exp.Literal) and node.is_int:
        return str(len(node.name))
    return "NULL"
