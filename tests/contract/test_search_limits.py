"""What a search may ask for; more is a clear 400 before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

import traces.app
from mlcore.limits.experiments import MAX_SEARCHED_EXPERIMENTS
from mlcore.search import clauses, tokens
from tests.contract import api as calls
from tests.contract.conftest import Store

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
    assert str(tokens.MAX_CHARACTERS) in answer.body["message"]
    assert answer.size < 1_000
    assert store.api.cost.requests == 0


@pytest.mark.parametrize("path", ["registered-models/search", "model-versions/search"])
def test_filters_of_the_registry_are_refused_by_their_length(store: Store, path: str) -> None:
    answer = store.api.ask("GET", path, filter=f"name = '{'a' * tokens.MAX_CHARACTERS}'")
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
        token_list = tokens.tokenize(text * 2_000 + closed)
        looks = 0
        clauses.ClauseReader(text * 2_000 + closed, token_list).items()
        assert looks <= 2 * len(token_list)
