"""A budget that is created or changed within its window counts the calls before it, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gateway.app
from gateway import budgets as budget_routes
from mlcore import ids
from mlcore.entities.gateway import Configuration
from mlcore.entities.traces import Trace
from mlcore.errors import TemporarilyUnavailable
from mlcore.gateway import budgets, earlier_spending, guarded_calls
from mlcore.observability import logger
from mlcore.repos.gateway import budgets as policies
from mlcore.repos.gateway import configuration
from mlcore.repos.traces import traces_by_time
from mlcore.repos.workspaces import workspaces
from tests.contract.api import called
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import PRICE, allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import export, span, start, tell
from tests.doubles.providers import openai, serving

Json = dict[str, Any]

CHAT: Json = {"messages": [{"role": "user", "content": "hello"}]}
AGE: Json = {"unit": "MONTHS", "value": 1200}
"""A window that no test sees the end of."""


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


@pytest.fixture
def endpoints(store: Store) -> Iterator[tuple[str, str]]:
    """The ids of the endpoints ``chat`` and ``other``, which track their usage."""
    with serving(openai) as provider:
        asked = [model("m", "openai", provider.url, model_name="gpt-4o")]
        yield (
            endpoint("chat", asked, usage_tracking=True),
            endpoint("other", asked, usage_tracking=True),
        )


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings so far."""
    warnings = list[str]()
    monkeypatch.setattr(logger, "warning", lambda text, **_: warnings.append(text))
    return warnings


def change(path: str, fields: Json) -> Json:
    answer = called(gateway.app.handler, "POST", f"/api/3.0/mlflow/gateway/budgets/{path}", fields)
    assert answer.status == 200, answer
    return dict(answer.body["budget_policy"])


def budget(scope: str, dollars: float = 100.0, **more: Any) -> str:
    fields = {"budget_unit": "USD", "budget_amount": dollars, "duration": AGE}
    made = change("create", {**fields, "target_scope": scope, "budget_action": "REJECT", **more})
    return str(made["budget_policy_id"])


def ask(name: str, times: int = 1) -> None:
    for _ in range(times):
        assert post(f"{name}/mlflow/invocations", CHAT)[0] == 200


def spent() -> dict[str, float]:
    answer = called(gateway.app.handler, "GET", "/api/3.0/mlflow/gateway/budgets/windows")
    return {
        window["budget_policy_id"]: window["current_spend"] for window in answer.body["windows"]
    }


def test_when_a_budget_was_created_makes_no_difference(endpoints: tuple[str, str]) -> None:
    chat, _ = endpoints
    of_all, of_chat = set[str](), set[str]()
    for _ in range(3):
        of_all |= {budget("GLOBAL"), budget("WORKSPACE")}
        of_chat.add(budget("ENDPOINT", target_value=chat))
        ask("chat", 2)
        ask("other")
    expected = {**dict.fromkeys(of_all, 9 * PRICE), **dict.fromkeys(of_chat, 6 * PRICE)}
    assert spent() == {name: pytest.approx(dollars) for name, dollars in expected.items()}


def test_a_repeated_change_counts_what_a_killed_one_did_not(
    endpoints: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, other = endpoints
    ask("chat", 3)
    policy_id = budget("ENDPOINT", target_value=other)
    fields = {"budget_policy_id": policy_id, "target_scope": "ENDPOINT", "target_value": chat}

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(earlier_spending, "fill", killed)
        with pytest.raises(KeyboardInterrupt):
            change("update", fields)
        ask("chat")
        with pytest.raises(KeyboardInterrupt):
            change("update", fields)
        change("update", {"budget_policy_id": policy_id, "budget_amount": 50.0})
    for _ in range(2):
        change("update", fields)
        assert spent() == {policy_id: pytest.approx(4 * PRICE)}
    later = ids.now_ms() + budget_routes.REPEATED_WITHIN_MS + 1
    monkeypatch.setattr(ids, "now_ms", lambda: later)
    monkeypatch.setattr(earlier_spending, "fill", killed)
    change("update", fields)


def test_a_budget_that_is_spent_already_refuses_calls(endpoints: tuple[str, str]) -> None:
    ask("chat")
    budget("ENDPOINT", PRICE / 2, target_value=endpoints[0])
    assert post("chat/mlflow/invocations", CHAT)[0] == 429
    ask("other")


def test_a_user_pays_for_the_own_calls_alone(endpoints: tuple[str, str]) -> None:
    for name in ("ann", "bob", "ann"):
        guarded_calls.complete_chat("default", "chat", CHAT, name)
    budget("GLOBAL")
    (policy,) = policies.find_all()
    for name, calls in (("ann", 2), ("bob", 1), ("eve", 0)):
        own = policy._replace(budget_policy_id=f"bp-{name}", target_scope="USER", target_value=name)
        earlier_spending.fill(own, policy.created_at)
        assert budgets.read_spending([own], policy.created_at) == [pytest.approx(calls * PRICE)]


def test_another_workspace_does_not_count(endpoints: tuple[str, str]) -> None:
    ask("chat")
    budget("GLOBAL")
    (policy,) = policies.find_all()
    elsewhere = policy._replace(
        budget_policy_id="bp-2", workspace="elsewhere", target_scope="WORKSPACE"
    )
    earlier_spending.fill(elsewhere, policy.created_at)
    assert budgets.read_spending([elsewhere], policy.created_at) == [0.0]


def test_traces_of_others_do_not_count(store: Store, endpoints: tuple[str, str]) -> None:
    """A trace that somebody logs elsewhere counts for nothing, nor does a cost that is none."""
    chat, _ = endpoints
    own = configuration.read("default").endpoints[chat].experiment_id or ""
    elsewhere = store.api.new_experiment("elsewhere")
    costs = ('{"total_cost": 7}', '{"total_cost": -7}', '{"total_cost": 1e999}', "[]", "{")
    for number, (experiment, endpoint_id, cost) in enumerate(
        [
            (elsewhere, chat, costs[0]),
            (own, "e-of-nobody", costs[0]),
            *((own, chat, cost) for cost in costs[1:]),
        ]
    ):
        metadata = {"mlflow.gateway.endpointId": endpoint_id, "mlflow.trace.cost": cost}
        times = {"request_time": "2026-11-29T10:00:00Z", "state": "OK"}
        report = start(experiment, f"tr-{number}", trace_metadata=metadata, **times)
        tell("POST", "3.0/traces", report)
    assert spent_of_new_budget() == 0.0


def report_on_trace(experiment: str, trace_id: str, **metadata: str) -> None:
    times = {"request_time": "2026-11-29T10:00:00Z", "state": "OK"}
    tell("POST", "3.0/traces", start(experiment, trace_id, trace_metadata=metadata, **times))


def test_a_trace_that_somebody_logs_as_the_gateway_does_not_count(
    endpoints: tuple[str, str],
) -> None:
    """Neither for the endpoint nor for the user that it names, whatever its metadata say."""
    chat, _ = endpoints
    own = configuration.read("default").endpoints[chat].experiment_id or ""
    guarded_calls.complete_chat("default", "chat", CHAT, "ann")
    report_on_trace(
        own,
        "tr-forged",
        **{
            "mlflow.gateway.endpointId": chat,
            "mlflow.gateway.requestType": "unified/chat",
            "mlflow.auth.username": "ann",
            "mlflow.trace.cost": '{"total_cost": 7}',
        },
    )
    assert spent_of_new_budget() == pytest.approx(PRICE)
    (policy,) = policies.find_all()
    of_ann = policy._replace(budget_policy_id="bp-ann", target_scope="USER", target_value="ann")
    earlier_spending.fill(of_ann, policy.created_at)
    assert budgets.read_spending([of_ann], policy.created_at) == [pytest.approx(PRICE)]


@pytest.mark.parametrize("cost", [1e300, -1e300, 40_000.0, earlier_spending.MAX_DOLLARS])
def test_a_cost_that_no_call_can_have(endpoints: tuple[str, str], cost: float) -> None:
    """Somebody sends a span to a trace of the gateway: the budget is created and counts at most
    what a call may cost."""
    chat, _ = endpoints
    ask("chat", 2)
    own = configuration.read("default").endpoints[chat].experiment_id or ""
    first = next(traces_by_time.newest_first([own], "default", traces_by_time.Window()))
    forged = json.dumps({"total_cost": cost})
    added = span(first.trace_id.removeprefix("tr-"), 99, mlflow__llm__cost=forged)
    assert export(own, [added]).status == 200
    dollars = spent_of_new_budget()
    assert dollars <= earlier_spending.MAX_DOLLARS + 2 * PRICE
    if cost < earlier_spending.MAX_DOLLARS:
        assert dollars >= PRICE * 0.999
    if cost > earlier_spending.MAX_DOLLARS or cost < 0:
        assert dollars == pytest.approx(PRICE)


def spent_of_new_budget() -> float:
    created = budget("GLOBAL")
    return spent()[created]


def test_a_change_counts_what_it_did_not_count_before(endpoints: tuple[str, str]) -> None:
    chat, other = endpoints
    changing = budget("ENDPOINT", target_value=chat)
    ask("chat")
    ask("other", 3)

    def changed(**fields: Any) -> float:
        change("update", {"budget_policy_id": changing, **fields})
        return spent()[changing] / PRICE

    assert changed(budget_amount=50.0) == pytest.approx(1)
    assert changed(target_value=other) == pytest.approx(3)
    assert changed(target_scope="GLOBAL") == pytest.approx(4)
    ask("chat")
    assert changed(duration={"unit": "MONTHS", "value": 600}) == pytest.approx(5)
    assert changed(duration=AGE) == pytest.approx(5)


def test_sent_twice_it_counts_once(endpoints: tuple[str, str]) -> None:
    ask("chat")
    filled = budget("GLOBAL")
    ask("chat")
    (policy,) = policies.find_all()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: earlier_spending.fill(policy, policy.created_at), range(4)))
    assert spent() == {filled: pytest.approx(2 * PRICE)}


def test_what_is_read_is_bounded(
    endpoints: tuple[str, str], monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    monkeypatch.setattr(earlier_spending, "MAX_TRACES", 2)
    ask("chat", 2)
    assert spent_of_new_budget() == pytest.approx(2 * PRICE)
    assert logged == []
    ask("chat")
    assert spent_of_new_budget() == pytest.approx(2 * PRICE)
    assert logged == ["a budget counts only a part of the calls before it"]


def test_time_is_looked_at_where_there_are_no_traces(
    endpoints: tuple[str, str], monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """No other workspaces are read when the time is over, and the log says so."""
    read = list[str]()

    def empty(name: str) -> Configuration:
        read.append(name)
        now[0] += 1.0
        return of_default._replace(endpoints={})

    of_default, now = configuration.read("default"), [0.0]
    monkeypatch.setattr(workspaces, "names", lambda: [f"w{number}" for number in range(500)])
    monkeypatch.setattr(configuration, "read", empty)
    monkeypatch.setattr("mlcore.gateway.earlier_spending.time.monotonic", lambda: now[0])
    budget("WORKSPACE")
    (policy,) = policies.find_all()
    logged.clear()
    read.clear()
    earlier_spending.fill(policy._replace(target_scope="GLOBAL"), policy.created_at)
    assert 0 < len(read) <= 20
    assert logged == ["a budget counts only a part of the calls before it"]


@pytest.mark.parametrize("error", [TemporarilyUnavailable("The table is slow."), OverflowError()])
def test_a_budget_is_created_even_if_nothing_can_be_read(
    endpoints: tuple[str, str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def slow(*_: Any, **__: Any) -> Iterator[Trace]:
        raise error

    ask("chat")
    monkeypatch.setattr(traces_by_time, "newest_first", slow)
    assert spent_of_new_budget() == 0.0
