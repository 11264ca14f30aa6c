"""Databricks' grammar for sqlglot, in which calls of functions stay as they are written.

sqlglot would turn most calls into nodes that several dialects share, and its other side into
functions of DuckDB that mean something else in a few places. Here a call is its name and its
arguments, and ``dialect/functions.py`` says what it means.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.parsers.databricks import DatabricksParser

_SPECIAL = ("EXTRACT", "POSITION", "SUBSTR", "SUBSTRING", "TRIM")
"""Calls with a grammar of their own, such as ``EXTRACT(year FROM start_time)``."""


def _cast(parser: Any, *, safe: bool) -> exp.Expr:
    """CAST as it is written, told from ``DATE '2026-01-05'`` and ``1.5D``, which are casts in the
    tree as well."""
    cast: exp.Expr = parser._parse_cast(not safe, safe=safe)
    cast.meta["written"] = True
    return cast


class Reader(Databricks):
    """Databricks' dialect with calls as ``exp.Anonymous``."""

    class Parser(DatabricksParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar = {
            **{name: DatabricksParser.FUNCTION_PARSERS[name] for name in _SPECIAL},
            "CAST": lambda self: _cast(self, safe=False),
            "TRY_CAST": lambda self: _cast(self, safe=True),
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {
            name: DatabricksParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
        }
