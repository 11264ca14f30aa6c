"""Questions about traces, under the names and in the columns of Databricks' tables of traces: each
names a page or a project that puts it. A statement of Databricks' own pages is unchanged; the
others are in SQL of our own with the same tables, columns, functions and clauses, because they are
somebody's code. The pages were read in November 2026."""

from __future__ import annotations

from typing import Final

from tests.e2e import published_trace_answers as answers
from tests.e2e.published_questions import GATEWAY, TABLES, VIEW, Question

NOTEBOOK: Final = "databricksters.com/p/observability-for-any-agent-anywhere, its notebook"
SKILL: Final = "docs.databricks.com …/tracing/observe-with-traces/query-dbsql, metrics of an agent"
ADK: Final = "a project that traces Google's ADK into Unity Catalog, docs/…/queries"
LAB: Final = "github.com/natefleming/dao-ai, notebooks on feedback and monitoring"
PLANE: Final = "github.com/databricks-solutions/agent-control-plane"
APP: Final = "a Databricks App that shows metrics of traces"
ANNOTATED: Final = "a project whose monitors write assessments, its query of failing traces"

_UNIFIED: Final = "main.agents.mlflow_experiment_trace_unified"
_SPANS: Final = "`main`.`agents`.`mlflow_experiment_trace_otel_spans`"
_NEW: Final = "main.agents.support_bot"
_TOOK: Final = "(end_time_unix_nano - start_time_unix_nano) / 1e6"

UNCHANGED: Final = {
    # docs.databricks.com/en/ai-gateway/usage-tracking-beta
    GATEWAY: "SELECT * FROM system.ai_gateway.usage;",
    # docs.databricks.com/aws/en/admin/system-tables/mlflow: two data sets of its dashboard
    f"{TABLES}, runs": " SELECT * \n FROM system.mlflow.runs_latest\n"
    " WHERE experiment_id LIKE trim(:experiment_id)\n AND run_id LIKE trim(:run_id)\n LIMIT 1;",
    f"{TABLES}, tags": " SELECT explode(tags)\n FROM system.mlflow.runs_latest\n"
    " WHERE experiment_id LIKE trim(:experiment_id)\n AND run_id LIKE trim(:run_id)\n LIMIT 1000;",
}
"""Statements of Databricks' pages as they stand there, besides those in examples/system_tables."""

QUESTIONS: Final = (
    Question(
        VIEW,
        f"SELECT state, count(*) AS traces, avg(execution_duration_ms) AS ms FROM {_UNIFIED} "
        "WHERE request_time >= current_timestamp() - INTERVAL 7 DAYS GROUP BY state",
        answers.states,
    ),
    Question(
        ADK,
        "SELECT trace_id, state, execution_duration_ms FROM "
        "`main`.`agents`.`mlflow_experiment_trace_unified` WHERE state = 'ERROR' "
        "ORDER BY request_time DESC LIMIT 500",
        answers.failed,
    ),
    Question(
        NOTEBOOK,
        f"SELECT name AS step, count(*) AS n, avg({_TOOK}) AS mean_ms, "
        f"percentile_approx({_TOOK}, 0.95) AS p95 FROM {_NEW}_otel_spans "
        "GROUP BY name ORDER BY n DESC",
        answers.by_name,
    ),
    Question(
        ADK,
        "WITH lengths AS (SELECT name, date_trunc('DAY', timestamp_millis("
        "CAST(start_time_unix_nano / 1000000 AS BIGINT))) AS on_day, "
        f"(end_time_unix_nano - start_time_unix_nano) / 1000000.0 AS ms FROM {_SPANS} "
        "WHERE end_time_unix_nano >= start_time_unix_nano AND end_time_unix_nano IS NOT NULL) "
        "SELECT name, date_format(on_day, 'yyyy-MM-dd'), count(*), round(min(ms), 4), "
        "round(max(ms), 4), round(approx_percentile(ms, 0.5), 4) FROM lengths "
        "GROUP BY on_day, name ORDER BY on_day DESC",
        answers.by_name_and_day,
    ),
    Question(
        NOTEBOOK,
        "SELECT span_id, name, status.code AS code, status.message AS told "
        f"FROM {_NEW}_otel_spans WHERE status.code = 'STATUS_CODE_ERROR' "
        "ORDER BY time DESC LIMIT 20",
        answers.errors,
    ),
    Question(
        ADK,
        "SELECT s.span_id, s.parent_span_id, s.status.code, "
        f"round((s.end_time_unix_nano - s.start_time_unix_nano) / 1000000.0, 4) FROM {_SPANS} s "
        "WHERE NOT (s.status.code IS NULL OR s.status.code = 'STATUS_CODE_OK') "
        "ORDER BY s.end_time_unix_nano DESC LIMIT 2000",
        answers.not_fine,
    ),
    Question(
        NOTEBOOK,
        f"SELECT span_id, name, status.code AS state, {_TOOK} AS ms FROM {_NEW}_otel_spans "
        "WHERE parent_span_id IS NULL OR parent_span_id = '' ORDER BY time DESC LIMIT 1000",
        answers.roots,
    ),
    Question(
        ADK,
        "SELECT tool, count(*), count(DISTINCT trace_id) FROM (SELECT trace_id, "
        f"coalesce(attributes['gen_ai.tool.name'], '') AS tool FROM {_SPANS} "
        "WHERE attributes['gen_ai.tool.name'] IS NOT NULL "
        "AND trim(attributes['gen_ai.tool.name']) != '') GROUP BY tool",
        answers.otel_tools,
    ),
    Question(
        PLANE,
        "SELECT count(DISTINCT trace_id) AS traces, date_format(max(timestamp_micros("
        "CAST(end_time_unix_nano / 1000 AS BIGINT))), 'yyyy-MM-dd HH:mm:ss') AS latest "
        f"FROM {_NEW}_otel_spans WHERE parent_span_id IS NULL AND end_time_unix_nano IS NOT NULL",
        answers.freshness,
    ),
    Question(
        LAB,
        "SELECT trace_id, a.feedback.value AS verdict, a.rationale AS why, a.source.source_id "
        f"FROM {_UNIFIED} LATERAL VIEW EXPLODE(assessments) AS a "
        "WHERE a.assessment_name = 'fine' ORDER BY request_time DESC",
        answers.verdicts,
    ),
    Question(
        LAB,
        "SELECT a.assessment_name, a.source.source_type, count(*), "
        "sum(CASE WHEN a.feedback.value IN ('yes', 'true') THEN 1 ELSE 0 END) "
        f"FROM {_NEW}_trace_metadata LATERAL VIEW EXPLODE(assessments) AS a GROUP BY 1, 2",
        answers.pass_rates,
    ),
    Question(
        ANNOTATED,
        f"SELECT DISTINCT trace_id FROM {_NEW}_trace_metadata "
        "LATERAL VIEW explode(assessments) AS a WHERE a.assessment_name IN ('fine') "
        "AND a.feedback.value = 'false' AND a.valid = 'true' ORDER BY trace_id",
        answers.unfit,
    ),
    Question(
        APP,
        "SELECT t.trace_id, try_element_at(filter(t.assessments, "
        "a -> a.assessment_name = 'fine'), 1).feedback.value AS fine, size(t.assessments) "
        f"FROM {_UNIFIED} t",
        answers.judged,
    ),
    Question(
        SKILL,
        "WITH used AS (SELECT from_tokens:input_tokens::BIGINT AS of_input, "
        "from_tokens:total_tokens::BIGINT AS of_all FROM (SELECT "
        f"trace_metadata['mlflow.trace.tokenUsage'] AS from_tokens FROM {_UNIFIED})) "
        "SELECT count(of_all), sum(of_input), sum(of_all) FROM used",
        answers.tokens,
    ),
    Question(
        APP,
        "SELECT span.name, count(*) AS calls, "
        "sum(CASE WHEN span.status.code = 'STATUS_CODE_ERROR' THEN 1 ELSE 0 END) AS failed, "
        "CAST(sum(CASE WHEN span.status.code = 'STATUS_CODE_ERROR' THEN 1 ELSE 0 END) AS DOUBLE) "
        "/ nullif(count(*), 0) AS share, percentile("
        "(span.end_time_unix_nano - span.start_time_unix_nano) / 1e6, 0.5) AS p50 "
        f"FROM {_UNIFIED} t LATERAL VIEW explode(spans) AS span "
        "WHERE span.attributes['mlflow.spanType'] = 'TOOL' GROUP BY span.name",
        answers.tools,
    ),
    Question(
        SKILL,
        "SELECT attributes:`mlflow.llm.model`::STRING AS model, count(*), "
        "sum(attributes:`mlflow.chat.tokenUsage`.total_tokens::BIGINT) "
        f"FROM {_NEW}_otel_spans WHERE attributes:`mlflow.spanType`::STRING = 'CHAT_MODEL' "
        "AND attributes:`mlflow.llm.model`::STRING IS NOT NULL GROUP BY 1",
        answers.models,
    ),
    Question(
        ADK,
        "SELECT trace_metadata['mlflow.trace.session'] AS session, count(*) "
        f"FROM {_NEW}_trace_metadata WHERE trace_metadata['mlflow.trace.session'] IS NOT NULL "
        "GROUP BY 1",
        answers.sessions,
    ),
    Question(
        VIEW,
        f"SELECT u.trace_id, count(s.span_id), sum({_TOOK}) FROM {_NEW}_trace_unified u "
        f"JOIN {_NEW}_otel_spans s ON s.trace_id = u.trace_id "
        "WHERE request_time >= date_sub(current_date(), 1) GROUP BY u.trace_id "
        "HAVING count(s.span_id) > 1",
        answers.sizes,
    ),
    Question(
        NOTEBOOK,
        f"SELECT trace_id, max(CASE WHEN name = 'execute_tool' THEN {_TOOK} END) AS tool_ms, "
        f"max(CASE WHEN name = 'invoke_agent' THEN {_TOOK} END) AS all_ms "
        f"FROM {_NEW}_otel_spans GROUP BY trace_id HAVING all_ms IS NOT NULL",
        answers.steps,
    ),
    Question(
        APP,
        "SELECT percentile(execution_duration_ms, 0.5), percentile(execution_duration_ms, 0.9), "
        f"percentile(execution_duration_ms, 0.99), max(execution_duration_ms) FROM {_UNIFIED} "
        "WHERE state = 'OK' AND execution_duration_ms IS NOT NULL",
        answers.latencies,
    ),
    Question(
        ANNOTATED,
        "SELECT message, count(*) FROM (SELECT attributes:`mlflow.spanInputs`.messages[0].content "
        f"AS message FROM {_NEW}_otel_spans WHERE parent_span_id IS NULL) "
        "WHERE message IS NOT NULL GROUP BY message",
        answers.first_messages,
    ),
    Question(
        VIEW,
        "SELECT trace_id, size(filter(spans, s -> exists(s.events, e -> e.name = 'retried'))) "
        f"FROM {_UNIFIED} WHERE exists(spans, s -> "
        "get(s.events, 0).name = 'retried')",
        answers.retries,
    ),
)
