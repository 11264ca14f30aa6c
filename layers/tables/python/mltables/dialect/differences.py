"""Translates sums and differences, whose meaning depends on the types of the operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from mltables.dialect import aggregate_calls, operand_types, time_functions, whole_numbers
from mltables.dialect.syntax_nodes import find_all

if TYPE_CHECKING:
    from mltables.dialect.sql_generator import Generator


def plus_or_minus(writer: Generator, expression: exp.Binary, sign: str) -> str:
    """Returns the DuckDB SQL of ``a + b`` or ``a - b``: of numbers, times, dates and intervals."""
    a, b = expression.this, expression.expression
    if time_functions.is_interval(a) and sign == "+":
        a, b = b, a
    if time_functions.is_interval(b):
        if operand_types.is_date(a):
            # In Databricks a date stays a date unless hours are added.
            kind = "DATE" if time_functions.is_of_days(b) else "TIMESTAMPTZ"
            return f"CAST({writer.grouped(a)} {sign} {writer.grouped(b)} AS {kind})"
        if operand_types.may_be_date(a):
            return f"inner_no_date({writer.text(a)}) {sign} {writer.grouped(b)}"
    elif whole_numbers.is_whole_term(expression):
        return f"{writer.grouped(a)} {sign} {writer.grouped(b)}"
    elif sign == "-" and operand_types.is_date(a) and operand_types.is_date(b):
        return f"to_days(CAST({writer.grouped(a)} - {writer.grouped(b)} AS INTEGER))"
    elif sign == "-" and not operand_types.is_number(a) and not operand_types.is_number(b):
        # DuckDB does not know the types of aggregates when it chooses an overload.
        aggregated = any(map(aggregate_calls.is_aggregate, find_all(expression, exp.Anonymous)))
        macro = "inner_minus_untyped" if aggregated else "inner_minus"
        return writer.once(f"{macro}({{0}}, {{1}})", writer.text(a), writer.text(b))
    return f"{writer.grouped(a)} {sign} {writer.grouped(b)}"
