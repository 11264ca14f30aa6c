"""The list of SQL syntax that a caller's statement may use. Any other syntax is refused, even if
sqlglot could translate it: nobody has compared the results with Spark's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from mltables.dialect.refusal import StatementRefused

MOST_NODES: Final = 20_000

_NAMES: Final = """
Add Alias Aliases All And Anonymous Any Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Boolean
Bracket Case Cast Column Concat CTE Cube CurrentDate CurrentTimestamp DataType DataTypeParam
Distinct Div Dot DPipe EQ Escape Except Exists Extract Filter From Group GroupingSets GT GTE Having
Hint Identifier If IgnoreNulls ILike In IntDiv Intersect Interval IntervalSpan Is Join JoinHint
JSONExtract JSONPath JSONPathKey JSONPathRoot JSONPathSubscript Lambda Lateral Like Limit Literal LT
LTE Mod Mul Neg NEQ Not Null NullSafeEQ NullSafeNEQ Offset Or Order Ordered Paren Pivot PivotAlias
Placeholder Qualify RawString RegexpLike RespectNulls Rollup Select Star StrPosition Sub Subquery
Substring Table TableAlias Trim TryCast Tuple Union Values Var Where Window WindowSpec With
WithinGroup
"""
_NODES: Final = frozenset(getattr(exp, name) for name in _NAMES.split())
_TOLD: Final = {
    exp.Command: "commands",
    exp.DDL: "statements that create",
    exp.DML: "statements that write",
    exp.Into: "INTO",
    exp.MatchRecognize: "MATCH_RECOGNIZE",
    exp.Parameter: "variables",
    exp.SessionParameter: "variables",
    exp.Lock: "locks",
    exp.JSONPathPart: "a path into JSON with more than keys and indexes",
    exp.Array: "an index after array(…): use get(array(…), 0)",
    exp.Sort: "SORT BY: use ORDER BY",
}


_WORD_LENGTH: Final = 50
"""A name or text counts as one node more for each of so many characters."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def check_copies(copies: Iterable[tuple[int, exp.Expr]]) -> None:
    """Checks that copies of parts of a syntax tree, which a rewriting is about to make, are not too
    many. Raises StatementRefused if they have more nodes, or texts of more characters, than a
    statement may have: a short statement could ask for more copies than fit into memory.

    Args:
        copies: how often each part is copied.
    """
    left = MOST_NODES
    for times, part in copies:
        left -= times * sum(1 + len(node.name) // _WORD_LENGTH for node in part.walk())
        if left < 0:
            raise StatementRefused("The statement is too long: it repeats too long expressions.")


def check(tree: exp.Expr) -> None:
    """Checks all nodes of the syntax tree of a query, or of a part of one. Raises StatementRefused
    if it is too long or uses syntax that is not allowed."""
    for count, node in enumerate(tree.walk()):
        if count > MOST_NODES:
            raise StatementRefused("The statement is too long.")
        if type(node) in _NODES:
            if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
                raise StatementRefused("Functions have no schema here.")
            _check_unquoted(node)
            continue
        syntax = next((name for kind, name in _TOLD.items() if isinstance(node, kind)), None)
        raise StatementRefused(f"Not allowed: {syntax or type(node).__name__.upper()}.")


def _check_unquoted(node: exp.Expr) -> None:
    """Checks a node whose text is written into the translated statement without quotes. The parser
    accepts a quoted name, which may hold anything, as a word and as the size of a type."""
    if isinstance(node, exp.Var) and not _WORD.fullmatch(node.name):
        raise StatementRefused("Not allowed: a quoted name where a word is needed.")
    if isinstance(node, exp.DataTypeParam):
        size = node.this
        if not (isinstance(size, exp.Literal) and size.is_int and not node.expression):
            raise StatementRefused("The size of a type is a whole number.")
