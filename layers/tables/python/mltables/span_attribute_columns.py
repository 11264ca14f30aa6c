"""Frequent attributes of spans as columns of their files.

Reading one attribute from the map ``attributes`` means reading all of them. So a file of ``spans``
also has a column for each attribute in ``KEYS``, with exactly the value that the map has: NULL if
the map has no such key. The map stays complete. The columns are not in the schema of the table, so
readers of the table do not see them, and a file may lack them.

The translation of a statement reads such a column in place of the map (``attribute_lookups.py``).
For other attributes it uses *computed columns* in the same way. No file of the table has them: they
are computed from the map where the rows are read. So a copy of rows for a restricted caller holds
the attributes that a statement looks up, and not the map, which takes ten times as long to copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from mlcore import reserved_tags
from mlcore.spans import names

PREFIX: Final = "inner_attribute_"
"""The prefix of the names of attribute columns. A statement that contains a name with this prefix
reads only the map."""
MAP: Final = "attributes"
VIEW: Final = "inner_spans"
"""The view of ``spans`` that also has the columns. No statement can name it."""

KEYS: Final = (
    reserved_tags.SPAN_TYPE,
    "mlflow.spanFunctionName",
    reserved_tags.SPAN_MODEL,
    reserved_tags.SPAN_PROVIDER,
    reserved_tags.SPAN_COST,
    reserved_tags.SPAN_TOKEN_USAGE,
    names.SPAN_MESSAGE_FORMAT,
    *names.SESSION_ATTRIBUTES,
    names.USER_ATTRIBUTE,
    "gen_ai.operation.name",
    "gen_ai.system",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.response.finish_reasons",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.tool.name",
    "gen_ai.agent.name",
    "error.type",
    "openinference.span.kind",
)
"""The attributes that have a column in the files of ``spans``. A change of this list needs another
``table_columns.DERIVED_MARK``, because files with the mark have exactly these columns."""
COLUMNS: Final[Mapping[str, str]] = {
    key: PREFIX + re.sub(r"[^a-z0-9]", "_", key.lower()) for key in KEYS
}
"""The name of the column of each attribute in ``KEYS``."""
ROOT_KEYS: Final = (reserved_tags.SPAN_INPUTS, reserved_tags.SPAN_OUTPUTS)
"""The attributes of root spans that have a column. Of other spans these columns are NULL: inputs
and outputs are most of a table, and nearly all questions about them ask for those of traces."""
ROOT_COLUMNS: Final[Mapping[str, str]] = {
    key: f"{PREFIX}root_" + re.sub(r"[^a-z0-9]", "_", key.lower()) for key in ROOT_KEYS
}
"""The name of the column of each attribute in ``ROOT_KEYS``."""
EVENT_NAMES: Final = f"{PREFIX}event_names"
"""The column with the names of a span's events, as a list in JSON; NULL if the span has none. To
read a text that is nearly always NULL takes no time, to read a list of structs does."""
DERIVED: Final = (
    *((column, f"{MAP}['{key}']") for key, column in COLUMNS.items()),
    *(
        (column, f"CASE WHEN coalesce(parent_span_id, '') = '' THEN {MAP}['{key}'] END")
        for key, column in ROOT_COLUMNS.items()
    ),
    (
        EVENT_NAMES,
        "CASE WHEN len(events) > 0 "
        "THEN CAST(to_json(list_transform(events, lambda e: e.name)) AS VARCHAR) END",
    ),
)
"""(name, SQL expression of the value) of each column."""
DERIVED_FROM: Final = (MAP, "parent_span_id", "events")
"""The columns of the table from which ``DERIVED`` are computed."""

_COMPUTED: Final = f"{PREFIX}of_"
"""The prefix of the names of computed columns. The attribute's key follows, in hexadecimal
digits."""
_COMPUTED_KEY: Final = re.compile(r"[ -~]{1,100}")
"""Matches the keys of attributes that may become computed columns."""


def column_of(key: str) -> str | None:
    """Returns the name of the column, stored or computed, that holds an attribute of spans in the
    system table of spans; None if the attribute can have no column."""
    if key in COLUMNS:
        return COLUMNS[key]
    if _COMPUTED_KEY.fullmatch(key):
        return _COMPUTED + key.encode().hex()
    return None


def computed(names: Iterable[str]) -> Mapping[str, str]:
    """Returns those of ``names`` that are computed columns (attributes of spans that no file stores
    as a column), each with the SQL expression of its value."""
    keys = {
        name: bytes.fromhex(name.removeprefix(_COMPUTED)).decode()
        for name in names
        if name.startswith(_COMPUTED)
    }
    texts = {name: key.replace("'", "''") for name, key in keys.items()}
    return {name: f"{MAP}['{text}']" for name, text in texts.items()}
