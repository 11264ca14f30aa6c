"""Clients whose only login is an API key: curl, OpenAI's SDK, Kubeflow's ``model-registry``, and
MLflow's from the oldest to the newest."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from tests.doubles.providers import openai, serving
from tests.e2e import clients
from tests.servers import ADMIN, environment, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

ANN = ("ann", "password-of-ann")
SCRIPT = Path(__file__).with_name("key_script.py")
GATEWAY_SCRIPT = Path(__file__).with_name("key_gateway_script.py")
KEYS = "/api/3.0/mlflow-serverless/keys"
V2 = "/api/2.0/mlflow"


class Office(NamedTuple):
    url: str
    log: Path

    def send(self, login: tuple[str, str], method: str, path: str, **fields: Any) -> Any:
        answer = requests.request(
            method, self.url + path, auth=login, json=fields or None, timeout=60
        )
        assert answer.ok, answer.text
        return answer.json()

    def key(self, **fields: Any) -> dict[str, Any]:
        """A new key of ann, with its token."""
        made: dict[str, Any] = self.send(ANN, "POST", KEYS, name="a client", **fields)
        return {**made["key"], "token": made["token"]}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("keys")
    started = start_product(
        folder,
        "--auth",
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        POWERTOOLS_LOG_LEVEL="DEBUG",
    )
    with stopped(started) as server:
        made = Office(server.url, server.log)
        made.send(ADMIN, "POST", f"{V2}/users/create", username=ANN[0], password=ANN[1])
        yield made


@pytest.fixture(scope="module")
def key(office: Office) -> str:
    return str(office.key()["token"])


@pytest.mark.parametrize("version", [*clients.PINS, clients.FIRST, "3.7.0", clients.CURRENT])
def test_mlflow(office: Office, key: str, version: str, tmp_path: Path) -> None:
    clients.run_script(SCRIPT, version, tmp_path, office.url, key, ANN[0])


@pytest.mark.parametrize("version", [clients.KUBEFLOW, clients.KUBEFLOW_OLD])
def test_model_registry(office: Office, key: str, version: str, tmp_path: Path) -> None:
    name = f"of {version}"
    login = (ANN[0], key)
    office.send(login, "POST", f"{V2}/registered-models/create", name=name)
    tag = {"name": name, "key": "team", "value": "retention"}
    office.send(login, "POST", f"{V2}/registered-models/set-tag", **tag)
    version_of = {"name": name, "source": "s3://elsewhere/model"}
    office.send(login, "POST", f"{V2}/model-versions/create", **version_of)
    clients.run_script(clients.KUBEFLOW_SCRIPT, version, tmp_path, office.url, name, key)


def test_openai(office: Office, key: str, tmp_path: Path) -> None:
    gateway = "/api/3.0/mlflow/gateway"
    with serving(openai) as provider:
        secret = office.send(
            ADMIN,
            "POST",
            f"{gateway}/secrets/create",
            secret_name="openai",
            secret_value={"api_key": "sk-of-the-provider-0123456789"},
            provider="openai",
            auth_config={"api_base": f"{provider.url}/v1"},
        )["secret"]
        model = office.send(
            ADMIN,
            "POST",
            f"{gateway}/model-definitions/create",
            name="openai",
            secret_id=secret["secret_id"],
            provider="openai",
            model_name="gpt-4o",
        )["model_definition"]
        primary = {"linkage_type": "PRIMARY", "weight": 1}
        endpoint = office.send(
            ADMIN,
            "POST",
            f"{gateway}/endpoints/create",
            name="chat",
            model_configs=[{"model_definition_id": model["model_definition_id"], **primary}],
            usage_tracking=False,
        )["endpoint"]
        office.send(
            ADMIN,
            "POST",
            "/api/3.0/mlflow/users/permissions/grant",
            username=ANN[0],
            resource_type="gateway_endpoint",
            resource_id=endpoint["endpoint_id"],
            permission="USE",
        )
        limited = office.key(scopes=["gateway:chat"])["token"]
        for token in (key, limited):
            clients.run_script(GATEWAY_SCRIPT, clients.MODELS, tmp_path, office.url, token)
        sent = {request.headers["authorization"] for request in provider.asked}
        assert sent == {"Bearer sk-of-the-provider-0123456789"}, "no key of ours goes to a provider"
    answer = requests.get(
        f"{office.url}{V2}/experiments/get?experiment_id=0",
        headers={"Authorization": f"Bearer {limited}"},
        timeout=60,
    )
    assert answer.status_code == 403, "a key for an endpoint opens nothing else"


def test_curl(office: Office, tmp_path: Path) -> None:
    """As a token, as a password, from a file that only its owner reads; and revoked."""
    program = shutil.which("curl")
    assert program, "curl is installed"
    made = office.key(scopes=["read"])
    settings = tmp_path / "curlrc"
    settings.write_text(f'header = "Authorization: Bearer {made["token"]}"\n')

    def curl(*arguments: str) -> tuple[int, Any]:
        command = [program, "--silent", "--show-error", "--write-out", "\n%{http_code}"]
        done = subprocess.run(
            [*command, *arguments], check=True, capture_output=True, text=True, env=environment()
        )
        text, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(text) if text.startswith("{") else text

    current = f"{office.url}{V2}/users/current"
    logins = (
        ("--header", f"Authorization: Bearer {made['token']}"),
        ("--user", f"{ANN[0]}:{made['token']}"),
        ("--config", str(settings)),
    )
    for login in logins:
        status, body = curl(*login, current)
        assert (status, body["user"]["username"]) == (200, ANN[0])
        create = ("--json", '{"name": "beyond the scope"}', f"{office.url}{V2}/experiments/create")
        assert curl(*login, *create)[0] == 403
    assert curl("--user", f"bob:{made['token']}", current)[0] == 401
    assert curl(f"{current}?api_key={made['token']}")[0] == 401
    office.send(ANN, "DELETE", KEYS, key_id=made["key_id"])
    for login in logins:
        assert curl(*login, current)[0] == 401


def test_log_holds_no_key(office: Office, key: str) -> None:
    text = office.log.read_text(errors="replace")
    assert key not in text
    assert key.split("_", 2)[2] not in text
