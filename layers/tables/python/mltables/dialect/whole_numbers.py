"""Finds divisions of whole numbers whose operands' types the syntax shows.

A division of decimals is rounded, so the SQL for a division has alternatives by type, each of which
repeats the operands. Where such a division is an argument of further functions, DuckDB takes up to
half a second to plan the statement. The quotient of whole numbers is a DOUBLE and needs none of it.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from mltables.dialect.syntax_nodes import find_all
from mltables.table_definitions import TABLES
from mltables.views import VIEWS

_KINDS: Final = [
    *((name, kind) for table in TABLES for name, kind, *_ in table.columns),
    *(column for view in VIEWS.values() for column in view.columns.items()),
]
_COLUMNS: Final = {name for name, kind in _KINDS if kind == "BIGINT"} - {
    name for name, kind in _KINDS if kind != "BIGINT"
}
"""The names of columns that are whole numbers in each table or view that has them."""
_IS_WHOLE: Final = "is_whole"
"""Key in the ``meta`` of a division of whole numbers."""
_PLACES: Final = "places"
"""Key in the ``meta`` of a division of a whole number by a decimal: the decimal places of the
quotient."""
_DECIMAL: Final = re.compile(r"([1-9][0-9]*)\.([0-9]+)")
_WHOLE_DIGITS: Final = 20
"""Digits of a BIGINT as a decimal in Databricks."""
_MOST_DIGITS: Final = 18
_LEAST_EXACT: Final = 1000
"""The quotient of a whole number of 64 bits and this divisor is below 10**16. So many digits show a
DOUBLE exactly, and casts by its text and by its value give the same."""


def mark_divisions(query: exp.Query) -> None:
    """Marks the divisions of a query, in place, whose operands are certainly whole numbers: columns
    of tables, literals, sums and differences. The query must not have been rewritten before, except
    its paths into JSON: a name in it that means anything but a table's column is not trusted."""
    if any(True for _ in find_all(query, exp.SetOperation)):
        return  # the type of a column may come from the other side
    divisions = list(find_all(query, exp.Div))
    if not divisions:
        return
    named = {
        column.name.lower() for division in divisions for column in find_all(division, exp.Column)
    }
    trusted = named & _COLUMNS
    for word in find_all(query, exp.Identifier):
        if not (isinstance(word.parent, exp.Column) and word.arg_key == "this"):
            trusted.discard(word.name.lower())
    for literal in find_all(query, exp.Literal):
        if literal.is_string:
            trusted -= {name for name in trusted if name in literal.name.lower()}
    for division in divisions:
        if not _is_whole(division.this, trusted):
            continue
        if _is_whole(division.expression, trusted):
            division.meta[_IS_WHOLE] = True
        elif any(True for _ in find_all(division.this, exp.Column)):
            division.meta[_PLACES] = _places(division.expression)
        else:
            continue
        for term in find_all(division.this, exp.Add, exp.Sub):
            term.meta[_IS_WHOLE] = True


def is_plain(division: exp.Div) -> bool:
    """Whether the quotient of a division is certainly a DOUBLE: its divisor is one (``1e6``), or
    :func:`mark_divisions` has marked the division."""
    divisor = division.expression
    is_double = (
        isinstance(divisor, exp.Literal) and not divisor.is_string and "e" in divisor.name.lower()
    )
    return is_double or bool(division.meta.get(_IS_WHOLE))


def places(division: exp.Div) -> int | None:
    """Returns the number of decimal places of the quotient of a division, if
    :func:`mark_divisions` has found that it divides a BIGINT by a decimal; else None."""
    known: int | None = division.meta.get(_PLACES)
    return known


def is_whole_term(term: exp.Expr) -> bool:
    """Whether :func:`mark_divisions` has found that a sum or difference is of whole numbers."""
    return bool(term.meta.get(_IS_WHOLE))


def is_exact(value: exp.Expr) -> bool:
    """Whether a value is a quotient of whole numbers that is certainly below 10**16, so that DuckDB
    makes a whole number of it as Databricks does."""
    if isinstance(value, exp.Paren):
        return is_exact(value.this)
    if not isinstance(value, exp.Div) or not value.meta.get(_IS_WHOLE):
        return False
    divisor = value.expression
    return isinstance(divisor, exp.Literal) and int(divisor.name) >= _LEAST_EXACT


def _places(divisor: exp.Expr) -> int | None:
    """Returns the number of decimal places of the quotient of a BIGINT and a divisor; None if the
    divisor is not a literal such as ``1000.0``. The rule is that of the macro
    ``inner_quotient_places``."""
    if not isinstance(divisor, exp.Literal) or divisor.is_string:
        return None
    written = _DECIMAL.fullmatch(divisor.name)
    if written is None or len(divisor.name) > _MOST_DIGITS:
        return None
    scale = len(written[2])
    wanted = max(6, len(written[1]) + scale + 1)
    most = 38 - (_WHOLE_DIGITS + scale)
    return wanted if wanted <= most else max(most, min(wanted, 6))


def _is_whole(node: exp.Expr, trusted: set[str]) -> bool:
    if isinstance(node, exp.Paren):
        return _is_whole(node.this, trusted)
    if isinstance(node, exp.Add | exp.Sub):
        return _is_whole(node.this, trusted) and _is_whole(node.expression, trusted)
    if isinstance(node, exp.Literal):
        return node.is_int and len(node.name) <= _MOST_DIGITS
    return isinstance(node, exp.Column) and node.name.lower() in trusted
