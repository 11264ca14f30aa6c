"""The names that MLflow uses in the tags and metadata of traces and in the attributes of spans."""

from __future__ import annotations

from typing import Final

from mlcore.reserved_tags import ARTIFACT_LOCATION

SPANS_LOCATION_TAG: Final = "mlflow.trace.spansLocation"
ARCHIVE_LOCATION_TAG: Final = "mlflow.trace.archiveLocation"
ARCHIVAL_FAILURE_TAG: Final = "mlflow.trace.archivalFailure"
SYSTEM_TAGS: Final = (
    ARTIFACT_LOCATION,
    SPANS_LOCATION_TAG,
    ARCHIVE_LOCATION_TAG,
    ARCHIVAL_FAILURE_TAG,
)
"""Tags that only the server sets: they say where a trace's files and spans are."""
IN_STORE: Final = "TRACKING_STORE"
"""Value of the tag with the spans' location: in this server's store."""

FINALIZED: Final = "mlflow.trace.infoFinalized"
SIZE_STATS: Final = "mlflow.trace.sizeStats"

SPAN_TRACE_ID: Final = "mlflow.traceRequestId"
SPAN_COST: Final = "mlflow.llm.cost"
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
