"""Limits of the gateway over several processes that share one table, as those of a function in AWS
do: what reaches the provider is within 2 % of the limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from mlcore.auth.permissions import GATEWAY_ENDPOINT, Grant
from mlcore.environment import AUTHENTICATION
from mlcore.ids import now_ms
from mlcore.repos.gateway.usage import DAY_MS, MINUTE_MS
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import grants, users
from tests.contract.conftest import EXAMPLES
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.doubles.fixtures import Doubles
from tests.doubles.providers import Busy, Provider, serving
from tests.engines import ROOT

PROCESSES: Final = 16 if EXAMPLES > 1 else 3
REQUESTS: Final = 2400 if EXAMPLES > 1 else 250
TOKENS: Final = 18
"""Of one chat with the double."""
ALLOWED: Final = 0.02
NAMES: Final = {"keys": "k1", "users": "ann", "endpoints": "chat", "workspaces": "default"}


@pytest.fixture
def busy() -> Busy:
    return Busy(0.005)


@pytest.fixture
def provider(
    broken: Any, busy: Busy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Provider]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv(AUTHENTICATION, "basic")
    with serving(busy) as running:
        made = endpoint("chat", [model("m", "openai", running.url, model_name="gpt-4o")])
        user = users.create("ann", "", is_admin=False)
        grants.put(user, "default", Grant(GATEWAY_ENDPOINT, made, "USE"))
        yield running


def flood(doubles: Doubles, folder: Path) -> Counter[int]:
    """The statuses of the calls that all processes make until each was refused."""
    moment = now_ms() // DAY_MS * DAY_MS + MINUTE_MS
    body = json.dumps({"model": "chat", "messages": [{"role": "user", "content": "hello"}]})
    caller = {"lambda": {"key_user": "ann", "key_id": "k1", "is_admin": False, "scopes": ""}}
    command = [
        *(sys.executable, "-m", "tests.contract.limited_calls", str(folder)),
        *(doubles.endpoint, doubles.table, str(moment), body, json.dumps(caller)),
    ]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}"},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(PROCESSES)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        printed = [process.communicate()[0] for process in processes]
    return Counter(status for text in printed for status in json.loads(text))


LIMITS: Final = (
    ("endpoints", "requests_per_minute"),
    ("workspaces", "tokens_per_day"),
    ("users", "requests_per_day"),
    ("keys", "tokens_per_minute"),
)


@pytest.mark.parametrize(("scope", "limit"), LIMITS if EXAMPLES > 1 else LIMITS[:2])
def test_a_limit_holds_within_two_percent(
    provider: Provider, doubles: Doubles, tmp_path: Path, scope: str, limit: str
) -> None:
    allowed = REQUESTS
    amount = allowed * TOKENS if limit.startswith("tokens") else allowed
    stored_settings.put("gateway_limits", {scope: {NAMES[scope]: {limit: amount}}})
    with doubles.counting.measure() as measured:
        statuses = flood(doubles, tmp_path)
    assert set(statuses) == {200, 429}
    assert abs(len(provider.asked) - allowed) <= ALLOWED * allowed, statuses
    assert statuses[200] == len(provider.asked)
    if limit == "requests_per_minute" and EXAMPLES > 1:
        most = 0.5
    else:  # small limits: no blocks, and calls hold their tokens
        most = 1.1 if limit.startswith("requests") else 2.1
    assert measured.write_units / allowed <= most


def test_a_limit_of_calls_at_the_same_time(
    provider: Provider, doubles: Doubles, tmp_path: Path, busy: Busy
) -> None:
    most = PROCESSES - 1
    stored_settings.put("gateway_limits", {"users": {"ann": {"concurrent_calls": most}}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOST_CALLS", "100")
        statuses = flood(doubles, tmp_path)
    assert set(statuses) <= {200, 429}
    assert busy.most <= most
    assert len(provider.asked) == statuses[200] > most
