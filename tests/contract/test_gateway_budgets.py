"""Budgets of the gateway: what calls cost is counted wherever it belongs, and a budget that rejects
ends them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import gateway.app
import indexer.app
from mlcore import ids, queues
from mlcore.entities.gateway import BudgetPolicy
from mlcore.entities.webhooks import EventName, Webhook
from mlcore.errors import GatewayCallFailed
from mlcore.gateway import budgets, guarded_calls
from mlcore.repos import webhooks
from mlcore.repos.gateway import budgets as policies
from mlcore.repos.gateway import spending
from mlcore.webhooks import delivery_message
from mlcore.webhooks.delivery_message import DeliveryMessage
from tests.contract.api import Api, called
from tests.contract.conftest import Store
from tests.contract.gateway_requests import events_of, post
from tests.contract.gateway_world import PRICE, allow_local, budget, endpoint, model
from tests.contract.sealing import seal_here
from tests.contract.streams import following
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles
from tests.doubles.providers import openai, serving

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
DAY_MS = 24 * 3600 * 1000


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> int:
    """The moment of all that a test does, so that no window ends meanwhile."""
    moment = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: moment)
    monkeypatch.setattr(budgets, "now_ms", lambda: moment)
    return moment


@pytest.fixture
def endpoint_id(store: Store) -> Iterator[str]:
    with serving(openai) as provider:
        yield endpoint("chat", [model("m", "openai", provider.url, model_name="gpt-4o")])


def spent() -> dict[str, float]:
    """US dollars by the id of a budget, as the API tells them."""
    path = "/api/3.0/mlflow/gateway/budgets/windows"
    answer = called(gateway.app.handler, "GET", path).body
    return {window["budget_policy_id"]: window["current_spend"] for window in answer["windows"]}


def test_a_budget_ends_calls(endpoint_id: str, now: int, monkeypatch: pytest.MonkeyPatch) -> None:
    budget("ENDPOINT", PRICE * 1.5, target=endpoint_id)
    for _ in range(2):
        assert post("chat/mlflow/invocations", CHAT)[0] == 200
    status, _, text = post("chat/mlflow/invocations", CHAT)
    assert status == 429
    assert json.loads(text)["detail"].startswith(
        "Budget limit exceeded. Limit: $0.00 USD per 1 day. Budget resets at "
    )
    assert post("openai/v1/chat/completions", {"model": "chat", **CHAT})[0] == 429
    monkeypatch.setattr(budgets, "now_ms", lambda: now + DAY_MS)
    assert post("chat/mlflow/invocations", CHAT)[0] == 200


def test_every_kind_of_call_counts_where_it_belongs(endpoint_id: str) -> None:
    everywhere, here = budget("GLOBAL", 9), budget("WORKSPACE", 9, "ALERT")
    of_endpoint = budget("ENDPOINT", 9, target=endpoint_id)
    told_only = budget("GLOBAL", 1e-9, "ALERT")
    streamed = {**CHAT, "model": "chat", "stream": True}
    assert post("chat/mlflow/invocations", CHAT)[0] == 200
    assert events_of(post("mlflow/v1/chat/completions", streamed)[2])
    assert post("openai/v1/chat/completions", {**CHAT, "model": "chat"})[0] == 200
    assert events_of(post("openai/v1/chat/completions", streamed)[2])
    expected = pytest.approx(4 * PRICE)
    counted = dict.fromkeys((everywhere, here, of_endpoint, told_only), expected)
    assert spent() == counted


def test_a_window_that_ends_meanwhile(
    endpoint_id: str, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is told is all of one window: its end, and what was spent in it."""
    budget_id = budget("ENDPOINT", PRICE / 2, target=endpoint_id)
    assert post("chat/mlflow/invocations", CHAT)[0] == 200
    (policy,) = policies.find_all()
    resets = datetime.fromtimestamp((now // DAY_MS + 1) * DAY_MS / 1000, tz=UTC)
    moments = itertools.count(now, DAY_MS)
    monkeypatch.setattr(budgets, "now_ms", lambda: next(moments))
    with pytest.raises(GatewayCallFailed, match=f"resets at {resets:%Y-%m-%dT%H:%M:%SZ}"):
        budgets.check([policy])
    assert spent() == {budget_id: pytest.approx(PRICE)}


def test_a_user_pays_alone(endpoint_id: str, now: int) -> None:
    policy = BudgetPolicy(
        budget_policy_id="bp-user",
        workspace="default",
        budget_unit="USD",
        budget_amount=1.0,
        duration_unit="MONTHS",
        duration_value=1,
        target_scope="USER",
        budget_action="REJECT",
        target_value="ann",
        created_by=None,
        last_updated_by=None,
        created_at=now,
        last_updated_at=now,
    )
    policies.write(policy)
    budgets.add_cost([policy], 0.75, "default")
    guarded_calls.complete_chat("default", "chat", CHAT, "ann")
    budgets.add_cost([policy], 0.5, "default")
    assert guarded_calls.complete_chat("default", "chat", CHAT, "bob")["provider"] == "openai"
    assert budgets.read_spending([policy], now) == [pytest.approx(1.25 + PRICE)]
    with pytest.raises(GatewayCallFailed, match=r"^Budget limit exceeded\. Limit: \$1\.00 USD"):
        guarded_calls.complete_chat("default", "chat", CHAT, "ann")


def test_webhooks_are_told_once_in_a_window(
    store: Store, endpoint_id: str, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a budget that alerts, not of one that rejects; however often the stream is read."""
    sent: list[DeliveryMessage] = []
    monkeypatch.setenv("WEBHOOK_QUEUE_URL", "queue")
    monkeypatch.setattr(
        queues,
        "send",
        lambda _, messages: sent.extend(delivery_message.parse(m.body) for m in messages),
    )
    event = EventName("budget_policy", "exceeded")
    webhooks.put(
        Webhook("w", "default", "n", "https://x", (event,), "ACTIVE", "", "", now - 1, now - 1)
    )
    alerting = budget("ENDPOINT", PRICE * 1.5, "ALERT", endpoint_id)
    budget("GLOBAL", PRICE * 3.5)
    with following(store) as stream:
        for _ in range(4):
            assert post("chat/mlflow/invocations", CHAT)[0] == 200
        assert post("chat/mlflow/invocations", CHAT)[0] == 429
        records = stream.fresh()
    for _ in range(2):
        assert indexer.app.index(records) is None
    assert len({delivery.delivery_id for delivery in sent}) == 1
    assert (sent[0].event, sent[0].webhook_id) == (event, "w")
    assert sent[0].data == {
        "budget_policy_id": alerting,
        "budget_unit": "USD",
        "budget_amount": PRICE * 1.5,
        "current_spend": pytest.approx(2 * PRICE),
        "duration_unit": "DAYS",
        "duration_value": 1,
        "target_scope": "ENDPOINT",
        "workspace": "default",
        "target_value": endpoint_id,
        "window_start": now // DAY_MS * DAY_MS,
    }


def test_nothing_small_is_lost(store: Store) -> None:
    window = ("bp-1", 0)
    for _ in range(3):
        spending.add(window, 1, 1e-9)
    assert spending.read([window, ("bp-1", 5)]) == [3e-9, 0.0]


@pytest.mark.parametrize("before", [0, 1])
def test_a_lost_answer_counts_once(broken: tuple[Api, Doubles], before: int) -> None:
    _, doubles = broken
    window = ("bp-1", 0)
    for _ in range(before):
        spending.add(window, 1, 1e-9)
    doubles.faulty.arm(Fault.ANSWER_LOST, 1)
    added = spending.add(window, 1, 1e-9)
    assert doubles.faulty.fired
    doubles.faulty.heal()
    total = (before + 1) * 1e-9
    assert (added.dollars, spending.read([window])) == (total, [total])


def test_a_refusal_says_when_the_window_ends(endpoint_id: str, now: int) -> None:
    budget("ENDPOINT", PRICE / 2, target=endpoint_id)
    assert post("chat/mlflow/invocations", CHAT)[0] == 200
    with pytest.raises(GatewayCallFailed) as refused:
        guarded_calls.complete_chat("default", "chat", CHAT)
    assert refused.value.retry_after == str(-((now % DAY_MS - DAY_MS) // 1000))
