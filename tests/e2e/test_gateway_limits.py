"""Limits of the gateway on a laptop's server: of the calls of many client processes as many reach
the provider as the limit says, for each of what can be limited."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import requests

from tests.doubles.providers import Busy, Provider, serving
from tests.e2e.gateway_configuration import Configuration
from tests.servers import ADMIN, Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SCRIPT: Final = Path(__file__).with_name("flood_script.py")
FEW, MANY = 4, 16
"""Client processes; many in `make test-long`."""
LIMIT: Final = 200
TOKENS: Final = 18
"""Of one chat with the double."""
ALLOWED: Final = 0.02
MINUTE: Final = 60
LONGEST_FLOOD: Final = 40
"""Seconds that must be left of a minute."""
PASSWORD: Final = "password-of-a-user"
Json = dict[str, Any]


class Limited(NamedTuple):
    """The server, with a limit for each endpoint, two users, an API key, and a workspace."""

    server: Server
    provider: Provider
    logins: Mapping[str, str]

    def flood(self, login: str, endpoint: str, processes: int, calls: int) -> Counter[int]:
        """The statuses of all calls of the processes."""
        command = [sys.executable, str(SCRIPT), self.server.url, endpoint, self.logins[login]]
        with ExitStack() as stack:
            clients = [
                stack.enter_context(
                    subprocess.Popen([*command, str(calls)], stdout=subprocess.PIPE, text=True)
                )
                for _ in range(processes)
            ]
            printed = [client.communicate()[0] for client in clients]
        return Counter(status for text in printed for status in json.loads(text))


def _basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


BUSY = Busy(0.02)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    made = start_product(
        tmp_path_factory.mktemp("limited"),
        *("--auth", "--parameter", "DefaultPermission=MANAGE"),
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
    )
    with serving(BUSY) as provider, stopped(made) as server:
        gateway = Configuration(server.url)
        model = gateway.model("openai", "openai", f"{provider.url}/v1", "gpt-5")
        for name in ("minutes", "days", "tokens", "places", "free"):
            gateway.endpoint(name, model)
        api = f"{server.url}/api"
        logins = {}
        for name in ("ann", "bob", "eve"):
            user = {"username": name, "password": PASSWORD}
            requests.post(f"{api}/2.0/mlflow/users/create", json=user, auth=ADMIN, timeout=30)
            logins[name] = _basic(name, PASSWORD)
        shown = requests.post(
            f"{api}/3.0/mlflow-serverless/keys",
            json={"name": "key"},
            auth=("bob", PASSWORD),
            timeout=30,
        ).json()
        logins["key"] = f"Bearer {shown['token']}"
        limits = {
            "endpoints": {
                "minutes": {"requests_per_minute": LIMIT},
                "days": {"requests_per_day": LIMIT},
                "tokens": {"tokens_per_day": LIMIT * TOKENS},
                "places": {"concurrent_calls": 3},
            },
            "users": {"ann": {"requests_per_day": LIMIT}},
            "keys": {shown["key"]["key_id"]: {"tokens_per_minute": LIMIT * TOKENS}},
            "workspaces": {"default": {"requests_per_day": 100_000, "tokens_per_day": 10**9}},
        }
        answer = requests.put(
            f"{api}/3.0/mlflow-serverless/config/gateway_limits",
            json={"value": limits},
            auth=ADMIN,
            timeout=30,
        )
        assert answer.status_code == 200, answer.text
        yield Limited(server, provider, logins)


@pytest.mark.parametrize("endpoint", ["days", "tokens"])
def test_a_limit_of_an_endpoint_holds(limited: Limited, endpoint: str) -> None:
    _holds(limited, FEW, "eve", endpoint)


def test_calls_at_the_same_time(limited: Limited) -> None:
    _few_at_the_same_time(limited, FEW)


@pytest.mark.parametrize(
    ("login", "endpoint"), [("ann", "free"), ("key", "free"), ("eve", "minutes")]
)
def test_many_processes(limited: Limited, login: str, endpoint: str) -> None:
    """A user, an API key, and a minute of an endpoint."""
    if (left := MINUTE - time.time() % MINUTE) < LONGEST_FLOOD:
        time.sleep(left)
    began = time.time()
    _holds(limited, MANY, login, endpoint)
    assert began // MINUTE == time.time() // MINUTE, "the minute has ended"


def test_many_processes_at_the_same_time(limited: Limited) -> None:
    _few_at_the_same_time(limited, MANY)


def _holds(limited: Limited, processes: int, login: str, endpoint: str) -> None:
    before = len(limited.provider.asked)
    statuses = limited.flood(login, endpoint, processes, 10 * LIMIT)
    assert set(statuses) == {200, 429}
    asked = len(limited.provider.asked) - before
    assert abs(asked - LIMIT) <= ALLOWED * LIMIT, statuses
    assert statuses[200] == asked


def _few_at_the_same_time(limited: Limited, processes: int) -> None:
    BUSY.most = 0
    statuses = limited.flood("eve", "places", processes, 40)
    assert BUSY.most <= 3
    assert set(statuses) == {200, 429}
    assert statuses[200] > 3
