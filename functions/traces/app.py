"""The RPCs of traces and assessments, and OpenTelemetry's export of spans."""

from __future__ import annotations

from functools import partial

from mlcore.http import PlainRoute, delete, get, lambda_handler, patch, post
from traces import assessments, legacy, links, service, whole_traces
from traces import messages as m
from traces.ingest import exports
from traces.search import correlation, metrics, search

_get, _post, _patch, _delete = (
    partial(method, version="3.0") for method in (get, post, patch, delete)
)
_ASSESSMENTS = "/mlflow/traces/{trace_id}/assessments"

RPCS = (
    _post("/mlflow/traces", m.StartTraceV3, service.start_trace, "traces.start_v3", hides="trace"),
    _get(
        "/mlflow/traces/get", m.GetTrace, whole_traces.get_trace, "traces.read_trace", hides="trace"
    ),
    _get(
        "/mlflow/traces/batchGet",
        m.BatchGetTraces,
        whole_traces.batch_get_traces,
        "traces.read_many",
        hides="traces",
    ),
    _post(
        "/mlflow/traces/batchGetInfos",
        m.BatchGetTraceInfos,
        whole_traces.batch_get_trace_infos,
        "traces.read_many",
        hides="trace_infos",
    ),
    _get(
        "/mlflow/traces/{trace_id}",
        m.GetTraceInfoV3,
        service.get_trace_info,
        "traces.read_trace",
        hides="trace",
    ),
    _post(
        "/mlflow/traces/search",
        m.SearchTracesV3,
        search.search_traces,
        "traces.search_v3",
        hides="found_traces",
    ),
    _post(
        "/mlflow/traces/metrics", m.QueryTraceMetrics, metrics.query_trace_metrics, "traces.metrics"
    ),
    _post(
        "/mlflow/traces/calculate-filter-correlation",
        m.CalculateTraceFilterCorrelation,
        correlation.calculate_trace_filter_correlation,
        "traces.correlation",
    ),
    _post("/mlflow/traces/delete-traces", m.DeleteTraces, service.delete_traces, "traces.delete"),
    _patch(
        "/mlflow/traces/{trace_id}/tags", m.SetTraceTagV3, service.set_tag_v3, "traces.update_trace"
    ),
    _delete(
        "/mlflow/traces/{trace_id}/tags",
        m.DeleteTraceTagV3,
        service.delete_tag_v3,
        "traces.update_trace",
    ),
    _post(
        _ASSESSMENTS, m.CreateAssessment, assessments.create_assessment, "traces.create_assessment"
    ),
    _get(
        _ASSESSMENTS + "/{assessment_id}",
        m.GetAssessment,
        assessments.get_assessment,
        "traces.read_assessment",
    ),
    _patch(
        _ASSESSMENTS + "/{assessment_id}",
        m.UpdateAssessment,
        assessments.update_assessment,
        "traces.update_assessment",
    ),
    _delete(
        _ASSESSMENTS + "/{assessment_id}",
        m.DeleteAssessment,
        assessments.delete_assessment,
        "traces.delete_assessment",
    ),
    post("/mlflow/traces", m.StartTrace, legacy.start_trace, "traces.start", hides="trace_info_v2"),
    patch(
        "/mlflow/traces/{request_id}",
        m.EndTrace,
        legacy.end_trace,
        "traces.update_trace",
        hides="trace_info_v2",
    ),
    get(
        "/mlflow/traces/{request_id}/info",
        m.GetTraceInfo,
        legacy.get_trace_info,
        "traces.read_trace",
        hides="trace_info_v2",
    ),
    get(
        "/mlflow/traces",
        m.SearchTraces,
        search.search_traces_v2,
        "traces.search",
        hides="found_traces",
    ),
    post("/mlflow/traces/delete-traces", m.DeleteTraces, service.delete_traces, "traces.delete"),
    patch(
        "/mlflow/traces/{request_id}/tags", m.SetTraceTag, service.set_tag, "traces.update_trace"
    ),
    delete(
        "/mlflow/traces/{request_id}/tags",
        m.DeleteTraceTag,
        service.delete_tag,
        "traces.update_trace",
    ),
    post(
        "/mlflow/traces/link-to-run",
        m.LinkTracesToRun,
        links.link_traces_to_run,
        "traces.link_to_run",
    ),
    post(
        "/mlflow/traces/link-prompts",
        m.LinkPromptsToTrace,
        links.link_prompts_to_trace,
        "traces.update_trace",
    ),
)

PLAIN_ROUTES = (
    PlainRoute("POST", "/v1/traces", exports.export_spans, "traces.export"),
    PlainRoute(
        "GET",
        "/ajax-api/2.0/mlflow/get-trace-artifact",
        whole_traces.get_trace_artifact,
        "traces.read_artifact",
    ),
    PlainRoute(
        "GET",
        "/ajax-api/3.0/mlflow/get-trace-artifact",
        whole_traces.get_trace_artifact,
        "traces.read_artifact",
    ),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)
