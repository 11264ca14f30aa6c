"""Translates comparisons, in which a text that is compared with a number becomes a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from mltables.dialect import operand_types

if TYPE_CHECKING:
    from mltables.dialect.sql_generator import Generator


def compared(writer: Generator, expression: exp.Binary, sign: str) -> str:
    """Returns the DuckDB SQL of ``a = b`` or of another comparison."""
    a, b = expression.this, expression.expression
    return f"{_comparable(writer, a, b)} {sign} {_comparable(writer, b, a)}"


def is_member(writer: Generator, expression: exp.In) -> str | None:
    """Returns the DuckDB SQL of ``a IN (1, 2)``; None if no member is a number."""
    members = expression.expressions
    number = next(filter(operand_types.is_number, members), None)
    if number is None:
        return None
    value = _comparable(writer, expression.this, number)
    return f"{value} IN ({', '.join(writer.text(member) for member in members)})"


def is_between(writer: Generator, expression: exp.Between) -> str:
    low, high = expression.args["low"], expression.args["high"]
    number = low if operand_types.is_number(low) else high
    value = _comparable(writer, expression.this, number)
    return f"{value} BETWEEN {writer.grouped(low)} AND {writer.grouped(high)}"


def _comparable(writer: Generator, operand: exp.Expr, other: exp.Expr) -> str:
    """Returns the SQL of one side of a comparison. A text, column, item or parameter is cast to a
    number if the other side is one: DuckDB would compare both as texts."""
    if (
        isinstance(other, exp.Null)
        or isinstance(operand, exp.Null)
        or operand_types.is_number(operand)
    ):
        return writer.grouped(operand)
    if operand_types.is_number(other):
        if isinstance(operand, exp.Literal) and operand.is_string:
            return f"inner_double_of({writer.text(operand)})"
        if isinstance(operand, exp.Column | exp.Bracket | exp.Placeholder):
            return f"inner_as_number({writer.text(operand)})"
    return writer.grouped(operand)
