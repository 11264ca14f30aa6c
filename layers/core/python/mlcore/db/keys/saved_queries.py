"""Keys of saved queries. Those of a workspace share a partition: a list is a consistent Query per
MB.

Names are ASCII and stored in lower case in the key: upper and lower case are the same name.
"""

from __future__ import annotations

from typing import Final

from mlcore.db.keys.pattern import Key, Pattern, prefix_range

SAVED_QUERY = Pattern(
    "saved_query", "QUERIES#<workspace>", "QUERY#<query_name>", "an SQL query with a name"
)

SAVED_QUERY_PATTERNS = (SAVED_QUERY,)

_AFTER: Final = "!"
"""Sorts before every character of a name: a name with it appended is the next sort key."""


def saved_query(workspace: str, name: str) -> Key:
    return Key(SAVED_QUERY.pk.build(workspace), SAVED_QUERY.sk.build(name.lower()))


def saved_queries_after(name: str) -> tuple[str, str]:
    """Returns inclusive bounds of the sort keys of the saved SQL queries whose names sort after
    ``name``; of all saved queries if ``name`` is empty."""
    first, last = prefix_range(SAVED_QUERY.sk.prefix())
    return (SAVED_QUERY.sk.build(name.lower()) + _AFTER if name else first), last
