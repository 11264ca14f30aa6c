"""Finds the end of an SQL statement, as the dialect of the system tables reads literals and
comments. Takes time in proportion to the length of any text, because users write it."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(
    r"""
    (?P<gap>\s+|;|--[^\n]*)
    | (?P<comment>/\*)
    | (?<!\w)[rR]'[^']*'? | (?<!\w)[rR]"[^"]*"?
    | '[^'\\]*(?:\\.[^'\\]*)*'? | "[^"\\]*(?:\\.[^"\\]*)*"?
    | `[^`]*`?
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
"""A part of a statement. Every literal may lack its end, so that no part is tried twice."""
_COMMENT_MARK: Final = re.compile(r"/\*|\*/")


def without_end(sql: str) -> str:
    """Returns an SQL statement without semicolons, comments and spaces after its last token."""
    position = end = 0
    while match := _PART.match(sql, position):
        if match["comment"]:
            position = _after_comment(sql, match.end())
            continue
        position = match.end()
        if not match["gap"]:
            end = position
    return sql[:end]


def _after_comment(sql: str, position: int) -> int:
    """Returns the position after a comment, which may contain comments, that was opened before
    ``position``."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(sql, position):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(sql)
