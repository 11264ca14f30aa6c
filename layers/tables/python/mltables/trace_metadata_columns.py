"""Stores the metadata that the AI gateway writes to its traces in columns of their own.

The views of the gateway's usage find calls by one key of the map ``trace_metadata``. Reading one
key means reading the whole map, of all traces. So a file of ``traces`` also has a column for each
key in ``KEYS``, with exactly the value that the map has. As with the attributes of spans
(``span_attribute_columns.py``), the map stays complete, the columns are not in the schema of the
table, and a file may lack them.

Only the views read the columns: no statement can name them.
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
)
"""The keys of ``trace_metadata`` that have a column in the files of ``traces``. A change of this
list needs another ``table_columns.DERIVED_MARK``, because files with the mark have exactly these
columns."""
COLUMNS: Final[Mapping[str, str]] = {
    key: PREFIX + re.sub(r"[^a-z0-9]", "_", key.lower()) for key in KEYS
}
"""The name of the column of each key in ``KEYS``."""
DERIVED: Final = tuple((column, f"{MAP}['{key}']") for key, column in COLUMNS.items())
"""(name, SQL expression of the value) of each column in ``COLUMNS``."""
