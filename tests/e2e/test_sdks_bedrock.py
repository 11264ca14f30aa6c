"""boto3 and Anthropic's SDKs return the same from a model at Amazon Bedrock behind the gateway as
from Bedrock and from Anthropic themselves."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from tests.doubles import bedrock_models, detailed_anthropic
from tests.doubles.providers import Provider, serving
from tests.e2e import clients
from tests.e2e.gateway_configuration import Configuration
from tests.e2e.sdk_outcomes import SCRIPTS, difference, lasting
from tests.engines import ROOT
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

CLAUDE, DIRECT, NATIVE, PROXY = "claude-opus-4-8", "direct", "native", "proxy"
KEY = "bedrock-api-key-0123456789abcdefghij"
MODEL = "anthropic.claude-opus-4-5-20251101-v1:0"


class Gateway(NamedTuple):
    root: str
    bedrock: Provider
    anthropic: Provider
    key: str
    """An API key of the server."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("bedrock")
    with serving(bedrock_models.answer) as bedrock, serving(detailed_anthropic.answer) as anthropic:
        server = start_product(
            folder,
            *("--auth", "--data", str(folder / "data")),
            AWS_ENDPOINT_URL_BEDROCK_RUNTIME=bedrock.url,
            MLFLOW_AUTH_ADMIN_USERNAME=ADMIN[0],
            MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
        )
        with stopped(server):
            made = Configuration(server.url)
            secret = made.make(
                "secrets/create",
                secret_name="bedrock",
                secret_value={"api_key": KEY},
                provider="bedrock",
                auth_config={"aws_region_name": "eu-west-1"},
            )
            model = made.make(
                "model-definitions/create",
                name="claude",
                secret_id=secret["secret_id"],
                provider="bedrock",
                model_name=MODEL,
            )
            made.endpoint(CLAUDE, model["model_definition_id"])
            shown = requests.post(
                f"{server.url}/api/3.0/mlflow-serverless/keys",
                json={"name": "boto3"},
                auth=ADMIN,
                timeout=30,
            ).json()
            yield Gateway(f"{server.url}/gateway", bedrock, anthropic, shown["token"])


def told(script: str, folder: Path, targets: list[dict[str, Any]], *more: str, **env: str) -> Any:
    done = clients.ran(
        SCRIPTS / f"{script}_calls.py",
        clients.SDKS,
        folder,
        *(json.dumps(targets), *more),
        PYTHONPATH=str(ROOT),
        **env,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def target(name: str, url: str, headers: dict[str, str]) -> dict[str, Any]:
    unused = dict.fromkeys(("openai", "gemini"), "")
    return {**unused, "name": name, "anthropic": url, "headers": headers, "is_everything": True}


def test_clients_of_bedrock_see_no_difference(gateway: Gateway, tmp_path: Path) -> None:
    """Through the proxy, with an API key of the server in place of a login at Bedrock."""
    gateway.bedrock.asked.clear()
    answers = told(
        "bedrock",
        tmp_path,
        [
            target(DIRECT, gateway.bedrock.url, {}),
            target(PROXY, f"{gateway.root}/proxy/{CLAUDE}", {}),
        ],
        *(MODEL, gateway.key),
    )
    direct = answers[DIRECT]
    assert len(direct) > 25
    for name, outcome in direct.items():
        assert ("error" in outcome) == ("fails with" in name), (name, outcome)
    for name, outcome in answers[PROXY].items():
        if name.startswith("claude fails"):
            # This client shows the whole body, in which the gateway has MLflow's fields, too.
            direct[name]["text"] = outcome["text"]
        assert difference(lasting(direct[name]), lasting(outcome)) is None, name
    asked = gateway.bedrock.asked
    half = len(asked) // 2
    for sent, received in zip(asked[:half], asked[half:], strict=True):
        path = received.path.replace("%3A", ":")
        assert path == sent.path.replace("%3A", ":")
        assert json.loads(received.raw) == json.loads(sent.raw)
        assert received.headers["authorization"] == f"Bearer {KEY}"


def test_anthropics_sdk_sees_no_difference(gateway: Gateway, tmp_path: Path) -> None:
    """Errors have the same types and texts, but not the ids of requests."""
    login = base64.b64encode(":".join(ADMIN).encode()).decode()
    answers = told(
        "anthropic",
        tmp_path,
        [
            target(DIRECT, gateway.anthropic.url, {}),
            target(
                NATIVE, f"{gateway.root}/anthropic", {"X-MLflow-Authorization": f"Basic {login}"}
            ),
        ],
    )
    direct = answers[DIRECT]
    assert answers[NATIVE].keys() == direct.keys()
    for name, outcome in answers[NATIVE].items():
        expected = direct[name]
        if "error" in expected:
            assert (outcome["error"], outcome["status"]) == (
                expected["error"],
                expected["status"],
            ), (name, outcome)
        else:
            assert difference(lasting(expected), lasting(outcome)) is None, name
