"""Questions about calls of models by endpoint, which published queries ask of Databricks' tables of
calls together with its table of served entities: in SQL of our own with the same tables, columns,
functions and clauses. The queries were read in November 2026."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Final

from tests.e2e.published_answers import Records, Rows, grouped, total
from tests.e2e.published_questions import Question

RETIRED: Final = "docs.databricks.com, maintenance policy of generative models"
DASHBOARD: Final = "docs.databricks.com, ai-gateway-dashboard.lvdash.json"
MONITORS: Final = "a Terraform module whose alerts watch for agents that repeat failing calls"
GOVERNANCE: Final = "an application that materializes usage of endpoints by day"
AUTHZ: Final = "a dashboard of an agent's operations, its data sets"
LIMITS: Final = "a Databricks App that limits users by their cost"
WORKSHOP: Final = "notebooks of workshops that end with usage of the endpoint"

_MODELS: Final = {"chat": "gpt-4o", "broken": "gpt-4o", "other": "gpt-4o-mini"}
_JOINED: Final = (
    "FROM system.serving.endpoint_usage u JOIN system.serving.served_entities e "
    "ON u.served_entity_id = e.served_entity_id"
)
_USING: Final = (
    "FROM system.serving.endpoint_usage u LEFT JOIN system.serving.served_entities e "
    "USING (served_entity_id)"
)
_MONTH: Final = "u.request_time >= current_date() - INTERVAL 30 DAYS"


def by_model(r: Records) -> Rows:
    return [
        [*key, _MODELS[key[1]], len(calls), total(c["input"] for c in calls)]
        for key, calls in grouped(r.calls, lambda c: c["user"], lambda c: c["endpoint"]).items()
    ]


def loops(r: Records) -> Rows:
    failed = [c for c in r.calls if c["status"] != 200]
    return [
        [*key, len(calls), ",".join(sorted({str(c["status"]) for c in calls})), 0]
        for key, calls in grouped(failed, lambda c: c["user"], lambda c: c["endpoint"]).items()
    ]


def shares(r: Records) -> Rows:
    rows: Rows = []
    for (endpoint,), calls in grouped(r.calls, lambda c: c["endpoint"]).items():
        failed = sum(c["status"] != 200 for c in calls)
        rows.append([endpoint, "EXTERNAL_MODEL", len(calls), round(100 * failed / len(calls), 1)])
    return rows


def per_call(r: Records) -> Rows:
    calls = [c for c in r.calls if c["endpoint"] == "chat"]
    mean = statistics.mean(c["input"] + c["output"] for c in calls)
    return [[len(calls), round(mean), 0]]


def tiers(r: Records) -> Rows:
    counts = Counter(c["endpoint"] for c in r.calls)
    users = {e: len({c["user"] for c in r.calls if c["endpoint"] == e}) for e in counts}
    return [[e, _MODELS[e], None, n, users[e], "Very Low"] for e, n in counts.items()]


def spread(r: Records) -> Rows:
    return [
        [user, len(calls), len({c["endpoint"] for c in calls})]
        for (user,), calls in grouped(r.calls, lambda c: c["user"]).items()
    ]


def estimated(r: Records) -> Rows:
    rows: Rows = []
    for (endpoint,), calls in grouped(r.calls, lambda c: c["endpoint"]).items():
        tokens = [total(c[side] for c in calls) or 0 for side in ("input", "output")]
        usd = tokens[0] * 400 / 1e6 + tokens[1] * 1600 / 1e6 if endpoint == "chat" else 0
        rows.append([endpoint, len(calls), round(usd, 4)])
    return rows


def by_alias(r: Records) -> Rows:
    return [
        [endpoint, "none", len(calls), sum(c["status"] >= 500 for c in calls), None]
        for (endpoint,), calls in grouped(r.calls, lambda c: c["endpoint"]).items()
    ]


def costs(r: Records) -> Rows:
    prices = {"chat": (0.1, 0.3), "other": (0.2, 0.5)}
    usd: Counter[str] = Counter()
    for call in r.calls:
        if call["endpoint"] in prices:
            of_input, of_output = prices[call["endpoint"]]
            usd[call["user"]] += of_input * call["input"] + of_output * call["output"]
    return [[user, round(cost, 2)] for user, cost in usd.items()]


QUESTIONS: Final = (
    Question(
        RETIRED,
        "SELECT u.requester, e.endpoint_name, e.entity_name, count(*) AS calls, "
        f"sum(u.input_token_count) AS tokens {_JOINED} "
        "WHERE lower(e.entity_name) LIKE '%gpt-4o%' "
        "GROUP BY u.requester, e.endpoint_name, e.entity_name ORDER BY calls DESC",
        by_model,
    ),
    Question(
        MONITORS,
        "SELECT u.requester, e.endpoint_name, count(*) AS failed, "
        "concat_ws(',', sort_array(collect_set(u.status_code))) AS codes, "
        "sum(coalesce(u.input_token_count, 0) + coalesce(u.output_token_count, 0)) AS burned "
        f"{_USING.replace('LEFT ', '')} "
        "WHERE u.request_time > current_timestamp() - INTERVAL 1 HOUR AND u.status_code <> 200 "
        "AND e.endpoint_name IN ('chat', 'broken', 'other') GROUP BY 1, 2 "
        "HAVING count(*) >= 1 ORDER BY failed DESC",
        loops,
    ),
    Question(
        GOVERNANCE,
        "SELECT e.endpoint_name, e.entity_type, count(*) AS calls, "
        "round(100.0 * sum(CASE WHEN u.status_code <> 200 THEN 1 ELSE 0 END) / count(*), 1) "
        f"AS percent {_JOINED} WHERE {_MONTH} GROUP BY ALL ORDER BY percent DESC",
        shares,
    ),
    Question(
        AUTHZ,
        "SELECT count(*) AS calls, round(avg(u.input_token_count + u.output_token_count), 0), "
        f"count(CASE WHEN u.status_code != 200 THEN 1 END) {_JOINED} "
        "WHERE e.endpoint_name = 'chat' AND u.request_time >= CURRENT_DATE - INTERVAL 7 DAYS "
        "GROUP BY date_trunc('year', u.request_time) - INTERVAL 1 SECOND",
        per_call,
    ),
    Question(
        GOVERNANCE,
        "SELECT e.endpoint_name, e.entity_name, e.task, coalesce(u.calls, 0) AS n, u.users, "
        "CASE WHEN coalesce(u.calls, 0) = 0 THEN 'Idle' WHEN u.calls < 100 THEN 'Very Low' "
        "ELSE 'Active' END AS tier FROM system.serving.served_entities e LEFT JOIN ("
        "SELECT served_entity_id, count(*) AS calls, count(DISTINCT requester) AS users "
        f"FROM system.serving.endpoint_usage u WHERE {_MONTH} GROUP BY served_entity_id) u "
        "ON e.served_entity_id = u.served_entity_id WHERE e.endpoint_delete_time IS NULL",
        tiers,
    ),
    Question(
        WORKSHOP,
        "SELECT u.requester AS user_id, count(*) AS calls, count(DISTINCT e.endpoint_name) "
        f"{_JOINED} WHERE u.request_time >= date_sub(current_date(), 30) "
        "AND u.requester IS NOT NULL GROUP BY u.requester ORDER BY calls DESC LIMIT 50",
        spread,
    ),
    Question(
        WORKSHOP,
        "SELECT e.endpoint_name, count(*) AS calls, CASE e.endpoint_name WHEN 'chat' THEN "
        "round(sum(u.input_token_count) * 400 / 1000000 + sum(u.output_token_count) * 1600 "
        f"/ 1000000, 4) ELSE 0 END AS usd {_JOINED} "
        "WHERE u.request_time >= DATE_SUB(CURRENT_TIMESTAMP(), 30) GROUP BY e.endpoint_name",
        estimated,
    ),
    Question(
        GOVERNANCE,
        "SELECT e.endpoint_name, coalesce(u.usage_context['app'], 'none') AS app, count(*), "
        "sum(CASE WHEN TRY_CAST(u.status_code AS INT) >= 500 THEN 1 ELSE 0 END), "
        "CAST(NULL AS DOUBLE) AS p95 FROM system.serving.endpoint_usage u "
        "LEFT JOIN system.serving.served_entities e ON u.served_entity_id = e.served_entity_id "
        "WHERE date(u.request_time) >= date_sub(current_date(), :days) "
        "GROUP BY endpoint_name, app, entity_name, entity_type",
        by_alias,
    ),
    Question(
        DASHBOARD,
        "SELECT count(DISTINCT u.databricks_request_id), count(DISTINCT e.endpoint_id), "
        "count_if(e.served_entity_name = e.endpoint_name), count(u.request_streaming), "
        "sum(input_token_count + output_token_count) AS tokens "
        f"{_JOINED} WHERE u.account_id IS NULL",
        lambda r: [
            [
                *(len(r.calls), len(_MODELS), len(r.calls), 0),
                total(c["input"] + c["output"] for c in r.calls if c["input"] is not None),
            ]
        ],
    ),
    Question(
        GOVERNANCE,
        "SELECT count(DISTINCT endpoint_id), count_if(foundation_model_config IS NOT NULL), "
        "count_if(external_model_config.provider = 'openai'), "
        "count_if(custom_model_config IS NOT NULL) "
        "FROM system.serving.served_entities WHERE endpoint_delete_time IS NULL",
        lambda _: [[3, 0, 3, 0]],
    ),
    Question(
        GOVERNANCE,
        "WITH latest AS (SELECT * FROM (SELECT e.endpoint_id, e.endpoint_name, "
        "row_number() OVER (PARTITION BY e.workspace_id, e.endpoint_id "
        "ORDER BY e.change_time DESC) AS n FROM system.serving.served_entities e) WHERE n = 1) "
        "SELECT endpoint_name FROM latest",
        lambda _: [["chat"], ["broken"], ["other"]],
    ),
    Question(
        LIMITS,
        "WITH prices AS (SELECT endpoint_name, of_input, of_output FROM (VALUES "
        "('chat', 0.1, 0.3), ('other', 0.2, 0.5)) AS t(endpoint_name, of_input, of_output)), "
        "used AS (SELECT u.requester, u.endpoint_name, sum(CASE WHEN u.event_time >= "
        "date_trunc('WEEK', CURRENT_DATE - INTERVAL 7 DAYS) THEN u.input_tokens ELSE 0 END) AS i, "
        "sum(u.output_tokens) AS o FROM system.ai_gateway.usage u "
        "WHERE u.event_time >= CURRENT_DATE - INTERVAL 30 DAY GROUP BY 1, 2) "
        "SELECT requester, sum(round(coalesce(i * of_input + o * of_output, 0), 2)) "
        "FROM used LEFT JOIN prices p ON used.endpoint_name = p.endpoint_name GROUP BY requester",
        costs,
    ),
)
