"""Requests of the trace RPCs, in the field order of MLflow's service.proto."""

from __future__ import annotations

from typing import Annotated, Any

from mlcore.wire import (
    CheckFailed,
    Int32,
    Message,
    array,
    at_most,
    boolean,
    enum,
    intlike,
    item_type_string,
    required,
    string,
)

MAX_SEARCH_RESULTS = 500

State = Annotated[str | None, enum(STATE_UNSPECIFIED=0, OK=1, ERROR=2, IN_PROGRESS=3)]
Status = Annotated[str | None, enum(TRACE_STATUS_UNSPECIFIED=0, OK=1, ERROR=2, IN_PROGRESS=3)]
LocationType = Annotated[
    str | None, enum(TRACE_LOCATION_TYPE_UNSPECIFIED=0, MLFLOW_EXPERIMENT=1, INFERENCE_TABLE=2)
]
MetricViewType = Annotated[str | None, enum(TRACES=1, SPANS=2, ASSESSMENTS=3)]
AggregationType = Annotated[str | None, enum(COUNT=1, SUM=2, AVG=3, PERCENTILE=4, MIN=5, MAX=6)]
SourceType = Annotated[str | None, enum(SOURCE_TYPE_UNSPECIFIED=0, HUMAN=1, LLM_JUDGE=2, CODE=3)]


def _map_key_present(value: Any) -> None:
    array(value)
    for entry in value:
        if entry.get("key") in (None, ""):
            raise CheckFailed


class MlflowExperimentLocation(Message):
    experiment_id: str


class InferenceTableLocation(Message):
    full_table_name: str


class TraceLocation(Message):
    type: LocationType
    mlflow_experiment: MlflowExperimentLocation | None
    inference_table: InferenceTableLocation | None


class AssessmentSource(Message):
    source_type: SourceType
    source_id: str


class AssessmentError(Message):
    error_code: str
    error_message: str
    stack_trace: str


class Feedback(Message):
    value: Any
    error: AssessmentError | None


class SerializedValue(Message):
    serialization_format: str
    value: str


class Expectation(Message):
    value: Any
    serialized_value: SerializedValue | None


class IssueReference(Message):
    issue_name: str


class Assessment(Message):
    assessment_id: str
    assessment_name: str
    trace_id: str
    span_id: str
    source: AssessmentSource | None
    create_time: str
    last_update_time: str
    feedback: Feedback | None
    expectation: Expectation | None
    issue: IssueReference | None
    rationale: str
    error: AssessmentError | None
    metadata: dict[str, str]
    overrides: str
    valid: bool


class TraceInfo(Message):
    """MLflow's protobuf message ``TraceInfoV3``, as requests send it."""

    trace_id: str
    client_request_id: str
    trace_location: TraceLocation | None
    request: str
    response: str
    request_preview: str
    response_preview: str
    request_time: str
    execution_duration: str
    state: State
    trace_metadata: dict[str, str]
    assessments: list[Assessment]
    tags: dict[str, str]


class Trace(Message):
    trace_info: TraceInfo | None
    spans: list[Any]


class StartTraceV3(Message):
    trace: Trace | None
    checks = {"trace": (required,)}


class GetTraceInfoV3(Message):
    trace_id: str


class GetTrace(Message):
    trace_id: str
    allow_partial: bool
    checks = {"trace_id": (string, required), "allow_partial": (boolean,)}


class BatchGetTraces(Message):
    trace_ids: list[str]
    experiment_ids: list[str]
    checks = {
        "trace_ids": (array, required, item_type_string),
        "experiment_ids": (array, item_type_string),
    }


class BatchGetTraceInfos(BatchGetTraces):
    """The request for the infos of several traces, without spans; it has the fields of
    :class:`BatchGetTraces`."""


class SearchTracesV3(Message):
    locations: list[TraceLocation]
    filter: str
    max_results: Int32 = 100
    order_by: list[str]
    page_token: str
    checks = {
        "locations": (array, required),
        "filter": (string,),
        "max_results": (intlike, at_most(MAX_SEARCH_RESULTS)),
        "order_by": (array, item_type_string),
        "page_token": (string,),
    }


class SearchTraces(Message):
    experiment_ids: list[str]
    filter: str
    max_results: Int32 = 100
    order_by: list[str]
    page_token: str
    checks = {
        "experiment_ids": (array, item_type_string, required),
        "filter": (string,),
        "max_results": (intlike, at_most(MAX_SEARCH_RESULTS)),
        "order_by": (array, item_type_string),
        "page_token": (string,),
    }


class MetricAggregation(Message):
    aggregation_type: AggregationType
    percentile_value: float


class QueryTraceMetrics(Message):
    experiment_ids: list[str]
    view_type: MetricViewType
    metric_name: str
    aggregations: list[MetricAggregation]
    dimensions: list[str]
    filters: list[str]
    time_interval_seconds: int
    start_time_ms: int
    end_time_ms: int
    max_results: Int32
    page_token: str
    checks = {
        "experiment_ids": (array, required, item_type_string),
        "view_type": (required,),
        "metric_name": (string, required),
        "aggregations": (array, required),
        "dimensions": (array, item_type_string),
        "filters": (array, item_type_string),
        "time_interval_seconds": (intlike,),
        "start_time_ms": (intlike,),
        "end_time_ms": (intlike,),
        "max_results": (intlike,),
        "page_token": (string,),
    }


class CalculateTraceFilterCorrelation(Message):
    experiment_ids: list[str]
    filter_string1: str
    filter_string2: str
    base_filter: str
    checks = {
        "experiment_ids": (array, required, item_type_string),
        "filter_string1": (string, required),
        "filter_string2": (string, required),
        "base_filter": (string,),
    }


class DeleteTraces(Message):
    experiment_id: str
    max_timestamp_millis: int
    max_traces: Int32
    request_ids: list[str]
    checks = {
        "experiment_id": (string, required),
        "max_timestamp_millis": (intlike,),
        "max_traces": (intlike,),
        "request_ids": (array, item_type_string),
    }


class SetTraceTag(Message):
    request_id: str
    key: str
    value: str
    checks = {"key": (string, required), "value": (string,)}


class SetTraceTagV3(Message):
    trace_id: str
    key: str
    value: str
    checks = {"key": (string, required), "value": (string,)}


class DeleteTraceTag(Message):
    request_id: str
    key: str
    checks = {"key": (string, required)}


class DeleteTraceTagV3(Message):
    trace_id: str
    key: str
    checks = {"key": (string, required)}


class TraceRequestMetadata(Message):
    key: str
    value: str


class TraceTag(Message):
    key: str
    value: str


class StartTrace(Message):
    experiment_id: str
    timestamp_ms: int
    request_metadata: list[TraceRequestMetadata]
    tags: list[TraceTag]
    checks = {
        "experiment_id": (string,),
        "timestamp_ms": (intlike,),
        "request_metadata": (_map_key_present,),
        "tags": (_map_key_present,),
    }


class EndTrace(Message):
    request_id: str
    timestamp_ms: int
    status: Status
    request_metadata: list[TraceRequestMetadata]
    tags: list[TraceTag]
    checks = {
        "timestamp_ms": (intlike,),
        "status": (string,),
        "request_metadata": (_map_key_present,),
        "tags": (_map_key_present,),
    }


class GetTraceInfo(Message):
    request_id: str


class LinkTracesToRun(Message):
    trace_ids: list[str]
    run_id: str
    checks = {"trace_ids": (array, required, item_type_string), "run_id": (string, required)}


class PromptVersionRef(Message):
    name: str
    version: str


class LinkPromptsToTrace(Message):
    trace_id: str
    prompt_versions: list[PromptVersionRef]
    checks = {"trace_id": (string, required), "prompt_versions": (array, required)}


class CreateAssessment(Message):
    trace_id: str
    """From the URL's path, not from the body."""
    assessment: Assessment | None
    checks = {"assessment": (required,)}


class GetAssessment(Message):
    trace_id: str
    assessment_id: str


class UpdateAssessment(Message):
    trace_id: str
    assessment_id: str
    """``trace_id`` and this field come from the URL's path, not from the body."""
    assessment: Assessment | None
    update_mask: str
    checks = {"assessment": (required,), "update_mask": (required,)}


class DeleteAssessment(Message):
    trace_id: str
    assessment_id: str


class GetTraceArtifact(Message):
    request_id: str
    path: str
