"""Every search is answered alike with the indexer and without it, over HTTP, in an experiment that
is too large to be read whole.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.differential import population
from tests.differential import search_samples as samples
from tests.differential.pair import Pair, pair
from tests.differential.search_pairs import VIEWS, Searcher
from tests.servers import Server, followed, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

SEARCHES = int(os.environ.get("INDEXER_SEARCHES", "10"))
SEED = int(os.environ.get("REST_SEED", "1"))
RUNS = 310
PHASES = 2
FURTHER = 5
"""Runs that are added in each phase, while the one indexer follows."""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Without and with the indexer."""
    folders = [tmp_path / name for name in ("without", "with")]
    for folder in folders:
        folder.mkdir()
    with (
        stopped(start_product(folders[0], "--no-indexer")) as without,
        stopped(start_product(folders[1])) as usual,
    ):
        yield without, usual


def test_the_indexer_changes_no_answer(servers: tuple[Server, Server]) -> None:
    rng = random.Random(SEED)
    labels = [f"run {number}" for number in range(RUNS + PHASES * FURTHER)]
    calls = population.runs(rng, "experiment 0", labels)
    of_a_run = [list(run_calls) for run_calls in _each_run(calls)]
    with pair(*(server.url for server in servers)) as both:
        population.fill(both, [population.experiment("experiment 0", "alike")])
        population.fill(both, [call for run_calls in of_a_run[:RUNS] for call in run_calls])
        answered = 0
        for phase in range(PHASES):
            answered += _compare(both, rng, SEARCHES // PHASES)
            followed(servers[1])
            further = of_a_run[RUNS + phase * FURTHER :][:FURTHER]
            population.fill(both, [call for run_calls in further for call in run_calls])
    assert answered > SEARCHES / 4


def _each_run(calls: Iterator[Any]) -> Iterator[list[Any]]:
    """The calls of one run after those of another."""
    run: list[Any] = []
    for call in calls:
        if call.path.endswith("runs/create") and run:
            yield run
            run = []
        run.append(call)
    yield run


def _compare(both: Pair, rng: random.Random, count: int) -> int:
    """How many of the searches had an answer with rows."""
    answered = 0
    without, usual = Searcher(both.stock), Searcher(both.product)
    for made in islice(_searches(rng), count):
        body = {
            "experiment_ids": ["{{experiment 0}}"],
            "filter": made.filter,
            "order_by": made.order_by,
            "run_view_type": rng.choice(VIEWS),
            "max_results": rng.choice((25, 100, 100, 1000)),
        }
        pages = usual.all_pages("runs/search", body, "runs")
        assert pages == without.all_pages("runs/search", body, "runs"), body
        answered += bool(pages.labels)
    return answered


def _searches(rng: random.Random) -> Iterator[samples.Made]:
    """Ids differ between the two servers, so nothing may depend on them."""
    while True:
        made = samples.run_search(rng, ("x",), ("x",))
        text = " ".join((made.filter, *made.order_by))
        if "run_id" not in text and "artifact_uri" not in text:
            yield made
        yield samples.indexed_search(rng)
