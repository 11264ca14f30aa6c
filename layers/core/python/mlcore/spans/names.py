"""The names that MLflow uses in the tags and metadata of traces and in the attributes of spans."""

from __future__ import annotations

from typing import Final

from mlcore import reserved_tags

SPANS_LOCATION_TAG: Final = reserved_tags.SPANS_LOCATION
ARCHIVE_LOCATION_TAG: Final = reserved_tags.ARCHIVE_LOCATION
ARCHIVAL_FAILURE_TAG: Final = reserved_tags.ARCHIVAL_FAILURE
SYSTEM_TAGS: Final = reserved_tags.TRACE_LOCATIONS
"""Tags that only the server sets: they say where a trace's files and spans are."""
IN_STORE: Final = reserved_tags.SPANS_IN_STORE
READABLE: Final = (IN_STORE, reserved_tags.SPANS_ARCHIVED)
"""Values of that tag with which the spans are in packs: in the table or in files of them."""

FINALIZED: Final = reserved_tags.TRACE_FINALIZED
SIZE_STATS: Final = reserved_tags.TRACE_SIZE_STATS

SPAN_TRACE_ID: Final = reserved_tags.SPAN_TRACE_ID
SPAN_COST: Final = reserved_tags.SPAN_COST
SPAN_TOOLS: Final = "mlflow.chat.tools"
SPAN_MESSAGE_FORMAT: Final = "mlflow.message.format"
SPAN_TRACE_TAG: Final = "mlflow.traceTag."
SESSION_ATTRIBUTES: Final = ("session.id", "gen_ai.conversation.id")
USER_ATTRIBUTE: Final = "user.id"

TOKEN_KEYS: Final = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation_input_tokens_above_1hr",
)
COST_KEYS: Final = ("input_cost", "output_cost", "total_cost")
