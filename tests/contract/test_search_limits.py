"""What a search may ask for; more is a clear 400 before anything is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import traces.app
from mlcore.limits.experiments import MAX_SEARCHED_EXPERIMENTS
from mlcore.repos.traces.search import SMALL_TRACES
from mlcore.search import clauses, filter_tokens
from tests.contract import api as calls
from tests.contract.conftest import Store
from tests.contract.trace_calls import export, span, start, tell

FILTERED: dict[str, tuple[str, dict[str, Any]]] = {
    "runs/search": ("filter", {"experiment_ids": ["0"]}),
    "experiments/search": ("filter", {"max_results": 10}),
    "logged-models/search": ("filter", {"experiment_ids": ["0"]}),
}
SEARCHED = (
    "runs/search",
    "logged-models/search",
)


@pytest.mark.parametrize("path", FILTERED)
def test_filters_are_refused_by_their_length(store: Store, path: str) -> None:
    name, fields = FILTERED[path]
    values = ",".join(f"'{n}'" for n in range(400_000))
    answer = store.api.ask("POST", path, **fields, **{name: f"attributes.run_id IN ({values})"})
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")
    assert str(filter_tokens.MAX_CHARACTERS) in answer.body["message"]
    assert answer.size < 1_000
    assert store.api.cost.requests == 0


@pytest.mark.parametrize("path", ["registered-models/search", "model-versions/search"])
def test_filters_of_the_registry_are_refused_by_their_length(store: Store, path: str) -> None:
    answer = store.api.ask("GET", path, filter=f"name = '{'a' * filter_tokens.MAX_CHARACTERS}'")
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")
    assert answer.size < 1_000


@pytest.mark.parametrize("path", SEARCHED)
def test_experiments_are_counted_first(store: Store, path: str) -> None:
    ids = [str(n) for n in range(50_000)]
    answer = store.api.ask("POST", path, experiment_ids=ids, max_results=10)
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")
    assert f"{MAX_SEARCHED_EXPERIMENTS} are allowed" in answer.body["message"]
    assert store.api.cost.requests == 0


def test_searches_of_traces_count_experiments_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(calls._DOMAINS, "traces", traces.app.handler)
    ids = [str(n) for n in range(50_000)]
    answer = store.api.ask("GET", "traces", experiment_ids=ids[: MAX_SEARCHED_EXPERIMENTS + 1])
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")
    assert f"{MAX_SEARCHED_EXPERIMENTS} are allowed" in answer.body["message"]


@pytest.mark.parametrize("text", ["(", "(a", "()", "a ("])
def test_nested_parentheses_are_looked_at_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    word = clauses.ClauseReader._word

    def counting(self: clauses.ClauseReader, at: int) -> str:
        nonlocal looks
        looks += 1
        return word(self, at)

    monkeypatch.setattr(clauses.ClauseReader, "_word", counting)
    for closed in ("", ")" * 2_000):
        token_list = filter_tokens.tokenize(text * 2_000 + closed)
        looks = 0
        clauses.ClauseReader(text * 2_000 + closed, token_list).items()
        assert looks <= 2 * len(token_list)


def test_named_ids_are_looked_up_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not in each of the experiments: 3,000 ids in 40 experiments are 30 reads, not 1,200, and
    those that exist are found."""
    monkeypatch.setitem(calls._DOMAINS, "traces", traces.app.handler)
    api = store.api
    experiments = [api.new_experiment(f"named {number}") for number in range(40)]
    trace_ids, model_ids = [], []
    for number, experiment in enumerate(experiments[:6]):
        trace = f"{number:031x}f"
        assert export(experiment, [span(trace, 1)]).status == 200
        trace_ids.append(f"tr-{trace}")
        model = api.post("logged-models", experiment_id=experiment, name="m")
        model_ids.append(model["model"]["info"]["model_id"])
    missing = [f"{number:032x}" for number in range(2_994)]
    named = ",".join(f"'{name}'" for name in (*trace_ids, *(f"tr-{name}" for name in missing)))
    searched = experiments[1:]
    fields = {"experiment_ids": searched, "max_results": 50}
    listed = api.ask("GET", "traces", filter=f"trace.request_id IN ({named})", **fields)
    assert {each["request_id"] for each in listed.body["traces"]} == set(trace_ids[1:])
    assert api.cost.requests <= 60
    named = ",".join(f"'{name}'" for name in (*model_ids, *(f"m-{name}" for name in missing)))
    found = api.post("logged-models/search", filter=f"attributes.model_id IN ({named})", **fields)
    assert {each["info"]["model_id"] for each in found["models"]} == set(model_ids[1:])
    assert api.cost.requests <= 60
    few = f"attributes.model_id IN ('{model_ids[1]}', '{model_ids[2]}')"
    assert len(api.post("logged-models/search", filter=few, **fields)["models"]) == 2
    assert api.cost.round_trips <= 2


@pytest.mark.parametrize("key", ["client_request_id", "request_id"])
@pytest.mark.parametrize("order", ["timestamp_ms DESC", "execution_time_ms"])
def test_named_values_are_not_looked_up_each(
    store: Store, monkeypatch: pytest.MonkeyPatch, key: str, order: str
) -> None:
    """3,000 values in an experiment that is too large to be read whole; few values are found in the
    index, and both answers are those of the traces themselves."""
    monkeypatch.setitem(calls._DOMAINS, "traces", traces.app.handler)
    api = store.api
    experiment = api.new_experiment("many traces")
    numbers = range(SMALL_TRACES + 60)
    assert export(experiment, [span(f"{n:031x}f", 1, start=n) for n in numbers]).status == 200
    values: dict[str, str] = {}
    for number in (3, 150, 340):
        trace_id = f"tr-{number:031x}f"
        values[trace_id] = trace_id if key == "request_id" else f"v{number}"
        info = {"request_time": "2023-11-14T22:13:20Z", "client_request_id": f"v{number}"}
        tell("POST", "3.0/traces", start(experiment, trace_id, **info))

    def answer(named: Iterable[str]) -> set[str]:
        text = ",".join(f"'{value}'" for value in named)
        fields = {"experiment_ids": [experiment], "order_by": [order], "max_results": 100}
        listed = api.ask("GET", "traces", filter=f"trace.{key} IN ({text})", **fields)
        assert listed.status == 200, listed
        return {each["request_id"] for each in listed.body["traces"]}

    absent = [f"absent {number}" for number in range(3_000)]
    assert answer([*values.values(), *absent]) == set(values)
    assert api.cost.requests <= 60
    assert answer([*values.values(), *absent[:20]]) == set(values)
    assert api.cost.requests <= 60


@pytest.mark.parametrize(
    ("path", "condition"),
    [
        ("runs/search", "metrics.m{n} > {n}"),
        ("runs/search", "params.p{n} LIKE '%{n}%'"),
        ("runs/search", "tags.t{n} != 'x'"),
        ("logged-models/search", "params.p{n} != 'x'"),
        ("logged-models/search", "metrics.m{n} > {n}"),
        ("traces", "tags.t{n} = 'x'"),
        ("traces", "span.content LIKE '%x{n}%'"),
        ("traces", "feedback.f{n} = 'x'"),
        ("traces", "attributes.run_id = 'r{n}'"),
    ],
)
def test_the_number_of_conditions_is_bounded(
    store: Store, monkeypatch: pytest.MonkeyPatch, path: str, condition: str
) -> None:
    """The most that a filter may have cost a bounded number of requests; one more is a 400."""
    monkeypatch.setitem(calls._DOMAINS, "traces", traces.app.handler)
    api = store.api
    experiments = [api.new_experiment(f"many {number}") for number in range(3)]
    for experiment in experiments:
        api.new_run(experiment)
        api.post("logged-models", experiment_id=experiment, name="m")
    method = "GET" if path == "traces" else "POST"

    def status(conditions: int) -> int:
        text = " AND ".join(condition.format(n=number) for number in range(conditions))
        return api.ask(method, path, experiment_ids=experiments, filter=text).status

    most, too_many = 1, 3_000
    assert (status(most), status(too_many)) == (200, 400)
    assert api.cost.requests == 0
    while too_many - most > 1:
        middle = (most + too_many) // 2
        most, too_many = (middle, too_many) if status(middle) == 200 else (most, middle)
    assert status(most) == 200
    # Traces of 1,000 runs need the links of each run; nothing is read for each run and experiment.
    assert api.cost.requests <= (1_100 if "run_id" in condition else 120), most
