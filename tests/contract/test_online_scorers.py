"""Scorers that judge new traces by themselves, on the real engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judge_runner.app
from judge_runner import online_scoring, trace_scoring
from mlcore import errors, ids
from mlcore.gateway import chats
from mlcore.repos.evaluation import online_scorers
from mlcore.repos.gateway import configuration
from tests.contract import gateway_world, trace_calls
from tests.contract.conftest import Store
from tests.contract.judges_world import Context, World, ask, assessments, judge
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import infos
from tests.doubles.providers import saying, serving

Json = dict[str, Any]
COMPLETE = judge_runner.app._gateway_completion
BOTH = "Is {{ outputs }} a fine answer to {{ inputs }}?"


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(store.api, monkeypatch)


def set_online(world: World, name: str, rate: float, filter_string: str = "") -> Json:
    body = {
        "experiment_id": world.experiment,
        "name": name,
        "sample_rate": rate,
        "filter_string": filter_string,
    }
    answer = ask("PUT", "mlflow/scorers/online-config", body)
    assert answer.status == 200, answer
    return dict(answer.body["config"])


def registered(
    world: World,
    data: Json,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str | None = None,
) -> str:
    """The scorer's id; the endpoint is made with the first."""
    seal_here(monkeypatch, tmp_path)
    if not configuration.read("default").endpoints:
        gateway_world.endpoint("e", [gateway_world.model("m", "openai")])
    body = {
        "experiment_id": world.experiment,
        "name": name or data["name"],
        "serialized_scorer": json.dumps(data),
    }
    answer = ask("POST", "mlflow/scorers/register", body)
    assert answer.status == 200, answer
    return str(answer.body["scorer_id"])


def test_new_traces_are_judged_once_by_those_that_judge_by_themselves(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sampled, filtered; sweeps side by side or cut short before they say how far they came."""
    monkeypatch.setenv(online_scoring.BUFFER_SECONDS, "0")
    now = ids.now_ms()
    monkeypatch.setattr(trace_calls, "START", (now + 30_000) * 1_000_000)
    scorer_id = registered(world, judge(BOTH, "all"), monkeypatch, tmp_path)
    registered(world, judge(BOTH, "some"), monkeypatch, tmp_path)
    registered(world, judge(BOTH, "off"), monkeypatch, tmp_path)
    registered(world, judge("Is {{ conversation }} polite?", "talk"), monkeypatch, tmp_path)
    config = set_online(world, "all", 1.0)
    assert set_online(world, "all", 1.0) == config, "sent twice"
    set_online(world, "some", 1.0, "tags.env = 'prod'")
    set_online(world, "off", 0.0)
    set_online(world, "talk", 1.0)
    listed = ask("GET", "mlflow/scorers/online-configs", scorer_ids=[scorer_id]).body["configs"]
    assert listed == [config]
    session = {"mlflow__trace__session": "s-1"}
    traces = [world.trace("q", "a"), world.trace("q", "a", "s-1", **session)]
    trace_calls.tell("PATCH", f"3.0/traces/{traces[0]}/tags", {"key": "env", "value": "prod"})
    monkeypatch.setattr(ids, "now_ms", lambda: now + 60_000)
    reach = online_scorers.set_progress

    def cut_short(*_: Any) -> None:
        raise errors.TemporarilyUnavailable("The table is away.")

    monkeypatch.setattr(online_scorers, "set_progress", cut_short)
    judge_runner.app.handler({"source": "schedule"}, Context())
    monkeypatch.setattr(online_scorers, "set_progress", reach)
    judge_runner.app.handler({"source": "schedule"}, Context())
    assert world.work() == []
    judge_runner.app.handler({"source": "schedule"}, Context())
    assert world.queue.waiting == []
    named = [
        sorted(assessment["assessment_name"] for assessment in assessments(trace))
        for trace in traces
    ]
    assert named == [["all", "some"], ["all", "talk"]]
    assert len(world.model.asked) == 4
    later = world.trace("q", "a")
    judge_runner.app.handler({"source": "schedule"}, Context())
    assert world.work() == []
    assert [assessment["assessment_name"] for assessment in assessments(later)] == ["all"]
    assert ask(
        "DELETE", "mlflow/scorers/delete", {"experiment_id": world.experiment, "name": "all"}
    )
    gone = ask("GET", "mlflow/scorers/online-configs", scorer_ids=[scorer_id]).body["configs"]
    assert gone == []


@pytest.mark.parametrize("text", [BOTH, "Is {{ conversation }} polite?"])
def test_jobs_of_a_repeated_sweep_that_run_at_once_ask_little_twice(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    """The second job does everything while the first one waits for its first answer."""
    monkeypatch.setenv(online_scoring.BUFFER_SECONDS, "0")
    monkeypatch.setattr(trace_scoring, "PARALLEL_CALLS", 1)
    now = ids.now_ms()
    monkeypatch.setattr(trace_calls, "START", (now + 30_000) * 1_000_000)
    registered(world, judge(text, "all"), monkeypatch, tmp_path)
    set_online(world, "all", 1.0)
    traces = [
        world.trace("q", "a", f"s-{number}", mlflow__trace__session=f"s-{number}")
        for number in range(3)
    ]
    monkeypatch.setattr(ids, "now_ms", lambda: now + 60_000)
    with monkeypatch.context() as patch:
        patch.setattr(online_scorers, "set_progress", lambda *_: None)
        judge_runner.app.handler({"source": "schedule"}, Context())
    first, world.queue.waiting = world.queue.waiting, []
    judge_runner.app.handler({"source": "schedule"}, Context())
    second, world.queue.waiting = world.queue.waiting, first

    def answer(_chat: Json) -> Json:
        if len(world.model.asked) == 1:
            world.queue.waiting = second
            assert world.work() == []
        return {"result": "yes", "rationale": ""}

    world.model.said = answer
    assert world.work() == []
    assert len(world.model.asked) == 1 + len(traces)
    for trace in traces:
        assert [each["assessment_name"] for each in assessments(trace)] == ["all"]


def test_the_calls_of_judges_are_not_judged(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A judge's endpoint, and the one that its guardrail asks, write their calls into the
    experiment that is judged."""
    monkeypatch.setenv(online_scoring.BUFFER_SECONDS, "0")
    monkeypatch.setattr(judge_runner.app, "_gateway_completion", COMPLETE)
    seal_here(monkeypatch, tmp_path)
    gateway_world.allow_local(monkeypatch)
    tracked: Json = {"usage_tracking": True, "experiment_id": world.experiment}
    with serving(saying('{"result": "yes", "rationale": "It is so."}')) as provider:
        for name in ("e", "guards"):
            definition = gateway_world.model(name, "openai", provider.url)
            made = gateway_world.endpoint(name, [definition], **tracked)
            if name == "e":
                endpoint = made
        guarding = gateway_world.judge("fine", "Is {{ inputs }} fine?", "guards")
        gateway_world.guard(endpoint, guarding, "BEFORE")
        registered(world, judge(BOTH, "all"), monkeypatch, tmp_path)
        set_online(world, "all", 1.0)
        monkeypatch.setattr(trace_calls, "START", ids.now_ms() * 1_000_000)
        first = world.trace("q", "a")

        def swept() -> tuple[int, int]:
            """Traces in the experiment, and how many of them are judged."""
            with monkeypatch.context() as later:
                now = ids.now_ms()
                later.setattr(ids, "now_ms", lambda: now + 60_000)
                judge_runner.app.handler({"source": "schedule"}, Context())
                assert world.work() == []
            kept = infos(world.experiment)
            return len(kept), sum("assessments" in info for info in kept)

        assert swept() == (3, 1), "the judge's call and its guardrail's were kept"
        assert assessments(first)[0]["feedback"]["value"] == "yes"
        assert swept() == (3, 1)
        chat = {"messages": [{"role": "user", "content": "hello"}]}
        chats.complete_unguarded("default", "e", chat)
        assert swept() == (6, 2), "a call that is somebody else's is judged"
        assert swept() == (6, 2)


def test_scorers_that_cannot_judge_by_themselves_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    registered(world, judge("{{ outputs }}, {{ expectations }}?", "x"), monkeypatch, tmp_path)
    registered(world, judge(BOTH, "direct", model="openai:/m"), monkeypatch, tmp_path)
    for name, why in (
        ("x", "requires expectations, but scorers with expectations are not currently supported"),
        ("direct", "does not use a gateway model"),
    ):
        body = {"experiment_id": world.experiment, "name": name, "sample_rate": 0.5}
        answer = ask("PUT", "mlflow/scorers/online-config", body)
        assert answer.status == 400
        assert why in answer.body["message"]
    too_large = {"experiment_id": world.experiment, "name": "x", "sample_rate": 10**400}
    assert ask("PUT", "mlflow/scorers/online-config", too_large).status == 400


def test_a_scorer_that_is_no_complete_judge_is_taken_and_judges_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As on MLflow's server, which takes what it cannot read; what only a client runs is
    refused."""
    monkeypatch.setenv(online_scoring.BUFFER_SECONDS, "0")
    model = {"model": "gateway:/e"}
    instructions = {**model, "instructions": "{{ outputs }}, {{ expectations }}?"}
    texts = {
        "complete": judge(BOTH, "complete"),
        "without a name": {"instructions_judge_pydantic_data": instructions},
        "number as name": {"name": 5, "instructions_judge_pydantic_data": instructions},
        "model alone": {"instructions_judge_pydantic_data": model},
        "unknown class": {"builtin_scorer_class": "X", "builtin_scorer_pydantic_data": model},
    }
    for name, data in texts.items():
        registered(world, data, monkeypatch, tmp_path, name)
        assert set_online(world, name, 1.0)["sample_rate"] == 1.0
    third = {"name": "third", "third_party_scorer_data": model}
    registered(world, third, monkeypatch, tmp_path)
    body = {"experiment_id": world.experiment, "name": "third", "sample_rate": 1}
    answer = ask("PUT", "mlflow/scorers/online-config", body)
    assert answer.status == 400
    assert "does not run scorers of other libraries" in answer.body["message"]
    now = ids.now_ms()
    monkeypatch.setattr(trace_calls, "START", (now + 30_000) * 1_000_000)
    trace = world.trace("q", "a")
    monkeypatch.setattr(ids, "now_ms", lambda: now + 60_000)
    with serving(saying('{"result": "yes", "rationale": "r"}')):
        judge_runner.app.handler({"source": "schedule"}, Context())
        assert world.work() == []
    assert [assessment["assessment_name"] for assessment in assessments(trace)] == ["complete"]


def test_a_share_of_traces_is_judged_by_all_that_come_before() -> None:
    """Whoever has a lower rate judges only what those with higher ones do, and as many."""
    rated = [("half", 0.5), ("quarter", 0.25), ("all", 1.0)]
    chosen = [online_scoring.sample(f"tr-{number}", rated) for number in range(2000)]
    assert all(names == ["all", "half", "quarter"][: len(names)] for names in chosen)
    for name, rate in rated:
        assert abs(sum(name in names for names in chosen) / 2000 - rate) < 0.04
    assert online_scoring.sample("tr-1", [("never", 0.0)]) == []
