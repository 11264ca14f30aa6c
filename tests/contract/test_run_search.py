"""Searches give what looking at every run would give, however far the indexer is."""

from __future__ import annotations

import random

import pytest

from indexer.ranks import rank_rows
from mlcore.repos import document, index_candidates
from mlcore.repos.runs.ranks import metric_ranks as run_ranks
from mlcore.repos.runs.search import run_search
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.delivery import Delivery
from tests.contract.index_state import tiny_ranks
from tests.contract.run_searches import looked_at, pages
from tests.contract.streams import following
from tests.differential.search_samples import METRIC_VALUES, STATUSES, TEXTS, quoted

KEYS = ("acc", "loss", "a b")
WRITERS = 40
QUERIES = 25


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way of finding runs is taken with a handful of them."""
    monkeypatch.setattr(run_search, "SMALL_RUNS", 3)
    monkeypatch.setattr(run_search, "FURTHER_RANKS", 1)
    monkeypatch.setattr(run_search, "STREAMED_RUNS", 25)
    monkeypatch.setattr(index_candidates, "PAGE_IDS", 7)
    tiny_ranks(monkeypatch)
    monkeypatch.setattr(run_ranks, "PAGE_ENTRIES", 2)


def test_search_is_looking_at_every_run(
    shared_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(shared_store) as stream:
        for seed in range(3 * EXAMPLES):
            rng = random.Random(seed)
            # Of every third experiment most values are outside of the runs' items.
            monkeypatch.setattr(document, "INLINE_BYTES", 150 if seed % 3 == 2 else 300_000)
            # Of every second experiment some rows wait, and are not sorted as they come.
            monkeypatch.setattr(rank_rows, "MOST_BYTES", 200 if seed % 2 else 0)
            delivery = Delivery(rng, stream.fresh)
            experiment_id = shared_store.api.new_experiment(f"searched {seed}")
            run_ids: list[str] = []
            for _ in range(WRITERS):
                write(rng, shared_store, experiment_id, run_ids)
                if rng.random() < 0.3:
                    delivery.some(rng.random())
            for _ in range(QUERIES):
                check(rng, shared_store, experiment_id, run_ids)
                if rng.random() < 0.3:
                    write(rng, shared_store, experiment_id, run_ids)
                if rng.random() < 0.3:
                    delivery.some(rng.choice((0.3, 1.0)))


def write(rng: random.Random, store: Store, experiment_id: str, run_ids: list[str]) -> None:
    api = store.api
    if not run_ids or rng.random() < 0.45:
        made = api.post(
            "runs/create",
            experiment_id=experiment_id,
            run_name=rng.choice(TEXTS) or "x",
            start_time=rng.choice((0, 1, 1, 2, 3)),
        )
        run_ids.append(made["run"]["info"]["run_id"])
    run_id = rng.choice(run_ids)
    what = rng.random()
    if what < 0.1:
        api.post(rng.choice(("runs/delete", "runs/restore")), run_id=run_id)
    elif what < 0.2:
        api.ask("POST", "runs/update", run_id=run_id, status=rng.choice(STATUSES))
    elif what < 0.25:
        api.ask("POST", "runs/update", run_id=run_id, run_name=rng.choice(TEXTS))
    else:
        api.ask(
            "POST",
            "runs/log-batch",
            run_id=run_id,
            metrics=[
                {
                    "key": rng.choice(KEYS),
                    "value": value if value == value and abs(value) < 1e308 else str(value),  # noqa: PLR0124
                    "timestamp": 1,
                    "step": rng.randrange(4),
                }
                for value in rng.sample(METRIC_VALUES, rng.choice((0, 1, 2)))
            ],
            params=[{"key": key, "value": rng.choice(TEXTS)} for key in rng.sample(KEYS, 1)],
        )
        if rng.random() < 0.5:
            api.ask("POST", "runs/update", run_id=run_id, status="FINISHED")


def check(rng: random.Random, store: Store, experiment_id: str, run_ids: list[str]) -> None:
    text, ordering = query(rng)
    view = rng.choice(("ACTIVE_ONLY", "ACTIVE_ONLY", "DELETED_ONLY", "ALL"))
    size = rng.choice((1, 3, 5, 100))
    request = {
        "experiment_ids": [experiment_id],
        "filter": text,
        "order_by": ordering,
        "run_view_type": view,
        "max_results": size,
    }
    wanted = [run.run_id for run in looked_at(experiment_id, run_ids, text, ordering, view)]
    found_ids = [run["info"]["run_id"] for page in pages(store, request) for run in page]
    assert found_ids == wanted, request


def query(rng: random.Random) -> tuple[str, list[str]]:
    def clause() -> str:
        key = f"`{rng.choice(KEYS)}`"
        operator = rng.choice(("=", ">", ">=", "<", "<=", "!="))
        return rng.choice(
            (
                f"metrics.{key} {operator} {rng.choice(('0', '1', '-1', '0.5', '1e400', '-0.0'))}",
                f"params.{key} = {quoted(rng, rng.choice(TEXTS))}",
                f"status = '{rng.choice(STATUSES)}'",
                f"run_name = {quoted(rng, rng.choice(TEXTS))}",
                f"run_name LIKE {quoted(rng, rng.choice(TEXTS) + '%')}",
                f"params.{key} LIKE '%a%'",
            )
        )

    clauses = [clause() for _ in range(rng.choice((0, 1, 1, 2)))]
    fields_of_order = [f"metrics.`{key}`" for key in KEYS] * 2 + ["start_time", "params.acc"]
    ordering = rng.sample(fields_of_order[2:], rng.choice((0, 1, 1, 2)))
    return " AND ".join(clauses), [name + rng.choice((" ASC", " DESC")) for name in ordering]
