"""The view ``gateway_usage``: calls through the gateway, and who may count them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gateway_calls.app
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.environment import AUTHENTICATION
from mlcore.errors import InvalidParameterValue
from mlcore.http import lambda_handler
from mlcore.repos.gateway import configuration
from mlcore.repos.users import users
from tests.contract.gateway_requests import ask, events_of, post
from tests.contract.gateway_world import (
    KEY,
    PRICE,
    allow_local,
    budget,
    configure,
    endpoint,
    model,
)
from tests.contract.lake import Tables, tables
from tests.contract.logins import named
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import export, span
from tests.doubles.providers import Provider, failing, openai, serving

__all__ = ["tables"]

Json = dict[str, Any]

USAGE = "system.mlflow.gateway_usage"
HELLO: list[Json] = [{"role": "user", "content": "hello there"}]
CHAT = "mlflow/v1/chat/completions"


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


@pytest.fixture
def provider(tables: Tables) -> Iterator[Provider]:
    with serving(openai) as made:
        yield made


def _tracked(name: str, *models: str) -> tuple[str, str]:
    """The ids of an endpoint and of its experiment."""
    made = endpoint(name, models[:1], models[1:], usage_tracking=True)
    return made, str(configuration.read("default").endpoints[made].experiment_id)


def _call(body: Json, *, path: str = CHAT, **headers: str) -> int:
    return int(post(path, body, **headers)[0])


def _rows(tables: Tables, sql: str, workspaces: list[str] | None = None) -> list[Json]:
    answer = tables.ask(sql, workspaces)
    return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]


def test_calls_are_rows(
    tables: Tables, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is compared with what the test has asked and the provider has answered."""
    began = time.time()
    chat, of_chat = _tracked("chat", model("m", "openai", provider.url, model_name="gpt-4o"))
    with serving(failing(404, f"no, {KEY}")) as broken:
        ids = [
            model("a", "openai", broken.url, model_name="first"),
            model("b", "openai", provider.url, model_name="second"),
        ]
        pair, of_pair = _tracked("pair", *ids)
        endpoint("untracked", [ids[1]])
        expected: list[tuple[Any, ...]] = []

        assert _call({"model": "chat", "messages": HELLO}, user_agent="OpenAI/Python 2") == 200
        done = (11, 7, 18)
        expected.append((chat, "chat", of_chat, "openai", "gpt-4o", 1, "OK", None, *done))
        assert _call({"messages": HELLO}, path="pair/mlflow/invocations") == 200
        expected.append((pair, "pair", of_pair, "openai", "second", 2, "OK", None, *done))
        assert _call({"model": "untracked", "messages": HELLO}) == 200
        streamed = post(CHAT, {"model": "chat", "messages": HELLO, "stream": True})
        assert events_of(streamed[2])
        expected.append((chat, "chat", of_chat, "openai", "gpt-4o", 1, "OK", None, *done))
        provider.answer = failing(422, "no tools")
        assert _call({"model": "pair", "messages": HELLO}) == 422
        none = (None, None, None)
        expected.append((pair, "pair", of_pair, "openai", "second", 2, "ERROR", 422, *none))
    provider.answer = openai
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "USE")
    users.create("ann", "", is_admin=False)
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    body = {"model": "chat", "messages": HELLO}
    assert ask("POST", CHAT, body, handler=handler, caller=named("ann"))[0] == 200
    monkeypatch.setenv(AUTHENTICATION, "")
    expected.append((chat, "chat", of_chat, "openai", "gpt-4o", 1, "OK", None, *done))
    budget("GLOBAL", 0.0)
    assert _call({"model": "chat", "messages": HELLO}) == 429
    expected.append((chat, "chat", of_chat, None, None, 0, "ERROR", 429, *none))
    tables.follow()

    rows = _rows(tables, f"SELECT * FROM {USAGE} ORDER BY request_time, trace_id")
    compared = (
        *("endpoint_id", "endpoint_name", "experiment_id", "provider", "model", "attempts"),
        *("outcome", "error_status", "input_tokens", "output_tokens", "total_tokens"),
    )
    key = str
    assert sorted((tuple(row[name] for name in compared) for row in rows), key=key) == sorted(
        expected, key=key
    )
    assert {row["workspace_id"] for row in rows} == {"default"}
    assert len({row["trace_id"] for row in rows}) == len(expected)
    assert [row["user_name"] for row in rows if row["user_name"]] == ["ann"]
    assert [row["caller"] for row in rows if row["caller"]] == ["OpenAI"]
    priced = [row["total_cost"] for row in rows if row["model"] == "gpt-4o"]
    assert priced == [pytest.approx(PRICE)] * 3
    assert {row["request_type"] for row in rows if row["attempts"]} == {"unified/chat"}
    for row in rows:
        assert 0 <= row["latency_ms"] <= (time.time() - began) * 1000
        assert (row["error_message"] is None) == (row["outcome"] == "OK")
    (failed,) = [row for row in rows if row["error_status"] and row["attempts"]]
    assert "no tools" in failed["error_message"]
    (refused,) = [row for row in rows if not row["attempts"]]
    assert "Budget limit exceeded" in refused["error_message"]
    assert KEY not in str(rows)

    # The same sums, whichever columns a query names.
    for sql, answer in (
        (f"SELECT count(*) FROM {USAGE}", [[len(expected)]]),
        (f"SELECT sum(total_tokens) FROM {USAGE}", [[4 * 18]]),
        (f"SELECT count(*) FROM {USAGE} WHERE model = 'second'", [[2]]),
        (
            "SELECT user_name, model, count(*) AS calls, sum(total_tokens) AS tokens "
            f"FROM {USAGE} WHERE request_time >= now() - INTERVAL 7 DAYS "
            "AND user_name IS NOT NULL GROUP BY 1, 2 ORDER BY tokens DESC",
            [["ann", "gpt-4o", 1, 18]],
        ),
        (
            f"SELECT endpoint_name, count(*), count_if(outcome = 'ERROR') FROM {USAGE} "
            "GROUP BY 1 ORDER BY 1",
            [["chat", 4, 1], ["pair", 2, 1]],
        ),
        (
            f"SELECT count(*), count(provider) FROM {USAGE} WHERE request_time < '2020-01-01'",
            [[0, 0]],
        ),
        (
            f"SELECT count(*) FROM {USAGE} g JOIN system.mlflow.traces t USING (trace_id) "
            "JOIN system.mlflow.trace_unified u USING (trace_id)",
            [[len(expected)]],
        ),
    ):
        assert tables.ask(sql)["rows"] == answer


@pytest.fixture
def used(tables: Tables, provider: Provider) -> Tables:
    """One call, and a trace that is none."""
    _tracked("chat", model("m", "openai", provider.url, model_name="gpt-4o"))
    assert _call({"model": "chat", "messages": HELLO}) == 200
    (endpoint,) = configuration.read("default").endpoints.values()
    other = span(f"{7:032x}", 1, end=40, mlflow__llm__provider="openai")
    assert export(str(endpoint.experiment_id), [other]).status == 200
    tables.follow()
    return tables


def test_no_row_of_another_workspace_is_shown(used: Tables) -> None:
    statements = (
        f"SELECT count(*) FROM {USAGE}",
        f"SELECT count(*) FROM {USAGE} WHERE CAST(model AS INT) = 1",
        f"SELECT count(*) FROM {USAGE} WHERE 1 / (total_tokens - 18) > 0",
        "SELECT count(*) FROM GATEWAY_USAGE WHERE Provider = 'openai'",
        f"SELECT count(*) FROM {USAGE} WHERE CAST(concat(user_name, caller, trace_id) AS INT) = 1",
        f"WITH g AS (SELECT * FROM {USAGE}) SELECT count(*) FROM g JOIN traces USING (trace_id)",
        "SELECT count(*) FROM system.ai_gateway.usage",
        "SELECT count(*) FROM ai_gateway.USAGE WHERE CAST(destination_model AS INT) = 1",
        "SELECT count(*) FROM ai_gateway_usage WHERE 1 / (total_tokens - 18) > 0",
        "SELECT count(*) FROM system.serving.endpoint_usage WHERE 1 / (status_code - 200) > 0",
        "SELECT count(*) FROM serving.endpoint_usage WHERE CAST(databricks_request_id AS INT) = 1",
    )
    for readable in ([], ["team"], ["Default"], ["%"], ["default' OR 1=1 --"]):
        assert used.counts(statements, readable) == [0] * len(statements), readable


def test_who_may_read_the_workspace_counts_its_calls(used: Tables) -> None:
    for table in (USAGE, "system.ai_gateway.usage", "system.serving.endpoint_usage"):
        assert used.ask(f"SELECT count(*) FROM {table}", ["default"])["rows"] == [[1]]
    assert used.ask("SELECT count(*) FROM system.mlflow.traces")["rows"] == [[2]]


WITHOUT_ANSWER = (
    (f"SELECT * FROM {USAGE} TIMESTAMP AS OF now()", "read traces and spans AS OF"),
    (f"SELECT * FROM {USAGE} VERSION AS OF 1", "read traces and spans AS OF"),
    ("SELECT * FROM gateway_usage_as_of_0", "There is no table"),
    (f"DELETE FROM {USAGE}", "Only SELECT"),
    (f"SELECT trace_metadata FROM {USAGE}", "trace_metadata"),
    (f"SELECT status FROM {USAGE}", "status"),
    ("SELECT * FROM system.ai_gateway.usage TIMESTAMP AS OF now()", "read traces and spans"),
    ("SELECT * FROM usage", "There is no table usage"),
    ("SELECT * FROM other.ai_gateway.usage", "There is no table other.ai_gateway.usage"),
    ("SELECT * FROM system.mlflow.usage", "There is no table"),
    ("SELECT * FROM system.ai_gateway.ai_gateway_usage", "There is no table"),
    ("SELECT provider FROM system.ai_gateway.usage", "provider"),
)


def test_what_the_view_has_not_is_refused(used: Tables) -> None:
    for sql, why in WITHOUT_ANSWER:
        with pytest.raises(InvalidParameterValue, match=why):
            used.ask(sql)


def test_columns_of_databricks_tables_are_those_of_the_call(used: Tables) -> None:
    (call,) = _rows(used, f"SELECT * FROM {USAGE}")
    (usage,) = _rows(used, "SELECT * FROM system.ai_gateway.usage")
    (served,) = _rows(used, "SELECT * FROM system.serving.endpoint_usage")
    for row, names in (
        (
            usage,
            {"request_id": "trace_id", "event_time": "request_time", "latency_ms": "latency_ms"}
            | {"destination_model": "model", "destination_name": "provider"}
            | {"requester": "user_name", "api_type": "request_type", "total_tokens": "total_tokens"}
            | {"endpoint_name": "endpoint_name", "endpoint_id": "endpoint_id"},
        ),
        (
            served,
            {"databricks_request_id": "trace_id", "request_time": "request_time"}
            | {"input_token_count": "input_tokens", "output_token_count": "output_tokens"}
            | {"served_entity_id": "endpoint_id", "workspace_id": "workspace_id"},
        ),
    ):
        assert {name: row[name] for name in names} == {
            name: call[column] for name, column in names.items()
        }
        assert row["status_code"] == 200
    assert (usage["request_tags"], served["usage_context"]) == ({}, {})
    assert usage["time_to_first_byte_ms"] is None


def test_conditions_on_columns_of_other_names(used: Tables) -> None:
    for condition, rows in (
        ("event_time >= now() - INTERVAL 1 DAY", 1),
        ("event_time < '2020-01-01'", 0),
        ("request_id = 'none'", 0),
        ("system.ai_gateway.usage.event_time >= '2020-01-01'", 1),
    ):
        sql = f"SELECT count(*) FROM system.ai_gateway.usage WHERE {condition}"
        assert used.ask(sql)["rows"] == [[rows]], condition


def test_a_condition_on_the_outer_rows_bounds_no_calls(used: Tables) -> None:
    """The view has no request_time, so this one is that of the outer statement."""
    sql = (
        "SELECT max((SELECT count(*) FROM system.ai_gateway.usage WHERE request_time >= "
        "'2200-01-01' OR true)), (SELECT count(*) FROM system.ai_gateway.usage u "
        "WHERE u.event_time >= '2000-01-01') FROM system.mlflow.traces"
    )
    assert used.ask(sql)["rows"] == [[1, 1]]


def test_tools_see_a_view(used: Tables) -> None:
    sql = (
        "SELECT table_type FROM system.information_schema.tables WHERE table_name = 'gateway_usage'"
    )
    assert used.ask(sql, [])["rows"] == [["VIEW"]]


def test_a_renamed_endpoint_keeps_the_name_of_each_call(used: Tables) -> None:
    (endpoint,) = configuration.read("default").endpoints.values()
    configure("endpoints/update", {"endpoint_id": endpoint.endpoint_id, "name": "talk"})
    assert _call({"model": "talk", "messages": HELLO}) == 200
    used.follow()
    rows = _rows(used, f"SELECT endpoint_name, endpoint_id FROM {USAGE}")
    assert {row["endpoint_name"] for row in rows} == {"chat", "talk"}
    assert {row["endpoint_id"] for row in rows} == {endpoint.endpoint_id}
