"""Keys that MLflow reserves in tags, metadata and attributes of spans, if more than one module of
the product uses them. A key that only one module uses is defined in that module.
"""

from __future__ import annotations

from typing import Final

RUN_NAME: Final = "mlflow.runName"
RUN_TYPE: Final = "mlflow.runType"
USER: Final = "mlflow.user"
DATASET_CONTEXT: Final = "mlflow.data.context"
MODEL_ID: Final = "mlflow.modelId"

IS_PROMPT: Final = "mlflow.prompt.is_prompt"
PROMPT_TEXT: Final = "mlflow.prompt.text"
PROMPT_TYPE: Final = "_mlflow_prompt_type"
CHAT_PROMPT: Final = "chat"
"""Value of the tag of chat prompts, whose text is the JSON of a list of messages."""
PROMPT_MODEL_CONFIG: Final = "_mlflow_prompt_model_config"

TRACE_NAME: Final = "mlflow.traceName"
TRACE_SESSION: Final = "mlflow.trace.session"
TRACE_USER: Final = "mlflow.trace.user"
TRACE_TOKEN_USAGE: Final = "mlflow.trace.tokenUsage"  # noqa: S105 -- no secret
TRACE_COST: Final = "mlflow.trace.cost"
SOURCE_RUN: Final = "mlflow.sourceRun"
LINKED_PROMPTS: Final = "mlflow.linkedPrompts"
ARTIFACT_LOCATION: Final = "mlflow.artifactLocation"
SPANS_LOCATION: Final = "mlflow.trace.spansLocation"
ARCHIVE_LOCATION: Final = "mlflow.trace.archiveLocation"
ARCHIVAL_FAILURE: Final = "mlflow.trace.archivalFailure"
TRACE_LOCATIONS: Final = (ARTIFACT_LOCATION, SPANS_LOCATION, ARCHIVE_LOCATION, ARCHIVAL_FAILURE)
"""Tags that only the server sets: they say where a trace's files and spans are."""

TRACE_FINALIZED: Final = "mlflow.trace.infoFinalized"
TRACE_SCHEMA: Final = "mlflow.trace_schema.version"
TRACE_SIZE_STATS: Final = "mlflow.trace.sizeStats"

SPAN_TRACE_ID: Final = "mlflow.traceRequestId"
SPAN_COST: Final = "mlflow.llm.cost"
SPAN_TYPE: Final = "mlflow.spanType"
SPAN_LOG_LEVEL: Final = "mlflow.spanLogLevel"
"""A level of Python's ``logging``, by which MLflow's web UI filters spans."""
SPAN_INPUTS: Final = "mlflow.spanInputs"
SPAN_OUTPUTS: Final = "mlflow.spanOutputs"
SPAN_TOKEN_USAGE: Final = "mlflow.chat.tokenUsage"  # noqa: S105 -- no secret
SPAN_MODEL: Final = "mlflow.llm.model"
SPAN_PROVIDER: Final = "mlflow.llm.provider"

ASSESSMENT_RUN: Final = "mlflow.assessment.sourceRunId"

GATEWAY_ENDPOINT: Final = "mlflow.gateway.endpointId"
GATEWAY_REQUEST_TYPE: Final = "mlflow.gateway.requestType"
GATEWAY_CALLER: Final = "mlflow.gateway.caller"
GATEWAY_USERNAME: Final = "mlflow.auth.username"

DEMO: Final = "mlflow.demo"

SPANS_IN_STORE: Final = "TRACKING_STORE"
"""Value of the tag with the spans' location: in this server's store."""
SPANS_ARCHIVED: Final = "ARCHIVE_REPO"
"""Value of the same tag: archived. The spans are in files, and no request adds spans."""
TRACE_RETENTION: Final = "mlflow.trace.archivalRetention"
"""Tag of an experiment: ``{"type": "duration", "value": "7d"}``."""
ARCHIVE_NOW: Final = "mlflow.trace.archiveNow"
"""Tag of an experiment that asks to archive all its traces now, or those that are older than a
time: ``{}`` or ``{"older_than": "1h"}``."""
