"""Questions that Databricks publishes about runs, traces and calls of models, over what clients
have made: OpenAI's client at the gateway, MLflow's client and its judge, agents that the
autologging for OpenAI and LangChain traces, and OpenTelemetry's SDK."""

from __future__ import annotations

import base64
import csv
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.providers import Asked, Told, failing, openai, serving
from tests.e2e import (
    clients,
    published_form_questions,
    published_serving_questions,
    published_trace_questions,
    trace_examples,
    warm_clients,
)
from tests.e2e import published_trace_answers as trace_answers
from tests.e2e.gateway_configuration import Configuration
from tests.e2e.published_answers import Records
from tests.e2e.published_questions import QUESTIONS, Question
from tests.servers import ADMIN, environment, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SCRIPTS = Path(__file__).parent
UNCHANGED = published_trace_questions.UNCHANGED
PASSWORD = "a-password-of-a-user"
USERS = ("ann", "ben")


class World:
    """A server with what the clients made, and what they recorded of it."""

    def __init__(self, url: str, records: Records, tables: Path) -> None:
        self.url, self.records, self.tables = url, records, tables
        self._ask("SELECT 1 FROM system.mlflow.runs_latest", {}, ADMIN, fresh=True)

    def ask(self, sql: str, login: tuple[str, str] = ADMIN) -> list[list[Any]]:
        given = {
            "tagged_run": f" {self.records.runs[4]['id']} ",
            "measured_run": self.records.runs[3]["id"],
            "experiment_id": self.records.runs[4]["experiment"],
            "run_id": f" {self.records.runs[4]['id']}",
            "days": 30,
        }
        used = {name: value for name, value in given.items() if f":{name}" in sql}
        answer = self._ask(sql, used, login)
        assert not answer["truncated"]
        rows: list[list[Any]] = answer["rows"]
        return rows

    def _ask(self, sql: str, given: Any, login: tuple[str, str], *, fresh: bool = False) -> Any:
        body = {"sql": sql, "parameters": given, "fresh": fresh}
        return post(f"{self.url}/api/3.0/mlflow-serverless/sql", body, login)


def post(url: str, body: Any, login: tuple[str, str]) -> Any:
    text = base64.b64encode(":".join(login).encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {text}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        error.add_note(error.read().decode())
        raise


def answering(request: Asked) -> Told:
    """A model that repeats what it is told, and judges answers: those about Atlantis are wrong."""
    told = openai(request)
    if "fine answer" in str(request.body["messages"]):
        fine = "Atlantis" not in str(request.body["messages"][-1])
        content = json.dumps({"result": fine, "rationale": "It reads so."})
        told.body["choices"][0]["message"]["content"] = content
    return told


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("published")
    server = start_product(
        folder,
        *("--auth", "--data", str(folder / "data")),
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        MLFLOW_AUTH_ADMIN_USERNAME=ADMIN[0],
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
        DEFAULT_PERMISSION="MANAGE",
        SYSTEM_TABLES_SECONDS="20",  # the tests beside this one may take the processors
    )
    with stopped(server), serving(answering) as good, serving(failing(500)) as broken:
        for user in USERS:
            made = {"username": user, "password": PASSWORD}
            post(f"{server.url}/api/2.0/mlflow/users/create", made, ADMIN)
        gateway = Configuration(server.url)
        for name, of, url, model in (
            ("chat", "openai", good.url, "gpt-4o"),
            ("broken", "broken", broken.url, "gpt-4o"),
            ("other", "anthropic", good.url, "gpt-4o-mini"),
        ):
            definition = gateway.model(of, "openai", f"{url}/v1", model)
            gateway.endpoint(name, definition, usage_tracking=True)
            if name == "chat":
                gateway.endpoint("judge", definition)
        files = {
            name: folder / f"{name}.json" for name in ("calls", "logged", "traced", "everything")
        }
        clients.run_script(
            SCRIPTS / "usage_gateway_script.py",
            clients.MODELS,
            folder,
            *(server.url, str(files["calls"]), PASSWORD, *USERS),
        )
        clients.run_script(
            SCRIPTS / "usage_agents_script.py",
            clients.AGENTS,
            folder,
            *(server.url, f"{good.url}/v1", str(files["traced"]), USERS[0], PASSWORD),
        )
        for script, login, arguments in (
            ("usage_runs_script.py", (USERS[0], PASSWORD), [files["logged"]]),
            ("usage_judge_script.py", ADMIN, [files["everything"], files["traced"]]),
        ):
            command = [str(SCRIPTS / script), server.url, *map(str, arguments)]
            variables = environment(
                MLFLOW_TRACKING_USERNAME=login[0],
                MLFLOW_TRACKING_PASSWORD=login[1],
                MLFLOW_ENABLE_ASYNC_TRACE_LOGGING="false",
            )
            ended = warm_clients.run(sys.executable, "mlflow", command, folder, variables)
            assert ended.returncode == 0, ended.stderr
        read = {name: json.loads(file.read_text()) for name, file in files.items()}
        tables = folder / "data/system-tables/files/system/mlflow"
        yield World(server.url, Records(**read.pop("logged"), **read), tables)


def _sorted(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=lambda row: [str(value) for value in row])


@pytest.mark.parametrize(
    "question",
    [
        *QUESTIONS,
        *published_trace_questions.QUESTIONS,
        *published_serving_questions.QUESTIONS,
        *published_form_questions.QUESTIONS,
    ],
    ids=lambda question: question.answer.__name__.strip("_<>"),
)
def test_the_answer_is_that_of_the_clients(world: World, question: Question) -> None:
    expected = _sorted(question.answer(world.records))
    rows = _sorted(world.ask(question.sql))
    assert [[_plain(value) for value in row] for row in rows] == [
        [pytest.approx(value, abs=1e-3) if isinstance(value, float) else value for value in row]
        for row in expected
    ]


def _plain(value: Any) -> Any:
    """Decimals are texts in answers."""
    if isinstance(value, str) and value.replace(".", "", 1).isdigit() and "." in value:
        return float(value)
    return value


def test_statements_of_databricks_pages_run_as_they_stand(world: World) -> None:
    calls, run, tags = (world.ask(sql) for sql in UNCHANGED.values())
    assert len(calls) == len(world.records.calls)
    tagged = world.records.runs[4]
    assert len(run) == 1
    assert tagged["id"] in run[0]
    assert {tuple(pair) for pair in tags} >= set(tagged["tags"].items())


def test_the_traces_are_those_of_real_clients(world: World) -> None:
    """Each client has left traces, so that the questions above are about all of them."""
    by_id = {trace["id"]: trace for trace in world.records.everything}
    counts = {client: len(ids) for client, ids in world.records.traced.items()}
    assert counts == {"openai": 4, "langchain": 6, "opentelemetry": 3}
    assert by_id.keys() >= {id for ids in world.records.traced.values() for id in ids}
    assert sum("mlflow.gateway.endpointId" in str(t["metadata"]) for t in by_id.values()) == len(
        world.records.calls
    )
    judged = [t for t in by_id.values() if any(a["name"] == "fine" for a in t["assessments"])]
    assert len(judged) == counts["openai"] + counts["langchain"]


def test_duckdb_and_polars_read_the_delta_tables_of_traces(world: World) -> None:
    records = world.records
    duckdb = trace_examples.by_duckdb(world.tables)
    assert _sorted(duckdb["tokens by model"]) == _sorted(trace_answers.models(records))
    assert duckdb["failing tools"] == sorted(row[:3] for row in trace_answers.tools(records))
    given = sum(len(trace["assessments"]) for trace in records.everything)
    assert sum(row[2] for row in duckdb["quality"]) == given
    polars = trace_examples.by_polars(world.tables)
    assert _sorted(polars["calls by model"]) == _sorted(
        [row[:2] for row in trace_answers.models(records)]
    )
    assert polars["traces by state"] == sorted(row[:2] for row in trace_answers.states(records))
    assert [row[:3] for row in polars["quality"]] == [row[:3] for row in duckdb["quality"]]


def test_old_readers_read_the_files_of_traces(world: World) -> None:
    everything = world.records.everything
    counts = {
        "traces": len(everything),
        "assessments": sum(len(trace["assessments"]) for trace in everything),
        "spans": sum(len(trace["spans"]) for trace in everything),
    }
    for tables in trace_examples.by_old_readers(world.tables).values():
        for name, count in counts.items():
            rows = tables[name]["rows"]
            assert len(rows) == count, name
            for trace in everything:
                assert trace["id"] in str(rows) or not trace[name.replace("traces", "id")]


def test_the_notebook_asks_and_draws(world: World, tmp_path: Path) -> None:
    shown = trace_examples.run_notebook(world.url, tmp_path)
    by_model = [[model, calls, tokens or 0] for model, calls, _, tokens in shown["by_model"]]
    assert _sorted(by_model) == _sorted(trace_answers.calls_by_model(world.records))
    assert sum(row[1] for row in shown["errors"]) == len(world.records.everything)
    assert {row[1] for row in shown["quality"]} == {"fine", "correct", "score"}
    assert len(shown["drawn"]) == 3
    assert all(count for axes in shown["drawn"] for count in axes)


def test_the_panel_for_grafana_gets_its_columns(world: World) -> None:
    until = int(time.time() * 1000) + 60_000
    path, headers, body = trace_examples.panel_request(until - 86_400_000, until)
    headers["Authorization"] = "Basic " + base64.b64encode(":".join(ADMIN).encode()).decode()
    request = urllib.request.Request(world.url + path, body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        lines = list(csv.DictReader(response.read().decode().splitlines()))
    assert lines
    assert list(lines[0]) == trace_examples.panel_columns()
    failed = sum(trace["state"] == "ERROR" for trace in world.records.everything)
    shares = [float(line["share"]) for line in lines]
    assert any(shares)
    if len(lines) == 1:
        assert shares == [pytest.approx(failed / len(world.records.everything))]


@pytest.mark.parametrize(
    "table",
    [
        *("system.ai_gateway.usage", "system.serving.endpoint_usage"),
        *("system.serving.served_entities", "`SYSTEM`.Serving.SERVED_ENTITIES"),
        *("a.b.c_trace_unified", "a.b.c_otel_spans", "mlflow_experiment_trace_metadata"),
    ],
)
def test_a_user_without_a_grant_reads_no_calls(world: World, table: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        world.ask(f"SELECT count(*) FROM {table}", (USERS[1], PASSWORD))
    refused.value.close()
    assert refused.value.code == 403
