"""Questions about traces and calls in forms of SQL that published queries have and the other files
do not: pipes, QUALIFY, UNPIVOT, PIVOT, time windows, JSON by a schema, buckets in a time zone. They
are in SQL of our own with the same tables, columns, functions and clauses; the queries were read in
November 2026."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from tests.e2e import published_trace_answers as answers
from tests.e2e.published_answers import Records, Rows, grouped, total
from tests.e2e.published_questions import Question
from tests.e2e.published_serving_questions import AUTHZ

STORE: Final = "a store for MLflow that asks tables of traces in Databricks SQL"
OTEL: Final = "docs.databricks.com/aws/en/ingestion/opentelemetry/queries"
REFERENCE: Final = "docs.databricks.com/aws/en/sql/language-manual, window, from_json, UNPIVOT, |>"

_UNIFIED: Final = "main.agents.mlflow_experiment_trace_unified"
_SPANS: Final = "main.agents.support_bot_otel_spans"
_ZONE: Final = "America/New_York"


def totals(r: Records) -> Rows:
    failed = sum(t["state"] == "ERROR" for t in r.everything)
    took = answers.linear([float(t["duration"]) for t in r.everything], 0.95)
    users = {t["metadata"].get("mlflow.trace.user") for t in r.everything} - {None}
    count = len(r.everything)
    half_up = math.floor(took + 0.5)  # round() of Python takes the even neighbour of a half.
    return [[count, failed, round(failed * 100 / count, 1), half_up, len(users)]]


def _began(trace: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(trace["start"] / 1000, UTC)


def by_local_day(r: Records) -> Rows:
    def midnight(trace: dict[str, Any]) -> int:
        local = _began(trace).astimezone(ZoneInfo(_ZONE))
        return int(local.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)

    return [
        [key, len(traces), sum(t["state"] == "OK" for t in traces)]
        for (key,), traces in grouped(r.everything, midnight).items()
    ]


def by_window(r: Records) -> Rows:
    def begins(trace: dict[str, Any]) -> datetime:
        minutes = timedelta(minutes=_began(trace).minute % 15)
        return _began(trace).replace(second=0, microsecond=0) - minutes

    return [
        [f"{when:%Y-%m-%dT%H:%M:%S.000Z}", len(traces)]
        for (when,), traces in grouped(r.everything, begins).items()
    ]


def tools_without_numbers(r: Records) -> Rows:
    used = [s for s in answers.spans(r) if s.span["attributes"].get(answers.KIND) == "TOOL"]
    groups = grouped(used, lambda s: re.sub("_[0-9]+$", "", s.name))
    return [
        [name, len(group), sum(s.trace["state"] != "OK" for s in group)]
        for (name,), group in groups.items()
    ]


def roles(r: Records) -> Rows:
    counts: Counter[str] = Counter()
    for trace in r.everything:
        inputs = answers._root(trace)["attributes"].get("mlflow.spanInputs")
        messages = inputs.get("messages") if isinstance(inputs, dict) else None
        if messages and all(isinstance(message, dict) for message in messages):
            counts.update(message.get("role") for message in messages)
    return [list(pair) for pair in counts.items()]


def sides(r: Records) -> Rows:
    return [
        [endpoint, side, tokens]
        for (endpoint,), calls in grouped(r.calls, lambda c: c["endpoint"]).items()
        for side in ("input", "output")
        if (tokens := total(c[side] for c in calls)) is not None
    ]


def by_user(r: Records) -> Rows:
    calls = Counter((c["endpoint"], c["user"]) for c in r.calls)
    return [[e, calls[e, "ann"], calls[e, "ben"]] for e in ("chat", "broken", "other")]


def failures(r: Records) -> Rows:
    return [["ERROR", sum(t["state"] == "ERROR" for t in r.everything)]]


def longest(r: Records) -> Rows:
    return [
        [state, max(float(t["duration"]) for t in traces)]
        for (state,), traces in grouped(r.everything, lambda t: t["state"]).items()
    ]


def usd(r: Records) -> Rows:
    key = "mlflow.trace.cost"
    costs = [json.loads(t["metadata"][key]) for t in r.everything if key in t["metadata"]]
    return [[len(costs), round(sum(cost["total_cost"] for cost in costs), 6)]]


QUESTIONS: Final = (
    Question(
        AUTHZ,
        "SELECT count(*) AS n, count(CASE WHEN state = 'ERROR' THEN 1 END) AS failed, "
        "round(count(CASE WHEN state = 'ERROR' THEN 1 END) * 100.0 / nullif(count(*), 0), 1), "
        "round(percentile_cont(0.95) WITHIN GROUP (ORDER BY execution_duration_ms), 0) AS p95, "
        "count(DISTINCT trace_metadata['mlflow.trace.user']) AS users "
        f"FROM {_UNIFIED} WHERE request_time >= CURRENT_DATE - INTERVAL 7 DAYS",
        totals,
    ),
    Question(
        STORE,
        "SELECT unix_timestamp(to_utc_timestamp(date_trunc('day', "
        f"from_utc_timestamp(request_time, '{_ZONE}')), '{_ZONE}')) * 1000 AS bucket, count(*), "
        f"sum(CASE WHEN state = 'OK' THEN 1 ELSE 0 END) FROM {_UNIFIED} "
        "WHERE unix_millis(request_time) >= :days GROUP BY 1 ORDER BY 1",
        by_local_day,
    ),
    Question(
        STORE,
        "WITH calls AS (SELECT t.state, CASE WHEN s.name RLIKE '_[0-9]+$' THEN "
        "regexp_replace(s.name, '_[0-9]+$', '') ELSE s.name END AS tool "
        f"FROM {_UNIFIED} t LATERAL VIEW explode(spans) AS s "
        "WHERE s.attributes['mlflow.spanType'] = 'TOOL') "
        "SELECT tool, count(*), sum(CASE WHEN state != 'OK' THEN 1 ELSE 0 END) FROM calls "
        "GROUP BY tool HAVING count(*) >= 1",
        tools_without_numbers,
    ),
    Question(
        OTEL,
        "SELECT attributes:['gen_ai.tool.name']::string AS tool, count(*), "
        f"count(DISTINCT trace_id) FROM {_SPANS} "
        "WHERE attributes:['gen_ai.tool.name']::string IS NOT NULL AND service_name IS NULL "
        "AND resource.attributes:['service.name']::string IS NULL GROUP BY ALL",
        answers.otel_tools,
    ),
    Question(
        REFERENCE,
        "SELECT window.start, count(*) AS n "
        f"FROM {_UNIFIED} GROUP BY window(request_time, '15 minutes') ORDER BY window.start",
        by_window,
    ),
    Question(
        REFERENCE,
        "SELECT count(u.total_tokens), sum(u.input_tokens), sum(u.total_tokens) FROM (SELECT "
        "from_json(trace_metadata['mlflow.trace.tokenUsage'], 'input_tokens INT, "
        f"total_tokens INT') AS u FROM {_UNIFIED})",
        answers.tokens,
    ),
    Question(
        REFERENCE,
        "SELECT count(cost['total_cost']), round(sum(cost['total_cost']), 6) FROM (SELECT "
        "from_json(trace_metadata['mlflow.trace.cost'], 'MAP<STRING, DOUBLE>') AS cost "
        f"FROM {_UNIFIED})",
        usd,
    ),
    Question(
        REFERENCE,
        "SELECT m.role, count(*) FROM (SELECT from_json(request:messages, "
        f"'ARRAY<STRUCT<role: STRING, content: STRING>>') AS said FROM {_UNIFIED}) "
        "LATERAL VIEW explode(said) t AS m GROUP BY 1",
        roles,
    ),
    Question(
        REFERENCE,
        "SELECT endpoint_name, kind, tokens FROM (SELECT endpoint_name, "
        "sum(input_tokens) AS input, sum(output_tokens) AS output FROM system.ai_gateway.usage "
        "GROUP BY 1) UNPIVOT (tokens FOR kind IN (input, output))",
        sides,
    ),
    Question(
        REFERENCE,
        "WITH calls AS (SELECT endpoint_name, requester, request_id FROM system.ai_gateway.usage) "
        "SELECT * FROM calls PIVOT (count(request_id) FOR requester IN ('ann', 'ben'))",
        by_user,
    ),
    Question(
        REFERENCE,
        f"FROM {_UNIFIED} |> WHERE state = 'ERROR' |> AGGREGATE count(*) AS n GROUP BY state "
        "|> ORDER BY n DESC",
        failures,
    ),
    Question(
        REFERENCE,
        "SELECT state, CAST(execution_duration_ms AS DOUBLE) AS ms "
        f"FROM {_UNIFIED} QUALIFY row_number() OVER (PARTITION BY state "
        "ORDER BY execution_duration_ms DESC) = 1 ORDER BY ms * -1",
        longest,
    ),
)
