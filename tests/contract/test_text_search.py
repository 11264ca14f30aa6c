"""Full-text searches of runs give what looking at every run would give, and cost what they find."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from indexer.full_text import dictionary_page
from indexer.verification import rebuild
from mlcore.repos import document, index_candidates, text_candidates
from mlcore.repos.runs.search import run_search
from tests.contract.api import pairs
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.delivery import Delivery
from tests.contract.explain import explained
from tests.contract.full_text_setting import setting
from tests.contract.index_state import deliver
from tests.contract.run_searches import looked_at, pages
from tests.contract.streams import following
from tests.differential.search_samples import quoted

OWNERS = ("Hannah", "ann", "Joanna", "AN N", "anna-ßé", "ı annİ", "Bob", "x", "a%n_n#", "n" * 101)
KEYS = ("owner", "team", "mlflow.note")
SETTINGS = (
    None,
    [],
    ["tags.owner"],
    ["tags.*", "params.*"],
    ["tags.mlflow.note", "params.team", "attributes.user_id"],
)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_search, "SMALL_RUNS", 2)
    monkeypatch.setattr(run_search, "STREAMED_RUNS", 10)
    monkeypatch.setattr(index_candidates, "PAGE_IDS", 5)


@pytest.mark.usefixtures("small_steps")
def test_full_text_is_looking_at_every_run(
    shared_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the indexer late, records repeated and shuffled, and the setting changed meanwhile."""
    plans: Counter[str] = Counter()
    with following(shared_store) as stream, explained() as searches:
        for seed in range(2 * EXAMPLES):
            rng = random.Random(seed)
            monkeypatch.setattr(document, "INLINE_BYTES", rng.choice((300_000, 300)))
            monkeypatch.setattr(dictionary_page, "ROOM", rng.choice((0, 60, 3_500)))
            monkeypatch.setattr(text_candidates, "FOLLOWED", rng.choice((2, 100)))
            monkeypatch.setattr(text_candidates, "LISTED", rng.choice((2, 1_000)))
            monkeypatch.setattr(text_candidates, "FORESEEN", rng.choice((0, 2)))
            delivery = Delivery(rng, stream.fresh)
            delivery.forget()
            setting(shared_store, rng.choice(SETTINGS))
            experiment_id = shared_store.api.new_experiment(f"full text {seed}")
            run_ids: list[str] = []
            for step in range(70):
                write(rng, shared_store, experiment_id, run_ids)
                if rng.random() < 0.4:
                    delivery.some(rng.choice((0.3, 1.0)))
                if step > 15:
                    check(rng, shared_store, experiment_id, run_ids)
                if rng.random() < 0.04:
                    setting(shared_store, rng.choice(SETTINGS))
                if rng.random() < 0.03:
                    rebuild.reindex(experiment_id)
            delivery.rest()
            findings = rebuild.verify(experiment_id, patience=0).findings
            assert {finding.problem for finding in findings} <= {"surplus"}
            for _ in range(2):  # what the setting asks for no more goes with the second
                rebuild.reindex(experiment_id)
            assert rebuild.verify(experiment_id, patience=0).findings == []
        plans.update(search.how for search in searches)
    setting(shared_store, None)
    assert plans["TextLookups"] > 5, plans


def write(rng: random.Random, store: Store, experiment_id: str, run_ids: list[str]) -> None:
    api = store.api
    if not run_ids or rng.random() < 0.3:
        fields = {"run_name": rng.choice(OWNERS), "user_id": rng.choice(OWNERS)}
        tags = pairs({key: rng.choice(OWNERS) for key in KEYS if rng.random() < 0.5})
        run_ids.append(api.new_run(experiment_id, tags=tags, **fields))
        return
    run_id = rng.choice(run_ids)
    key, value = rng.choice((*KEYS, "mlflow.runName")), rng.choice(OWNERS)
    what = rng.random()
    if what < 0.3:
        api.ask("POST", "runs/set-tag", run_id=run_id, key=key, value=value)
    elif what < 0.5:
        api.ask("POST", "runs/delete-tag", run_id=run_id, key=key)
    elif what < 0.6:
        api.ask("POST", "runs/update", run_id=run_id, run_name=value)
    elif what < 0.65:
        api.ask("POST", rng.choice(("runs/delete", "runs/restore")), run_id=run_id)
    elif what < 0.85:
        api.ask("POST", "runs/log-batch", run_id=run_id, tags=pairs({key: value, "team": value}))
    else:
        api.ask("POST", "runs/log-parameter", run_id=run_id, key=key, value=value)


def check(rng: random.Random, store: Store, experiment_id: str, run_ids: list[str]) -> None:
    clauses = [clause(rng) for _ in range(rng.choice((1, 1, 2)))]
    ordering = rng.choice(([], ["run_name ASC"], ["params.team DESC"]))
    view = rng.choice(("ACTIVE_ONLY", "ALL"))
    text = " AND ".join(clauses)
    request = {
        "experiment_ids": [experiment_id],
        "filter": text,
        "order_by": ordering,
        "run_view_type": view,
        "max_results": rng.choice((2, 100)),
    }
    every = looked_at(experiment_id, run_ids, text, ordering, view)
    found_ids = [run["info"]["run_id"] for page in pages(store, request) for run in page]
    assert found_ids == [run.run_id for run in every], request


def clause(rng: random.Random) -> str:
    kinds = [f"{kind}.`{key}`" for kind in ("tags", "params") for key in KEYS]
    field = rng.choice((*kinds, "run_name", "tags.mlflow.runName", "user_id"))
    owner = rng.choice(OWNERS)
    if rng.random() < 0.25:
        return f"{field} {rng.choice(('=', '!='))} {quoted(rng, owner)}"
    begin = rng.randrange(len(owner))
    piece = owner[begin : begin + rng.choice((2, 3, 4, 200))]
    pattern = rng.choice(("", "%", "%", "_")) + piece + rng.choice(("", "%", "%", "_"))
    return f"{field} {rng.choice(('LIKE', 'ILIKE'))} {quoted(rng, pattern)}"


def test_a_search_costs_what_it_finds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 of 100 runs hold the text: one list of entries, and their runs."""
    monkeypatch.setattr(run_search, "SMALL_RUNS", 10)
    api = store.api
    with following(store) as stream:
        experiment_id = api.new_experiment("large")
        for n in range(100):
            owner = f"Hannah {n}" if n % 10 == 0 else f"somebody {n}"
            api.end(api.new_run(experiment_id, run_name="planning", tags=pairs({"owner": owner})))
        records = stream.fresh()
        for at in range(0, len(records), 100):
            assert deliver(records[at : at + 100]) > 0
    with explained() as searches:
        answer = api.post(
            "runs/search", experiment_ids=[experiment_id], filter="tags.owner ILIKE '%ANN%'"
        )
    assert len(answer["runs"]) == 10
    (search,) = searches
    assert (search.how, search.runs, search.entries) == ("TextLookups", 10, 10)
    assert api.cost.round_trips == 3
