"""Parses Databricks' SQL with sqlglot and keeps function calls as they are written.

sqlglot's own parser turns most calls into nodes that several dialects share, and its generator
turns them into functions of DuckDB that sometimes mean something else. Here a call keeps its name
and its arguments, and ``dialect/function_list.py`` defines the meaning.

Why this is here, and when it can go: ``Reader`` replaces tables of sqlglot's parser
(``FUNCTIONS``, ``FUNCTION_PARSERS``) and calls its private ``_parse_cast``, because sqlglot has no
option to leave calls alone. The override of casts can go when sqlglot marks casts that come from
typed literals, that of ``parse`` when it reads ``GROUP BY window(time, '1 hour')``: now it takes
the word for the beginning of a WINDOW clause.
"""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.parsers.databricks import DatabricksParser

from mltables.dialect.refusal import StatementRefused

_SPECIAL = ("EXTRACT", "POSITION", "SUBSTR", "SUBSTRING", "TRIM")
"""Calls with special syntax, such as ``EXTRACT(year FROM start_time)``."""
_CALL_OF_WINDOW = (TokenType.WINDOW, TokenType.L_PAREN)


def _cast(parser: Any, *, safe: bool) -> exp.Expr:
    """Parses CAST and marks the node as explicit. In the syntax tree ``DATE '2026-01-05'`` and
    ``1.5D`` are casts too; they get no mark."""
    return _marked(parser._parse_cast(not safe, safe=safe))


def _marked(cast: exp.Expr) -> exp.Expr:
    cast.meta["written"] = True
    return cast


def _shortened_cast(parser: Any, value: exp.Expr, kind: exp.Expr) -> exp.Expr:
    """Makes a cast of ``value::kind``. That of a number gets no mark: the tokens of ``1.5D`` are
    those of ``1.5::DOUBLE``."""
    cast = parser.build_cast(strict=parser.STRICT_CAST, this=value, to=kind)
    return cast if isinstance(value, exp.Literal) and not value.is_string else _marked(cast)


class Reader(Databricks):
    """sqlglot's Databricks dialect with changes. A call of a function without special syntax stays
    an ``exp.Anonymous`` node with its name and arguments, also ``window(…)``; casts that are
    written as such are marked; the alias of a subquery may follow TABLESAMPLE; PIVOT and UNPIVOT
    have one FOR, and PIVOT names no columns."""

    class Parser(DatabricksParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar = {
            **{name: DatabricksParser.FUNCTION_PARSERS[name] for name in _SPECIAL},
            "CAST": lambda self: _cast(self, safe=False),
            "TRY_CAST": lambda self: _cast(self, safe=True),
        }
        COLUMN_OPERATORS: ClassVar = {
            **DatabricksParser.COLUMN_OPERATORS,
            TokenType.DCOLON: _shortened_cast,
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {
            name: DatabricksParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
        }

        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            for token, following in itertools.pairwise(raw_tokens):
                if (token.token_type, following.token_type) == _CALL_OF_WINDOW:
                    token.token_type = TokenType.VAR
            return super().parse(raw_tokens, sql)

        def _parse_subquery(self, *args: Any, **kwargs: Any) -> exp.Subquery | None:
            # Databricks has the alias of a subquery behind TABLESAMPLE.
            subquery = super()._parse_subquery(*args, **kwargs)
            if subquery and subquery.args.get("sample") and not subquery.args.get("alias"):
                subquery.set("alias", self._parse_table_alias())
            return subquery

        def _parse_pivot(self) -> exp.Pivot | None:
            before, self._fors = getattr(self, "_fors", 0), 0
            try:
                return super()._parse_pivot()
            finally:
                self._fors = before

        def _parse_pivot_in(self) -> Any:
            # For several FORs sqlglot would make names of all combinations of their values.
            field = super()._parse_pivot_in()
            self._fors += 1
            if self._fors > 1:
                raise StatementRefused("PIVOT and UNPIVOT have one FOR here.")
            return field

        def _pivot_column_names(self, _aggregations: list[exp.Expr]) -> list[str]:
            # sqlglot would combine each name with each value; ``pivots.py`` names the columns.
            return []
