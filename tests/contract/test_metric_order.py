"""Searches by the order of a metric over two experiments answer what looking at every run answers,
while the indexer follows, sorts and merges between any two of their DynamoDB calls."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexer.projection import quiet_runs
from indexer.ranks import rank_rows
from mlcore.process_cache import clear
from mlcore.repos import index_candidates
from mlcore.repos.runs.core import marked_runs
from mlcore.repos.runs.ranks import metric_ranks as run_ranks
from mlcore.repos.runs.search import run_search
from tests.contract.api import Api
from tests.contract.conftest import Store, examples
from tests.contract.explain import explained
from tests.contract.index_state import deliver, tiny_ranks
from tests.contract.interleaved_calls import Killed, interleaved
from tests.contract.streams import Record, following

SEARCHER, INDEXER, SORTER = range(3)
_names = itertools.count()


class Planned(NamedTuple):
    """A run as it is before the search begins."""

    value: float | None
    """Of the metric; None for a run that lacks it."""
    followed: bool
    """Whether the indexer has followed it."""
    ended: bool
    former: float | None
    """A value that was ranked before."""


class Made(NamedTuple):
    run_id: str
    start_time: int
    value: float | None


values = st.sampled_from([1.0, 2.0, 2.0, 3.0, math.nan, math.inf, None, None])
planned = st.builds(Planned, values, st.booleans(), st.booleans(), st.none() | st.just(9.0))


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is sorted, each second segment is merged, and searches ask the index."""
    tiny_ranks(monkeypatch)
    monkeypatch.setattr(run_ranks, "PAGE_ENTRIES", 2)
    monkeypatch.setattr(run_ranks, "PAGE_IDS", 4)
    monkeypatch.setattr(index_candidates, "PAGE_IDS", 4)
    monkeypatch.setattr(marked_runs, "MARKS_PAGE", 2)
    monkeypatch.setattr(run_search, "SMALL_RUNS", 0)
    monkeypatch.setattr(run_search, "FURTHER_RANKS", 1)
    monkeypatch.setattr(quiet_runs, "QUIET_MS", -3_600_000)


@pytest.fixture(scope="module")
def ways() -> Iterator[set[str]]:
    """How searches of the module found what they found."""
    results: set[str] = set()
    yield results
    assert results >= {"MetricOrder", "all"}


RANKED = [Planned(float(value), True, True, None) for value in range(1, 7)]


@examples(10)
@example((RANKED, RANKED), False, 1, True, [], {}, 0)
@given(
    plans=st.tuples(*[st.lists(planned, min_size=1, max_size=6)] * 2),
    ascending=st.booleans(),
    size=st.sampled_from([1, 2, 5, 6]),
    remembers=st.booleans(),
    order=st.lists(st.sampled_from([SEARCHER, INDEXER, SORTER]), max_size=150),
    deaths=st.dictionaries(st.sampled_from([INDEXER, SORTER]), st.integers(1, 40), max_size=2),
    seed=st.integers(0, 2**16),
)
def test_a_search_of_two_experiments_beside_the_indexer(
    shared_store: Store,
    ways: set[str],
    plans: tuple[list[Planned], list[Planned]],
    ascending: bool,
    size: int,
    remembers: bool,
    order: list[int],
    deaths: dict[int, int],
    seed: int,
) -> None:
    """Nobody changes a run meanwhile, so every search has one right answer."""
    api, chance = shared_store.api, random.Random(seed)
    beside = [random.Random(f"{seed} {actor}") for actor in range(3)]
    left: list[Record] = []
    with following(shared_store) as stream, explained() as how:
        stream.fresh()

        def follow() -> None:
            left.extend(stream.fresh())
            done = deliver(list(left))
            del left[:done]

        places = [api.new_experiment(f"ordered {next(_names)}") for _ in plans]
        made: list[Made] = []
        for followed in (True, False):
            for experiment_id, runs in zip(places, plans, strict=True):
                for run in runs:
                    if run.followed is followed:
                        made.append(write(api, experiment_id, run, chance, follow))
            if followed:
                follow()
        if remembers:
            ordered(api, places, ascending=ascending, size=size)
        else:
            clear()

        def search() -> None:
            for pages in (size, 100):
                run_ids = ordered(api, places, ascending=ascending, size=pages)
                assert run_ids == expected(made, ascending=ascending)

        def index() -> None:
            for _ in range(3):
                with contextlib.suppress(Killed):
                    follow()
                    quiet_runs.sweep()

        def sort() -> None:
            for experiment_id in places * 2:
                with contextlib.suppress(Killed):
                    rank_rows.sort_all(experiment_id)

        interleaved(
            order,
            [search, index, sort],
            deaths=deaths,
            beside=lambda actor, count: beside[actor].sample(range(count), count),
        )
        follow()
        assert left == []
        search()
        ways.update(explanation.how for explanation in how)


def test_metrics_that_only_marked_runs_have(shared_store: Store) -> None:
    """No entry is read, so what comes first among the marked runs is all that is known: not enough
    where runs that lack the metric are among it, for others that lack it may come before them."""
    api, chance = shared_store.api, random.Random(5)
    places = [api.new_experiment(f"ordered {next(_names)}") for _ in range(2)]
    metrics = [f"m{number}" for number in range(16)]
    made: list[tuple[Made, dict[str, float]]] = []
    with following(shared_store) as stream:
        stream.fresh()
        for experiment_id in places:
            for _ in range(3):
                made.append(
                    (write(api, experiment_id, Planned(None, True, True, None), chance), {})
                )
        deliver(stream.fresh())
    for experiment_id in places:
        for _ in range(7):
            run = write(api, experiment_id, Planned(None, False, False, None), chance)
            has = {key: float(chance.randrange(3)) for key in metrics if chance.random() < 0.3}
            points = [{"key": key, "value": has[key], "timestamp": 1, "step": 0} for key in has]
            api.post("runs/log-batch", run_id=run.run_id, metrics=points)
            made.append((run, has))
    for key in metrics:
        runs = [run._replace(value=has.get(key)) for run, has in made]
        for ascending in (True, False):
            run_ids = ordered(api, places, ascending=ascending, size=5, key=key)
            assert run_ids == expected(runs, ascending=ascending)


def write(
    api: Api,
    experiment_id: str,
    run: Planned,
    chance: random.Random,
    follow: Callable[[], None] = lambda: None,
) -> Made:
    start_time = chance.randrange(5)
    created = api.post("runs/create", experiment_id=experiment_id, start_time=start_time)
    run_id: str = created["run"]["info"]["run_id"]
    if run.former is not None and run.value is not None:
        log(api, run_id, run.former, 0)
        api.end(run_id)
        follow()
    if run.value is not None:
        log(api, run_id, run.value, 1)
    if run.ended or run.followed:
        api.end(run_id)
    return Made(run_id, start_time, run.value)


def log(api: Api, run_id: str, value: float, step: int) -> None:
    shown = value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity"
    api.post("runs/log-metric", run_id=run_id, key="m", value=shown, timestamp=1, step=step)


def ordered(
    api: Api, experiment_ids: Sequence[str], *, ascending: bool, size: int, key: str = "m"
) -> list[str]:
    """The ids of all pages."""
    results: list[str] = []
    query: dict[str, Any] = {
        "experiment_ids": experiment_ids,
        "order_by": [f"metrics.{key} {'ASC' if ascending else 'DESC'}"],
        "max_results": size,
    }
    while True:
        answer = api.post("runs/search", **query)
        results += [run["info"]["run_id"] for run in answer.get("runs", ())]
        if "next_page_token" not in answer:
            return results
        query["page_token"] = answer["next_page_token"]


def expected(runs: Sequence[Made], *, ascending: bool) -> list[str]:
    """By value, NaN behind the numbers, runs without one last; then the latest start, then id."""

    def position(run: Made) -> tuple[int, float, int, str]:
        if run.value is None:
            return 2, 0, -run.start_time, run.run_id
        if math.isnan(run.value):
            return 1, 0, -run.start_time, run.run_id
        return 0, run.value if ascending else -run.value, -run.start_time, run.run_id

    return [run.run_id for run in sorted(runs, key=position)]
