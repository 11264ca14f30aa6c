"""MLflow's names in the tags and metadata of traces and in the attributes of spans."""

from __future__ import annotations

from typing import Final

TRACE_NAME_TAG: Final = "mlflow.traceName"
SPANS_LOCATION_TAG: Final = "mlflow.trace.spansLocation"
ARTIFACT_LOCATION_TAG: Final = "mlflow.artifactLocation"
ARCHIVE_LOCATION_TAG: Final = "mlflow.trace.archiveLocation"
ARCHIVAL_FAILURE_TAG: Final = "mlflow.trace.archivalFailure"
IN_STORE: Final = "TRACKING_STORE"
"""Value of the spans' location: here."""

FINALIZED: Final = "mlflow.trace.infoFinalized"
SESSION: Final = "mlflow.trace.session"
USER: Final = "mlflow.trace.user"
TOKEN_USAGE: Final = "mlflow.trace.tokenUsage"  # noqa: S105 -- no secret
COST: Final = "mlflow.trace.cost"
SIZE_STATS: Final = "mlflow.trace.sizeStats"
SOURCE_RUN: Final = "mlflow.sourceRun"

SPAN_TRACE_ID: Final = "mlflow.traceRequestId"
SPAN_TYPE: Final = "mlflow.spanType"
SPAN_INPUTS: Final = "mlflow.spanInputs"
SPAN_OUTPUTS: Final = "mlflow.spanOutputs"
SPAN_USAGE: Final = "mlflow.chat.tokenUsage"
SPAN_COST: Final = "mlflow.llm.cost"
SPAN_TOOLS: Final = "mlflow.chat.tools"
SPAN_MODEL: Final = "mlflow.llm.model"
SPAN_PROVIDER: Final = "mlflow.llm.provider"
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
