"""Rewrites syntax that stands for other syntax: ``IDENTIFIER('a.b')`` for a name, ``:range.min``
for a parameter, and ``TABLESAMPLE (10 PERCENT)`` for a condition on random numbers."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from mltables.dialect.refusal import StatementRefused
from mltables.dialect.source_columns import ctes_named, sources_of
from mltables.dialect.syntax_nodes import find_all

_IDENTIFIER: Final = "identifier"
_PART: Final = r"(?:[A-Za-z_]\w*|`[^`]+`)"
_NAME: Final = re.compile(rf"\s*{_PART}(?:\s*\.\s*{_PART}){{0,3}}\s*", re.ASCII)
_PARTS: Final = re.compile(_PART, re.ASCII)
_RANDOM: Final = frozenset(("rand", "random", "uuid"))
_MEMBERS: Final = frozenset(("min", "max"))
"""The members of a parameter for a range in a Databricks dashboard."""


def rewrite(query: exp.Query) -> None:
    """Replaces this syntax in a query, in place. Raises StatementRefused for ``IDENTIFIER()`` of
    anything but a written text, and for samples with REPEATABLE or of joined tables."""
    for call in list(find_all(query, exp.Anonymous)):
        if call.name.lower() == _IDENTIFIER:
            _replace_identifier(call)
    for member in list(find_all(query, exp.Dot)):
        parameter, name = member.this, member.expression
        if not isinstance(name, exp.Identifier):
            continue  # :range.min(1) is refused
        if isinstance(parameter, exp.Placeholder) and name.name.lower() in _MEMBERS:
            member.replace(exp.Placeholder(this=f"{parameter.name}_{name.name.lower()}"))
    for sample in list(find_all(query, exp.TableSample)):
        _replace_sample(sample)
    for select in find_all(query, exp.Select):
        where = select.args.get("where")
        if where and any(call.name.lower() in _RANDOM for call in find_all(where, exp.Anonymous)):
            for source in sources_of(select):
                _keep_apart(source)


def _replace_identifier(call: exp.Anonymous) -> None:
    parts = [exp.to_identifier(part, quoted=True) for part in _parts_of(call)]
    table = call.parent
    if isinstance(table, exp.Table):
        if len(parts) > 3:
            raise StatementRefused("The name of a table has at most three parts.")
        for key, part in zip(("this", "db", "catalog"), reversed(parts), strict=False):
            table.set(key, part)
        return
    names = zip(("this", "table", "db", "catalog"), reversed(parts), strict=False)
    call.replace(exp.Column(**dict(names)))


def _parts_of(call: exp.Anonymous) -> list[str]:
    """Returns the parts of the name that a call of ``IDENTIFIER()`` has as a text, or as texts that
    ``||`` joins."""
    given = call.expressions[0] if len(call.expressions) == 1 else exp.Null()
    texts = list(given.flatten()) if isinstance(given, exp.DPipe) else [given]
    if not all(isinstance(text, exp.Literal) and text.is_string for text in texts):
        raise StatementRefused("IDENTIFIER() takes a name that is written as a text here.")
    name = "".join(text.name for text in texts)
    if not _NAME.fullmatch(name):
        raise StatementRefused("IDENTIFIER() takes a name such as 'system.mlflow.traces' here.")
    return [part.strip("`") for part in _PARTS.findall(name)]


def _replace_sample(sample: exp.TableSample) -> None:
    """Replaces the sample of the only source of a SELECT by a condition on a random number."""
    select = sample.find_ancestor(exp.Select)
    source = sample.parent
    if not select or not source or select.args.get("laterals") or [source] != sources_of(select):
        raise StatementRefused("TABLESAMPLE follows the only table of a SELECT here.")
    if (rows := _row_count(sample)) is not None:
        _take_rows(source, rows)
        return
    share = _share(sample)
    condition: exp.Expr = exp.LT(
        this=exp.Anonymous(this="rand", expressions=[]), expression=exp.Literal.number(share)
    )
    where = select.args.get("where")
    if where:
        given = where.this.copy()
        given = exp.Paren(this=given) if isinstance(given, exp.Or) else given
        condition = exp.And(this=given, expression=condition)
    select.set("where", exp.Where(this=condition))
    source.set("sample", None)


def _row_count(sample: exp.TableSample) -> exp.Expr | None:
    """Returns the number of rows of ``TABLESAMPLE (5 ROWS)``; None for other samples."""
    size = sample.args.get("size")
    is_count = isinstance(size, exp.Literal) and size.is_int
    return size if is_count and sample.args.get("seed") is None else None


def _take_rows(source: exp.Expr, rows: exp.Expr) -> None:
    """Replaces a source by its first rows, as Databricks samples a number of rows."""
    alias = source.args.get("alias") or exp.TableAlias(
        this=exp.to_identifier(source.name or "inner_sample")
    )
    source.set("sample", None)
    limited = exp.Select(expressions=[exp.Star()]).from_(source.copy())
    limited.set("limit", exp.Limit(expression=rows.copy()))
    source.replace(exp.Subquery(this=limited, alias=alias.copy()))


def _keep_apart(source: exp.Expr) -> None:
    """Keeps a condition on random numbers above a source: DuckDB would move it below a DISTINCT or
    a UNION, but moves none below a LIMIT."""
    queries = [source.this] if isinstance(source, exp.Subquery) else []
    if isinstance(source, exp.Table) and not source.db:
        queries = [cte.this for cte in ctes_named(source) if not _is_recursive(cte)]
    for query in queries:
        if isinstance(query, exp.Query) and query.args.get("limit") is None:
            query.set("limit", exp.Limit(expression=exp.Literal.number(2**63 - 1)))


def _is_recursive(cte: exp.CTE) -> bool:
    """Whether a common table expression may read itself: then DuckDB takes no LIMIT in it."""
    parent = cte.parent
    return parent is not None and bool(parent.args.get("recursive"))


def _share(sample: exp.TableSample) -> str:
    """Returns the part of the rows that a sample keeps, from 0 to 1, as a number in SQL."""
    percent = sample.args.get("percent")
    if sample.args.get("seed") is not None:
        raise StatementRefused("TABLESAMPLE takes no REPEATABLE here.")
    if not isinstance(percent, exp.Literal) or percent.is_string:
        raise StatementRefused(
            "TABLESAMPLE takes a percentage, such as TABLESAMPLE (10 PERCENT), or a number of ROWS."
        )
    share = float(percent.name) / 100
    if not 0 <= share <= 1:
        raise StatementRefused("TABLESAMPLE takes 0 to 100 PERCENT.")
    return f"{share:.12f}"
