"""Questions that Databricks' pages and example projects put to their system tables, in SQL of our
own with the same tables, columns, functions and clauses. The pages were read in November 2026."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.e2e import published_answers as answers
from tests.e2e.published_answers import Records, Rows

GATEWAY: Final = "docs.databricks.com/aws/en/ai-gateway/usage-tracking"
SERVING: Final = "github.com/databricks-solutions/ai-dev-kit, databricks-ai-gateway/4-observability"
TAGS: Final = "github.com/databricks-solutions/ai-governance, workshop_app/queries"
PLANE: Final = "github.com/databricks-solutions/agent-control-plane, workflows"
TABLES: Final = "docs.databricks.com/aws/en/admin/system-tables/mlflow, dashboard and alert"
REVIEW: Final = "github.com/databricks-solutions/databricks-waf, mlflow_run_tracking"
VIEW: Final = "docs.databricks.com/aws/en/mlflow3/genai/tracing/observe-with-traces/query-dbsql"


class Question(NamedTuple):
    source: str
    sql: str
    answer: Callable[[Records], Rows]
    """Computes the rows that the statement must have, in any order."""


_WEEK: Final = "current_timestamp() - INTERVAL 7 DAYS"
_MONTH: Final = "current_date() - INTERVAL 30 DAYS"
_MINE: Final = "experiment_id IN (SELECT experiment_id FROM asked)"
_ASKED: Final = (
    "asked AS (SELECT experiment_id, name AS title, delete_time "
    "FROM system.mlflow.experiments_latest WHERE name LIKE 'asked %')"
)

QUESTIONS: Final = (
    Question(
        SERVING,
        "SELECT endpoint_name, CAST(date(request_time) AS STRING) AS on_day, "
        "sum(input_token_count) AS tokens_in, sum(output_token_count) AS tokens_out "
        f"FROM system.serving.endpoint_usage WHERE request_time >= {_MONTH} "
        "GROUP BY endpoint_name, date(request_time) ORDER BY on_day DESC",
        answers.tokens_by_day,
    ),
    Question(
        SERVING,
        "SELECT requester, count(*) AS calls, sum(output_token_count) AS tokens "
        f"FROM system.serving.endpoint_usage WHERE request_time >= {_MONTH} "
        "GROUP BY requester ORDER BY calls DESC LIMIT 10",
        answers.users,
    ),
    Question(
        SERVING,
        "SELECT endpoint_name, count(*) AS calls, count_if(status_code <> 200) AS failed, "
        "round(count_if(status_code <> 200) / count(*) * 100, 2) AS share "
        f"FROM system.serving.endpoint_usage WHERE request_time >= {_MONTH} "
        "GROUP BY endpoint_name ORDER BY share DESC",
        answers.error_share,
    ),
    Question(
        SERVING,
        "WITH prices AS (SELECT 'chat' AS name, 0.25 AS of_input, 1.0 AS of_output "
        "UNION ALL SELECT 'other', 0.5, 2.0) "
        "SELECT c.endpoint_name, round(sum(c.input_token_count / 1000.0 * p.of_input + "
        "c.output_token_count / 1000.0 * p.of_output), 2) AS usd "
        "FROM system.serving.endpoint_usage c JOIN prices p ON p.name = c.endpoint_name "
        f"WHERE c.request_time >= {_MONTH} GROUP BY c.endpoint_name ORDER BY usd DESC",
        answers.estimate,
    ),
    Question(
        SERVING,
        "SELECT usage_context['team'] AS team, count(*) AS calls "
        "FROM system.serving.endpoint_usage WHERE usage_context['team'] IS NOT NULL GROUP BY 1",
        lambda _: [],  # The gateway takes no context from callers.
    ),
    Question(
        SERVING,
        "SELECT endpoint_name, status_code, input_token_count, output_token_count "
        "FROM system.serving.endpoint_usage WHERE requester = 'ann' "
        "AND request_time BETWEEN '2026-01-01' AND '2200-01-01' ORDER BY request_time DESC",
        answers.of_ann,
    ),
    Question(
        SERVING,
        "SELECT requester, status_code FROM system.serving.endpoint_usage "
        f"WHERE endpoint_name = 'broken' AND status_code != 200 AND request_time >= {_WEEK}",
        lambda r: [[c["user"], c["status"]] for c in r.calls if c["endpoint"] == "broken"],
    ),
    Question(
        GATEWAY,
        "SELECT count(*), count(DISTINCT request_id) FROM (SELECT * FROM system.ai_gateway.usage)",
        lambda r: [[len(r.calls), len(r.calls)]],
    ),
    Question(
        PLANE,
        "SELECT endpoint_name, count(*) AS calls, coalesce(sum(input_tokens), 0) AS tokens_in, "
        "coalesce(sum(output_tokens), 0) AS tokens_out, "
        "coalesce(sum(token_details.cache_read_input_tokens), 0) AS cached, "
        "sum(CASE WHEN status_code >= 400 THEN 1 ELSE 0 END) AS failed, "
        "count(DISTINCT requester) AS users, "
        "CAST(percentile_approx(latency_ms, 0.5) AS LONG) <= max(latency_ms) AS ordered "
        f"FROM system.ai_gateway.usage WHERE event_time >= {_WEEK} "
        "AND endpoint_name IS NOT NULL GROUP BY endpoint_name ORDER BY calls DESC",
        answers.endpoints,
    ),
    Question(
        PLANE,
        "WITH calls AS (SELECT requester_type, destination_model, api_type, input_tokens "
        f"FROM system.ai_gateway.usage WHERE event_time >= {_WEEK}) "
        "SELECT 'model' AS what, coalesce(destination_model, 'unknown') AS value, count(*), "
        "coalesce(sum(input_tokens), 0) FROM calls GROUP BY destination_model "
        "UNION ALL SELECT 'api', CASE WHEN coalesce(api_type, '') <> '' THEN api_type "
        "ELSE 'unknown' END, count(*), coalesce(sum(input_tokens), 0) FROM calls GROUP BY 2 "
        "UNION ALL SELECT 'requester_type', coalesce(requester_type, 'unknown'), count(*), "
        "coalesce(sum(input_tokens), 0) FROM calls GROUP BY requester_type",
        answers.breakdown,
    ),
    Question(
        PLANE,
        "SELECT a.action, count(*) FROM system.ai_gateway.usage "
        "LATERAL VIEW explode(routing_information.attempts) t AS a "
        f"WHERE event_time >= {_WEEK} GROUP BY a.action",
        lambda _: [],  # Not recorded.
    ),
    Question(
        TAGS,
        "SELECT requester, coalesce(service_name, endpoint_name) AS target, count(*) AS calls, "
        "sum(CASE WHEN request_tags['project'] = 'p' THEN 1 ELSE 0 END) AS tagged "
        f"FROM system.ai_gateway.usage WHERE event_time > {_WEEK} GROUP BY 1, 2",
        lambda r: [
            [*key, len(calls), 0]
            for key, calls in answers.grouped(
                r.calls, lambda c: c["user"], lambda c: c["endpoint"]
            ).items()
        ],
    ),
    Question(
        GATEWAY,
        "WITH sums AS (SELECT count(*) AS calls, sum(total_tokens) AS tokens, "
        "count(DISTINCT requester) AS users FROM system.ai_gateway.usage "
        f"WHERE event_time >= {_MONTH}), most AS (SELECT destination_model AS model "
        "FROM system.ai_gateway.usage GROUP BY destination_model ORDER BY count(*) DESC LIMIT 1) "
        "SELECT calls, tokens, users, coalesce(model, 'none') FROM sums CROSS JOIN most",
        answers.overview,
    ),
    Question(
        TABLES,
        "SELECT e.experiment_id, e.name, e.delete_time IS NOT NULL, count(r.run_id) AS runs "
        "FROM system.mlflow.experiments_latest e LEFT JOIN system.mlflow.runs_latest r "
        "USING (experiment_id) WHERE e.name LIKE 'asked %' "
        "GROUP BY e.experiment_id, e.name, e.delete_time ORDER BY runs DESC",
        answers.run_counts,
    ),
    Question(
        PLANE,
        f"WITH {_ASKED} SELECT if(delete_time IS NULL, 'ACTIVE', 'SOFT_DELETED') AS state, "
        "count(*) FROM asked GROUP BY if(delete_time IS NULL, 'ACTIVE', 'SOFT_DELETED')",
        answers.states,
    ),
    Question(
        REVIEW,
        f"WITH {_ASKED}, since AS (SELECT dateadd(DAY, -30, current_timestamp()) AS moment) "
        "SELECT CAST(date(start_time) AS STRING), count(*), count_if(status = 'FINISHED'), "
        "count_if(status = 'FAILED') FROM system.mlflow.runs_latest, since "
        f"WHERE start_time >= since.moment AND {_MINE} GROUP BY date(start_time)",
        answers.daily,
    ),
    Question(
        TABLES,
        f"WITH {_ASKED} SELECT a.title, round(avg(CASE WHEN r.status = 'FINISHED' THEN 1.0 "
        "ELSE 0.0 END), 4) AS share, count(r.status) AS runs FROM system.mlflow.runs_latest r "
        "JOIN asked a USING (experiment_id) WHERE r.status IS NOT NULL "
        "GROUP BY a.title HAVING runs >= 1 ORDER BY runs DESC LIMIT 20",
        answers.success,
    ),
    Question(
        TABLES,
        f"WITH {_ASKED} SELECT created_by, count(*), "
        "round(avg(timestampdiff(MINUTE, start_time, end_time)), 2) "
        f"FROM system.mlflow.runs_latest WHERE end_time IS NOT NULL AND {_MINE} "
        "GROUP BY created_by",
        answers.minutes,
    ),
    Question(
        REVIEW,
        f"WITH {_ASKED} SELECT count(*) FROM system.mlflow.runs_latest WHERE {_MINE} AND "
        "(lower(coalesce(run_name, '')) RLIKE '(judge|genai)' "
        "OR array_contains(map_keys(coalesce(tags, map())), 'evaluated'))",
        answers.tagged,
    ),
    Question(
        TABLES,
        "SELECT key, value FROM (SELECT explode(tags) FROM system.mlflow.runs_latest "
        "WHERE run_id LIKE trim(:tagged_run) LIMIT 1000) WHERE key IN ('team', 'evaluated')",
        answers.tags_of_one,
    ),
    Question(
        TABLES,
        "SELECT metric_name, count(metric_time), "
        "round(percentile_cont(0.25) WITHIN GROUP (ORDER BY metric_value), 4), "
        "round(percentile_cont(0.5) WITHIN GROUP (ORDER BY metric_value), 4), "
        "round(percentile_cont(0.75) WITHIN GROUP (ORDER BY metric_value), 4) "
        "FROM system.mlflow.run_metrics_history WHERE run_id = :measured_run "
        "GROUP BY metric_name, run_id LIMIT 100",
        answers.quartiles,
    ),
    Question(
        VIEW,
        f"WITH {_ASKED} SELECT coalesce(t.tags['tool'], '(none)') AS tool, count(*), "
        "round(avg(length(t.response)), 1) FROM system.mlflow.trace_unified t "
        f"WHERE t.request_time >= {_WEEK} AND t.state = 'OK' AND {_MINE} GROUP BY 1",
        answers.tools,
    ),
    Question(
        VIEW,
        f"WITH {_ASKED} SELECT s.attributes['mlflow.spanType'] AS kind, count(*), "
        "round(sum(s.end_time_unix_nano - s.start_time_unix_nano) / 1000000.0, 3) "
        "FROM system.mlflow.trace_unified LATERAL VIEW explode(spans) t AS s "
        f"WHERE {_MINE} GROUP BY 1",
        answers.spans,
    ),
    Question(
        PLANE,
        f"WITH {_ASKED}, mine AS (SELECT trace_id, name, parent_span_id, status "
        f"FROM system.mlflow.spans WHERE {_MINE}), "
        "roots AS (SELECT trace_id, name, status FROM mine WHERE parent_span_id IS NULL "
        "OR parent_span_id = ''), "
        "lists AS (SELECT trace_id, collect_list(named_struct('name', name, 'parent', "
        "parent_span_id)) AS spans FROM mine GROUP BY trace_id) "
        "SELECT roots.trace_id, roots.name, size(lists.spans), CASE roots.status.code "
        "WHEN 'STATUS_CODE_ERROR' THEN roots.status.code ELSE '-' END "
        "FROM roots JOIN lists USING (trace_id)",
        answers.roots,
    ),
    Question(
        VIEW,
        f"WITH {_ASKED} SELECT a.source.source_type, count(*), "
        "sum(CASE WHEN lower(a.feedback.value) IN ('yes', 'true') THEN 1 ELSE 0 END) "
        "FROM system.mlflow.trace_unified LATERAL VIEW explode(assessments) t AS a "
        f"WHERE a.feedback.value IS NOT NULL AND a.assessment_name = 'correct' AND {_MINE} "
        "GROUP BY 1",
        answers.verdicts,
    ),
)
