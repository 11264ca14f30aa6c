"""Whatever index answers a search, and however far behind it is: the answer is that of looking at
every run, and stock MLflow's.

Runs, filters and orders are random over the whole language; writes and searches alternate while the
stream is delivered late, twice, in another order and with failures. Each call, and each page of a
search, is answered by one of several processes, which remember what they did or have just started.
EXACT_CASES is the number of searches; with SEARCH_SEED, others are made.
"""

from __future__ import annotations

import logging
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from indexer.projection import quiet_runs
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.errors import InvalidParameterValue
from mlcore.observability import logger
from mlcore.repos import index_candidates
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import marked_runs, runs
from mlcore.repos.runs.search import run_search
from mlcore.search import fields, grammar, run_plan, sort_keys
from mlcore.search.match import predicate
from tests.contract.api import Api
from tests.contract.conftest import Store, shared_store
from tests.contract.delivery import Delivery
from tests.contract.explain import explained
from tests.contract.index_state import tiny_ranks
from tests.contract.processes import Processes
from tests.contract.streams import following
from tests.differential import search_samples as samples
from tests.differential.stock import REFUSED, SEED, answer, mlflow_entities, open_store
from tests.differential.twin_store import Twins
from tests.engines import memory_folder, table_engine

__all__ = ["shared_store", "table_engine"]

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.contract, pytest.mark.timeout(7200)]

CASES = int(os.environ.get("EXACT_CASES", "100"))
CASES_OF_A_WORLD = 100
FIRST_WRITES = 80
VIEWS = {
    "ACTIVE_ONLY": ("active",),
    "DELETED_ONLY": ("deleted",),
    "ALL": ("active", "deleted"),
}
PLANS = {"all", "newest", run_plan.MetricOrder.__name__} | {
    access.__name__ for access in run_plan.Access.__args__
}
LEAST_SHARE = 0.005
"""Of the searches, that each plan must have answered."""


@pytest.fixture
def taken() -> Iterator[Counter[str]]:
    """How often each plan was taken, as the search itself explains it."""
    counted: Counter[str] = Counter()

    class Counting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            counted[str(record.args[0] if isinstance(record.args, tuple) else "")] += 1

    explained = logging.getLogger("mlcore.search")
    handler, level = Counting(), explained.level
    explained.addHandler(handler)
    explained.setLevel(logging.DEBUG)
    yield counted
    explained.removeHandler(handler)
    explained.setLevel(level)


def thresholds(rng: random.Random, patch: pytest.MonkeyPatch) -> None:
    """Such that a handful of runs is a large experiment, most often."""
    patch.setattr(run_search, "SMALL_RUNS", rng.choice((3, 3, 3, 3, 300)))
    patch.setattr(run_search, "FURTHER_RANKS", rng.choice((1, 25)))
    patch.setattr(run_search, "STREAMED_RUNS", rng.choice((25, 3_000)))
    patch.setattr(run_search, "READ_TOGETHER", rng.choice((10, 1_000)))
    patch.setattr(index_candidates, "PAGE_IDS", rng.choice((7, 7, 1_000)))
    patch.setattr(marked_runs, "MARKS_PAGE", rng.choice((3, 1_000)))
    # Whatever is looked at is quiet.
    patch.setattr(quiet_runs, "QUIET_MS", -3_600_000)
    patch.setattr(quiet_runs, "CALM_MS", -3_600_000)
    patch.setattr(quiet_runs, "CROWD", rng.choice((3, 100)))
    patch.setattr(quiet_runs, "COUNTED_EVERY", rng.choice((2, 50)))
    tiny_ranks(patch, tiny=rng.random() < 0.5)


def test_every_search_is_exact(shared_store: Store, taken: Counter[str]) -> None:
    logger.setLevel("ERROR")  # stock's own configuration reaches it
    compared: Counter[str] = Counter()
    with memory_folder() as folder, following(shared_store) as stream:
        stock = open_store(folder)
        for world in range(max(1, CASES // CASES_OF_A_WORLD)):
            rng = random.Random(f"{SEED} {world}")
            delivery = Delivery(rng, stream.fresh)
            delivery.forget()
            with pytest.MonkeyPatch.context() as patch:
                thresholds(rng, patch)
                twins = Twins(rng, shared_store.api, stock, f"world {world}")
                compared += play(rng, twins, delivery, shared_store.api, stock)
    print(dict(compared), dict(taken))  # noqa: T201
    assert compared["rows"] > compared.total() / 4
    assert compared[REFUSED] < compared.total() / 10
    seldom = {how for how in PLANS if taken[how] < LEAST_SHARE * compared.total()}
    assert not seldom, taken


def play(
    rng: random.Random, twins: Twins, delivery: Delivery, api: Api, stock: Any
) -> Counter[str]:
    """What became of the searches of one world."""
    compared: Counter[str] = Counter()
    processes = Processes(rng)
    for _ in range(FIRST_WRITES):
        processes.switch()
        twins.write()
        if rng.random() < 0.2:
            processes.switch()
            delivery.some(rng.random())
    for _ in range(min(CASES, CASES_OF_A_WORLD)):
        compared[check(rng, api, stock, twins, processes)] += 1
        processes.switch()
        if rng.random() < 0.3:
            twins.write()
        processes.switch()
        if rng.random() < 0.3:
            delivery.some(rng.choice((0.3, 0.9)))
        if rng.random() < 0.1:
            quiet_runs.sweep()
        if rng.random() < 0.05:
            delivery.rest()
    return compared


def check(rng: random.Random, api: Api, stock: Any, twins: Twins, processes: Processes) -> str:
    """One search: by the product page by page, by brute force, by stock."""
    ours, theirs = zip(*rng.sample(twins.experiments, rng.choice((1, 1, 2))), strict=True)
    uris = tuple(f"mlflow-artifacts:/x/{run_id}/artifacts" for run_id in twins.runs[:3])
    made = rng.choice(
        (samples.run_search(rng, tuple(twins.runs), uris), samples.indexed_search(rng))
    )
    view = rng.choice(("ACTIVE_ONLY", "ACTIVE_ONLY", "DELETED_ONLY", "ALL"))
    search = {
        "experiment_ids": list(ours),
        "filter": made.filter,
        "order_by": made.order_by,
        "run_view_type": view,
        "max_results": rng.choice((1, 2, 5, 100, 100)),
    }
    wanted, words = answer(
        stock.search_runs,
        list(theirs),
        made.filter,
        mlflow_entities.ViewType.from_string(view.lower()),
        1000,
        made.order_by,
    )
    if wanted != REFUSED:
        wanted = [run.info.run_id for run in wanted]
    assert brute_force(ours, made, VIEWS[view]) == wanted, (search, words)
    with explained() as how:
        answered = all_pages(api, search, processes)
    assert answered == wanted, (search, how, words)
    return REFUSED if wanted == REFUSED else "rows" if wanted else "no rows"


def brute_force(
    experiment_ids: tuple[str, ...], made: samples.Made, stages: tuple[str, ...]
) -> list[str] | str:
    """The answer from the run items alone."""
    try:
        matches = predicate(grammar.parse_filter(made.filter, fields.RUN), fields.RUN)
        key = sort_keys.sort_key(grammar.parse_order_by(made.order_by, fields.RUN), fields.RUN)
    except InvalidParameterValue:
        return REFUSED
    every = []
    for experiment_id in experiment_ids:
        experiment = experiments.get(experiment_id, "default").experiment
        pk = keys.experiment(experiment_id).pk
        items = table.query_all(pk, index="LSI2", prefix=keys.lsi2_run_prefix())
        every += [runs.outline(runs.of_item(item, experiment)) for item in items]
    rows = [run for run in every if run.lifecycle_stage in stages and matches(run)]
    return [run.run_id for run in sorted(rows, key=key)]


def all_pages(api: Api, search: dict[str, Any], processes: Processes) -> list[str] | str:
    """All pages, each from any process."""
    run_ids: list[str] = []
    token = ""
    while True:
        processes.switch()
        reply = api.ask("POST", "runs/search", **search, page_token=token)
        if reply.status == 400:
            return REFUSED
        assert reply.status == 200, (search, reply)
        page = [run["info"]["run_id"] for run in reply.body.get("runs", [])]
        assert len(page) <= search["max_results"]
        run_ids += page
        token = reply.body.get("next_page_token", "")
        if not token:
            return run_ids
