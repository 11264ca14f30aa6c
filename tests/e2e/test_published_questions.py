"""Questions that Databricks publishes about runs, traces and calls of models, over what clients
have made: OpenAI's client at the gateway, and MLflow's client."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.providers import failing, openai, serving
from tests.e2e import clients
from tests.e2e.gateway_configuration import Configuration
from tests.e2e.published_answers import Records
from tests.e2e.published_questions import QUESTIONS, Question
from tests.servers import ADMIN, environment, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SCRIPTS = Path(__file__).parent
PASSWORD = "a-password-of-a-user"
USERS = ("ann", "ben")


class World:
    """A server with what the clients made, and what they recorded of it."""

    def __init__(self, url: str, records: Records) -> None:
        self.url, self.records = url, records
        self._ask("SELECT 1 FROM system.mlflow.runs_latest", {}, ADMIN, fresh=True)

    def ask(self, sql: str, login: tuple[str, str] = ADMIN) -> list[list[Any]]:
        given = {
            "tagged_run": f" {self.records.runs[4]['id']} ",
            "measured_run": self.records.runs[3]["id"],
        }
        used = {name: value for name, value in given.items() if f":{name}" in sql}
        rows: list[list[Any]] = self._ask(sql, used, login)["rows"]
        return rows

    def _ask(self, sql: str, given: Any, login: tuple[str, str], *, fresh: bool = False) -> Any:
        body = {"sql": sql, "parameters": given, "fresh": fresh}
        return post(f"{self.url}/api/3.0/mlflow-serverless/sql", body, login)


def post(url: str, body: Any, login: tuple[str, str]) -> Any:
    text = base64.b64encode(":".join(login).encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {text}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("published")
    server = start_product(
        folder,
        "--auth",
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        MLFLOW_AUTH_ADMIN_USERNAME=ADMIN[0],
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
        DEFAULT_PERMISSION="MANAGE",
    )
    with stopped(server), serving(openai) as good, serving(failing(500)) as broken:
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
        seen, logged = folder / "calls.json", folder / "logged.json"
        clients.run_script(
            SCRIPTS / "usage_gateway_script.py",
            clients.MODELS,
            folder,
            *(server.url, str(seen), PASSWORD, *USERS),
        )
        subprocess.run(
            [sys.executable, str(SCRIPTS / "usage_runs_script.py"), server.url, str(logged)],
            check=True,
            cwd=folder,
            timeout=240,
            env=environment(
                MLFLOW_TRACKING_USERNAME=USERS[0],
                MLFLOW_TRACKING_PASSWORD=PASSWORD,
                MLFLOW_ENABLE_ASYNC_TRACE_LOGGING="false",
            ),
        )
        yield World(
            server.url,
            Records(calls=json.loads(seen.read_text()), **json.loads(logged.read_text())),
        )


def _sorted(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=lambda row: [str(value) for value in row])


@pytest.mark.parametrize(
    "question", QUESTIONS, ids=lambda question: question.answer.__name__.strip("_<>")
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


@pytest.mark.parametrize("table", ["system.ai_gateway.usage", "system.serving.endpoint_usage"])
def test_a_user_without_a_grant_reads_no_calls(world: World, table: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        world.ask(f"SELECT count(*) FROM {table}", (USERS[1], PASSWORD))
    refused.value.close()
    assert refused.value.code == 403
