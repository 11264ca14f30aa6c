"""The routes of traces and assessments, and of OpenTelemetry's export of spans."""

from __future__ import annotations

from functools import partial

from mlcore.http import PlainRoute, delete, get, lambda_handler, of_query, patch, post
from traces import assessments, legacy, links, service, whole_traces
from traces import messages as m
from traces.ingest import exports
from traces.search import correlation, metrics, search

_get, _post, _patch, _delete = (
    partial(method, version="3.0") for method in (get, post, patch, delete)
)
_ASSESSMENTS = "/mlflow/traces/{trace_id}/assessments"

RPCS = (
    _post(
        "/mlflow/traces",
        m.StartTraceV3,
        service.start_trace,
        "traces.start_v3",
        hides="trace",
        since="3.2",
        cost=2,
    ),
    _get(
        "/mlflow/traces/get",
        m.GetTrace,
        whole_traces.get_trace,
        "traces.read_trace",
        hides="trace",
        since="3.7",
        cost=2,
    ),
    _get(
        "/mlflow/traces/batchGet",
        m.BatchGetTraces,
        whole_traces.batch_get_traces,
        "traces.read_some",
        hides="traces",
        since="3.6",
        cost=2,
    ),
    _post(
        "/mlflow/traces/batchGetInfos",
        m.BatchGetTraceInfos,
        whole_traces.batch_get_trace_infos,
        "traces.read_some",
        hides="trace_infos",
        since="3.11",
        cost=1,
        reads=True,
    ),
    _get(
        "/mlflow/traces/{trace_id}",
        m.GetTraceInfoV3,
        service.get_trace_info,
        "traces.read_trace",
        hides="trace",
        since="3.2",
        cost=1,
    ),
    _post(
        "/mlflow/traces/search",
        m.SearchTracesV3,
        search.search_traces,
        "traces.search_v3",
        hides="found_traces",
        since="3.2",
        cost=2,
        deviation="If a filter of traces has two conditions on run_id, both must hold; MLflow's "
        "server applies only the last one.",
        reads=True,
    ),
    _post(
        "/mlflow/traces/metrics",
        m.QueryTraceMetrics,
        metrics.query_trace_metrics,
        "traces.metrics",
        since="3.9",
        cost=2,
        deviation="Traces and spans outside the years 1 to 9999 are in no time bucket; with one "
        "of them MLflow's server fails.",
        reads=True,
    ),
    _post(
        "/mlflow/traces/calculate-filter-correlation",
        m.CalculateTraceFilterCorrelation,
        correlation.calculate_trace_filter_correlation,
        "traces.correlation",
        since="3.4",
        cost=5,
        reads=True,
    ),
    _post(
        "/mlflow/traces/delete-traces",
        m.DeleteTraces,
        service.delete_traces,
        "traces.delete",
        since="3.3",
        cost=4,
    ),
    _patch(
        "/mlflow/traces/{trace_id}/tags",
        m.SetTraceTagV3,
        service.set_tag_v3,
        "traces.update_trace",
        since="3.3",
        cost=2,
    ),
    _delete(
        "/mlflow/traces/{trace_id}/tags",
        m.DeleteTraceTagV3,
        service.delete_tag_v3,
        "traces.update_trace",
        since="3.3",
        cost=2,
    ),
    _post(
        _ASSESSMENTS,
        m.CreateAssessment,
        assessments.create_assessment,
        "traces.create_assessment",
        since="3.2",
        cost=2,
    ),
    _get(
        _ASSESSMENTS + "/{assessment_id}",
        m.GetAssessment,
        assessments.get_assessment,
        "traces.read_assessment",
        since="3.2",
        cost=1,
    ),
    _patch(
        _ASSESSMENTS + "/{assessment_id}",
        m.UpdateAssessment,
        assessments.update_assessment,
        "traces.update_assessment",
        since="3.2",
        cost=2,
    ),
    _delete(
        _ASSESSMENTS + "/{assessment_id}",
        m.DeleteAssessment,
        assessments.delete_assessment,
        "traces.delete_assessment",
        since="3.2",
        cost=2,
    ),
    post(
        "/mlflow/traces",
        m.StartTrace,
        legacy.start_trace,
        "traces.start",
        hides="trace_info_v2",
        since="2.14",
        cost=2,
    ),
    patch(
        "/mlflow/traces/{request_id}",
        m.EndTrace,
        legacy.end_trace,
        "traces.update_trace",
        hides="trace_info_v2",
        since="2.14",
        cost=2,
    ),
    get(
        "/mlflow/traces/{request_id}/info",
        m.GetTraceInfo,
        legacy.get_trace_info,
        "traces.read_trace",
        hides="trace_info_v2",
        since="2.14",
        cost=1,
    ),
    get(
        "/mlflow/traces",
        m.SearchTraces,
        search.search_traces_v2,
        "traces.search",
        hides="found_traces",
        since="2.14",
        cost=2,
        deviation="If a filter of traces has two conditions on run_id, both must hold; MLflow's "
        "server applies only the last one.",
    ),
    post(
        "/mlflow/traces/delete-traces",
        m.DeleteTraces,
        service.delete_traces,
        "traces.delete",
        since="2.14",
        cost=4,
    ),
    patch(
        "/mlflow/traces/{request_id}/tags",
        m.SetTraceTag,
        service.set_tag,
        "traces.update_trace",
        since="2.14",
        cost=2,
    ),
    delete(
        "/mlflow/traces/{request_id}/tags",
        m.DeleteTraceTag,
        service.delete_tag,
        "traces.update_trace",
        since="2.14",
        cost=2,
    ),
    post(
        "/mlflow/traces/link-to-run",
        m.LinkTracesToRun,
        links.link_traces_to_run,
        "traces.link_to_run",
        since="3.3",
        cost=2,
    ),
    post(
        "/mlflow/traces/link-prompts",
        m.LinkPromptsToTrace,
        links.link_prompts_to_trace,
        "traces.update_trace",
        since="3.7",
        cost=2,
    ),
)

PLAIN_ROUTES = (
    PlainRoute(
        "POST",
        "/v1/traces",
        exports.parse,
        exports.export_spans,
        "traces.export",
        since="3.4",
        cost=2,
    ),
    PlainRoute(
        "GET",
        "/ajax-api/2.0/mlflow/get-trace-artifact",
        of_query(m.GetTraceArtifact),
        whole_traces.get_trace_artifact,
        "traces.read_artifact",
        since="2.14",
        cost=2,
    ),
    PlainRoute(
        "GET",
        "/ajax-api/3.0/mlflow/get-trace-artifact",
        of_query(m.GetTraceArtifact),
        whole_traces.get_trace_artifact,
        "traces.read_artifact",
        since="3.9",
        cost=2,
    ),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)
