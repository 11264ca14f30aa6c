"""Page tokens: forged ones are refused, and pages stay right while rows come and go."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import paging
from mlcore.repos import index_candidates
from mlcore.repos.runs.search import run_search
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples

_names = itertools.count()

SEARCHES: dict[str, dict[str, Any]] = {
    "runs by start": {},
    "runs by metric": {"order_by": ["metrics.m DESC"]},
    "runs by tag": {"order_by": ["tags.t ASC"]},
    "runs by name": {"order_by": ["attributes.run_name DESC", "params.p"]},
}


def as_large(patch: pytest.MonkeyPatch) -> None:
    """Experiments are searched as if they had too many runs to be read whole."""
    patch.setattr(run_search, "SMALL_RUNS", 0)
    patch.setattr(run_search, "FURTHER_RANKS", 0)
    patch.setattr(index_candidates, "PAGE_IDS", 2)


def encoded(content: str | bytes) -> str:
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return base64.urlsafe_b64encode(raw).decode()


def forge(token: str, position: Any) -> str:
    """A token of the same query with another position."""
    digest, _ = json.loads(base64.urlsafe_b64decode(token))
    return encoded(json.dumps([digest, position]))


SCALARS: list[Any] = [
    *(None, True, "", "x", "\ud800", "é" * 3000, 0, -1, 10**400, -(10**400), 2**63, -(2**63) - 1),
    *(1.5, 1e308, float("nan"), float("inf"), [], [1], {}, {"a": 1}),
]


def token_of(api: Api, name: str, experiment_id: str) -> str:
    token: str
    if name == "history":
        run_id = api.new_run(experiment_id)
        for step in range(3):
            api.post("runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1, step=step)
        token = api.get("metrics/get-history", run_id=run_id, metric_key="m", max_results=1)[
            "next_page_token"
        ]
        return token
    if name == "experiments":
        return str(api.post("experiments/search", max_results=1)["next_page_token"])
    for _ in range(3):
        api.new_run(experiment_id)
    fields = {"experiment_ids": [experiment_id], "max_results": 1, **SEARCHES[name]}
    return str(api.post("runs/search", **fields)["next_page_token"])


def ask(api: Api, name: str, experiment_id: str, token: str, run_id: str = "") -> Any:
    if name == "history":
        return api.ask(
            "GET", "metrics/get-history", run_id=run_id, metric_key="m", page_token=token
        )
    if name == "experiments":
        return api.ask("POST", "experiments/search", max_results=1, page_token=token)
    fields = {"experiment_ids": [experiment_id], "max_results": 1, **SEARCHES[name]}
    return api.ask("POST", "runs/search", page_token=token, **fields)


@pytest.mark.parametrize("name", [*SEARCHES, "experiments", "history"])
@pytest.mark.parametrize("large", [False, True])
def test_forged_tokens_are_refused(
    shared_store: Store, name: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        as_large(monkeypatch)
    api = shared_store.api
    experiment_id = api.new_experiment(f"forged {next(_names)}")
    api.new_experiment(f"another {next(_names)}")
    run_id = ""
    if name == "history":
        run_id = api.new_run(experiment_id)
        for step in range(3):
            api.post("runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1, step=step)
        good = api.get("metrics/get-history", run_id=run_id, metric_key="m", max_results=1)[
            "next_page_token"
        ]
    else:
        good = token_of(api, name, experiment_id)
    assert ask(api, name, experiment_id, good, run_id).status == 200
    rubbish = [
        *("%%%", "a", "abc", "é", "====", "AAAA", encoded("{}"), encoded("[]"), encoded("[1,2,3]")),
        *(encoded("null"), encoded('"ab"'), encoded("1"), encoded('{"a":1,"b":2}')),
        *(encoded("[" * 100_000), encoded(b"\xff\xfe\x00"), encoded("9" * 5000)),
        paging.token([1, 2], "another query"),
        encoded(json.dumps([json.loads(base64.urlsafe_b64decode(good))[0], {"a": 1}])),
        encoded(json.dumps([None, []])),
    ]
    for token in rubbish:
        answer = ask(api, name, experiment_id, token, run_id)
        assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE"), token[:80]
    position = json.loads(base64.urlsafe_b64decode(good))[1]
    for at, scalar in itertools.product(range(len(position)), SCALARS):
        changed = [*position[:at], scalar, *position[at + 1 :]]
        answer = ask(api, name, experiment_id, forge(good, changed), run_id)
        assert answer.status in {200, 400}, (at, scalar, answer)
    for longer in ([], position[:-1], [*position, 0], [position], [*position, *position]):
        answer = ask(api, name, experiment_id, forge(good, longer), run_id)
        assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE"), longer


def test_a_token_belongs_to_its_query(shared_store: Store) -> None:
    api = shared_store.api
    experiment_id = api.new_experiment(f"query {next(_names)}")
    token = token_of(api, "runs by start", experiment_id)
    for other in (
        {"filter": "attributes.status = 'RUNNING'"},
        {"run_view_type": "ALL"},
        {"order_by": ["attributes.start_time"]},
        {"experiment_ids": ["0", experiment_id]},
    ):
        fields = {"experiment_ids": [experiment_id], "page_token": token, **other}
        answer = api.ask("POST", "runs/search", **fields)
        assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")


def row(api: Api, experiment_id: str, number: int) -> str:
    run_id = api.post(
        "runs/create",
        experiment_id=experiment_id,
        start_time=number % 4,
        run_name=f"n{number % 3}",
        tags=pairs({"t": str(number % 3)}) if number % 5 else [],
    )["run"]["info"]["run_id"]
    if number % 4:
        value = "NaN" if number % 4 == 1 else number % 3
        api.post("runs/log-metric", run_id=run_id, key="m", value=value, timestamp=1)
    return str(run_id)


CHANGES = st.lists(st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 11)), max_size=3)


@examples(12)
@given(
    name=st.sampled_from(list(SEARCHES)),
    rows=st.lists(st.integers(0, 11), min_size=1, max_size=9),
    changes=st.lists(CHANGES, max_size=6),
    size=st.integers(1, 4),
    repeated=st.booleans(),
    large=st.booleans(),
)
def test_pages_while_rows_come_and_go(
    shared_store: Store,
    name: str,
    rows: list[int],
    changes: list[list[tuple[str, int]]],
    size: int,
    repeated: bool,
    large: bool,
) -> None:
    """No row that is there throughout is lost or seen twice."""
    with pytest.MonkeyPatch.context() as patch:
        if large:
            as_large(patch)
        _page_while(shared_store, name, rows, changes, size, repeated)


def _page_while(
    shared_store: Store,
    name: str,
    rows: list[int],
    changes: list[list[tuple[str, int]]],
    size: int,
    repeated: bool,
) -> None:
    api = shared_store.api
    experiment_id = api.new_experiment(f"pages {next(_names)}")
    if repeated:  # an experiment that was restored is read through another index
        api.post("experiments/delete", experiment_id=experiment_id)
        api.post("experiments/restore", experiment_id=experiment_id)
    throughout = {row(api, experiment_id, number) for number in rows}
    there = list(throughout)
    fields = {"experiment_ids": [experiment_id], "max_results": size, **SEARCHES[name]}
    seen: list[str] = []
    token = ""
    for change in itertools.chain(changes, itertools.repeat([])):
        answer = api.post("runs/search", **fields, page_token=token)
        page = [run["info"]["run_id"] for run in answer.get("runs", ())]
        seen += page
        token = answer.get("next_page_token", "")
        if not token:
            break
        assert len(page) == size
        for verb, number in change:
            if verb == "add":
                there.append(row(api, experiment_id, number))
            elif there:
                gone = there.pop(number % len(there))
                throughout.discard(gone)
                api.post("runs/delete", run_id=gone)
    assert len(seen) == len(set(seen))
    assert throughout <= set(seen)


def test_history_in_pages(store: Store) -> None:
    api = store.api
    run_id = api.new_run()
    points = [(t, s, float(v)) for t in range(3) for s in (-1, 0) for v in (-2, 0, 1)]
    metrics = [{"key": "m", "timestamp": t, "step": s, "value": v} for t, s, v in points]
    nan = {"key": "m", "timestamp": 1, "step": 0, "value": "NaN"}
    api.post("runs/log-batch", run_id=run_id, metrics=[*metrics, nan, *metrics])
    whole = api.history(run_id, "m")
    assert len(whole) == len(points) + 1
    for size in (1, 2, 5, 19, 100):
        assert api.history(run_id, "m", page=size) == whole


def test_responses_stay_under_what_lambda_returns(store: Store) -> None:
    api = store.api
    key = "\U0001d4d0" * 250
    run_id = api.new_run()
    for batch in range(3):
        metrics = [
            {"key": key, "value": n / 7, "timestamp": n + 1000 * batch, "step": n}
            for n in range(1000)
        ]
        api.post("runs/log-batch", run_id=run_id, metrics=metrics)
    first = api.ask("GET", "metrics/get-history", run_id=run_id, metric_key=key)
    assert first.size < 6_000_000
    assert "next_page_token" in first.body
    assert len(api.history(run_id, key)) == 3000
    bulk = api.ask("GET", "metrics/get-history-bulk", run_id=[run_id], metric_key=key)
    assert bulk.status == 200
    assert bulk.size < 6_000_000

    experiment_id = api.new_experiment("large runs")
    for _ in range(12):
        run_id = api.new_run(experiment_id)
        api.post(
            "runs/log-batch",
            run_id=run_id,
            params=pairs({f"p{n}": "\U0001d4d0" * 1500 for n in range(40)}),
        )
    first = api.ask("POST", "runs/search", experiment_ids=[experiment_id], max_results=100)
    assert first.size < 6_000_000
    seen, token = len(first.body["runs"]), first.body["next_page_token"]
    while token:
        page = api.post(
            "runs/search", experiment_ids=[experiment_id], max_results=100, page_token=token
        )
        seen, token = seen + len(page["runs"]), page.get("next_page_token")
    assert seen == 12
