"""Stores frequent metadata of traces in columns of their own.

Reading one key of the map ``trace_metadata`` means reading the whole map, of all traces. So a file
of ``traces`` also has a column for each key in ``KEYS``, with exactly the value that the map has.
As with the attributes of spans (``span_attribute_columns.py``), the map stays complete, the columns
are not in the schema of the table, and a file may lack them. For the keys in ``PUBLISHED`` the
table itself has a column with that value.

The views of the AI gateway's usage read the columns, and the translation of a statement reads them
in place of the map (``attribute_lookups.py``). No statement can name them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mlcore import reserved_tags

PREFIX: Final = "inner_metadata_"
"""The prefix of the names of metadata columns."""
MAP: Final = "trace_metadata"
VIEW: Final = "inner_traces"
"""The view of ``traces`` that also has the columns. No statement can name it."""

KEYS: Final = (
    reserved_tags.GATEWAY_ENDPOINT,
    reserved_tags.GATEWAY_REQUEST_TYPE,
    reserved_tags.GATEWAY_CALLER,
    reserved_tags.GATEWAY_USERNAME,
    reserved_tags.TRACE_TOKEN_USAGE,
    reserved_tags.TRACE_COST,
)
"""The keys of ``trace_metadata`` that have a column in the files of ``traces``. A change of this
list needs another ``table_columns.DERIVED_MARK``, because files with the mark have exactly these
columns."""


def _named(key: str) -> str:
    return PREFIX + re.sub(r"[^a-z0-9]", "_", key.lower())


COLUMNS: Final[Mapping[str, str]] = {key: _named(key) for key in KEYS}
"""The name of the column of each key in ``KEYS``."""
DERIVED: Final = tuple((column, f"{MAP}['{key}']") for key, column in COLUMNS.items())
"""(name, SQL expression of the value) of each column in ``COLUMNS``."""
PUBLISHED: Final[Mapping[str, str]] = {
    reserved_tags.TRACE_SESSION: "session_id",
    reserved_tags.TRACE_USER: "user_id",
    reserved_tags.SOURCE_RUN: "source_run_id",
}
"""The keys whose value is a column of ``traces`` that everybody can read: its name, by key."""
VIEWED: Final[Mapping[str, str]] = {
    **{_named(key): name for key, name in PUBLISHED.items()},
    **{column: column for column in COLUMNS.values()},
}
"""The columns that views of traces have for lookups: the column of ``inner_traces``, by name in the
view."""
_READ: Final = {column: name for name, column in VIEWED.items()}


def column_of(key: str) -> str | None:
    """Returns the name of the column that has the value of a key of trace metadata, in the internal
    SQL view ``inner_traces``; None if the key has no column."""
    return PUBLISHED.get(key) or COLUMNS.get(key)


def viewed_column_of(key: str) -> str | None:
    """Returns the name of the column that the SQL views of traces have for a key of trace metadata
    (``VIEWED``); None if they have none."""
    column = column_of(key)
    return _READ[column] if column else None
