"""OpenAI's and Anthropic's own clients at the gateway of the local runner, and a search for the
providers' keys in all that is left of their calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doubles.providers import anthropic, failing, openai, serving
from tests.e2e import clients
from tests.e2e.gateway_configuration import KEYS, Configuration
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SCRIPT = Path(__file__).with_name("gateway_script.py")


def test_clients_of_providers(tmp_path: Path) -> None:
    server = start_product(
        tmp_path,
        *("--auth", "--data", str(tmp_path / "data")),
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        MLFLOW_AUTH_ADMIN_USERNAME=ADMIN[0],
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    with (
        stopped(server),
        serving(openai) as good,
        serving(anthropic) as claude,
        serving(failing(500)) as broken,
    ):
        made = Configuration(server.url)
        chat = made.model("openai", "openai", f"{good.url}/v1", "gpt-4o")
        fails = made.model("broken", "openai", broken.url, "gpt-4o")
        made.endpoint("chat", chat)
        made.endpoint("claude", made.model("anthropic", "anthropic", f"{claude.url}/v1", "claude"))
        made.endpoint("broken", fails)
        made.endpoint("falling", fails, chat)
        made.make(
            "budgets/create",
            budget_unit="USD",
            budget_amount=0.00001,
            duration={"unit": "MONTHS", "value": 1},
            target_scope="ENDPOINT",
            budget_action="REJECT",
            target_value=made.endpoint("poor", chat),
        )
        clients.run_script(SCRIPT, clients.MODELS, tmp_path, server.url, *ADMIN)
        assert {request.headers["authorization"] for request in good.asked} == {
            f"Bearer {KEYS['openai']}"
        }
        assert {request.headers["x-api-key"] for request in claude.asked} == {KEYS["anthropic"]}
        assert not any(ADMIN[1] in str(request) for request in [*good.asked, *claude.asked])
    left = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(left) > 2
    for key in KEYS.values():
        assert not any(key.encode() in content for content in left)
        assert not any(key in text for text in made.said)
