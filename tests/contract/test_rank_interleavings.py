"""Searches by a metric find every run, while others put, sort, merge, remove and rebuild what ranks
it, whichever DynamoDB call comes next, and some die on the way."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.ranks import rank_rows, rank_segments
from indexer.verification import rebuild
from mlcore.db import keys
from mlcore.db.sortable import inverted_double_bits
from mlcore.db.table import key_of_item, table
from mlcore.errors import TemporarilyUnavailable
from mlcore.repos import index_candidates
from mlcore.repos.runs.ranks import metric_ranks as run_ranks
from mlcore.repos.runs.ranks.rank_columns import RunRanks
from mlcore.repos.runs.search import run_search
from mlcore.search.run_plan import MetricRange
from tests.contract.api import Api
from tests.contract.conftest import Store, examples
from tests.contract.explain import explained
from tests.contract.index_state import deliver, tiny_ranks
from tests.contract.interleaved_calls import Killed, interleaved
from tests.contract.streams import Record, Stream, following

_names = itertools.count()

VALUES = (1, 2, 3, 4, 5, "NaN", "Infinity", -0.0, 0)
QUERIES: tuple[tuple[str, list[str]], ...] = (
    ("metrics.m > 2", []),
    ("metrics.m = 0", []),
    ("metrics.m < 3", []),
    ("", ["metrics.m DESC"]),
    ("", ["metrics.m ASC"]),
)
SEARCHER, INDEXER, REBUILDER, WRITER = range(4)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is sorted, each second one merged, and searches ask the index."""
    tiny_ranks(monkeypatch)
    monkeypatch.setattr(run_ranks, "PAGE_ENTRIES", 2)
    monkeypatch.setattr(run_ranks, "PAGE_IDS", 4)
    monkeypatch.setattr(run_search, "SMALL_RUNS", 0)
    monkeypatch.setattr(run_search, "FURTHER_RANKS", 1)
    monkeypatch.setattr(rebuild, "PATIENCE_SECONDS", 0)


@pytest.fixture(scope="module")
def ways() -> Iterator[set[str]]:
    """How searches of the module found what they found."""
    results: set[str] = set()
    yield results
    assert results >= {"MetricRange", "MetricOrder"}


class Settled(NamedTuple):
    experiment_id: str
    runs: Mapping[str, float]
    """Their values, by id."""


@pytest.fixture(scope="module")
def settled(shared_store: Store) -> Settled:
    """Runs that are not marked."""
    api, left = shared_store.api, list[Record]()
    with following(shared_store) as stream:
        stream.fresh()
        experiment_id = api.new_experiment(f"ranked {next(_names)}")
        runs = {api.new_run(experiment_id): value for value in (1, 2, 3, 3, 4, 5, "NaN", -0.0)}
        for run_id, value in runs.items():
            log(api, run_id, value, 1)
        follow(stream, left)
    assert left == []
    # As they are stored, where -0.0 is 0.0.
    return Settled(experiment_id, {run_id: float(value) + 0.0 for run_id, value in runs.items()})


@examples(30)
@given(
    groups=st.lists(st.integers(0, 3), min_size=8, max_size=8),
    queries=st.lists(st.sampled_from(QUERIES), min_size=1, max_size=2),
    order=st.lists(st.sampled_from([0, 0, 1, 1, 2]), min_size=60, max_size=90),
    deaths=st.dictionaries(st.integers(1, 2), st.integers(1, 25), max_size=1),
    seed=st.integers(0, 2**16),
)
def test_a_search_beside_sortings(
    shared_store: Store,
    ways: set[str],
    settled: Settled,
    groups: list[int],
    queries: list[tuple[str, list[str]]],
    order: list[int],
    deaths: dict[int, int],
    seed: int,
) -> None:
    """Two sort and merge at once, and clean up, what ranks runs that nobody changes."""
    experiment_id, runs = settled
    clear(experiment_id)
    of_runs = [
        RunRanks(run_id, 9, 9, {"m": inverted_double_bits(value)}) for run_id, value in runs.items()
    ]
    for group in range(4):
        # Some are sorted before, some twice, some are rows yet.
        rank_rows.put({experiment_id: [of_runs[at] for at in range(8) if groups[at] == group]})
        if group < 2:
            rank_rows.sort_all(experiment_id)
    before = [ranks._replace(version=1, minute=1) for ranks in of_runs[:3]]
    chances = [random.Random(f"{seed} {actor}") for actor in range(3)]

    def sort() -> None:
        for ranks in before:
            with contextlib.suppress(Killed):
                rank_rows.sort_all(experiment_id)
                rank_rows.put({experiment_id: [ranks]})

    def clean() -> None:
        for _ in range(2):
            with contextlib.suppress(Killed):
                rank_rows.sort_all(experiment_id)
                rank_segments.remove_stale(experiment_id)

    interleaved(
        order,
        [lambda: check(shared_store.api, experiment_id, runs, queries), sort, clean],
        deaths=deaths,
        beside=lambda actor, count: chances[actor].sample(range(count), count),
    )
    with explained() as how:
        check(shared_store.api, experiment_id, runs, QUERIES)
    ways.update(explanation.how for explanation in how)


def check(
    api: Api,
    experiment_id: str,
    there: Mapping[str, float],
    queries: Sequence[tuple[str, list[str]]],
) -> None:
    """Searches find of some runs what matches, in its order, and nothing else."""
    for text, ordering in queries:
        runs = [run for run in searched(api, experiment_id, text, ordering) if run in there]
        wanted = {run for run, value in there.items() if matches(text, value)}
        assert len(runs) == len(set(runs))
        assert set(runs) == wanted, (text, ordering)
        if ordering:
            positions = [
                sort_position(there[run], descending="DESC" in ordering[0]) for run in runs
            ]
            assert positions == sorted(positions)


@examples(5)
@given(
    values=st.lists(st.sampled_from(VALUES), min_size=4, max_size=8),
    followed=st.integers(0, 8),
    changes=st.lists(st.sampled_from(VALUES), max_size=3),
    queries=st.lists(st.sampled_from(QUERIES), min_size=1, max_size=4),
    rebuilds=st.integers(0, 1),
    order=st.lists(st.sampled_from([0, 0, 1, 1, 1, 2, 3]), max_size=250),
    deaths=st.dictionaries(st.sampled_from([INDEXER, REBUILDER]), st.integers(1, 40), max_size=2),
    seed=st.integers(0, 2**16),
)
def test_a_search_finds_what_is_there(
    shared_store: Store,
    ways: set[str],
    values: list[Any],
    followed: int,
    changes: list[Any],
    queries: list[tuple[str, list[str]]],
    rebuilds: int,
    order: list[int],
    deaths: dict[int, int],
    seed: int,
) -> None:
    """Of the runs some are in segments, others only marked; one more changes on and on."""
    api = shared_store.api
    chances = [random.Random(f"{seed} {actor}") for actor in range(4)]
    with following(shared_store) as stream, explained() as how:
        stream.fresh()
        experiment_id = api.new_experiment(f"ranked {next(_names)}")
        there: dict[str, float] = {}
        left: list[Record] = []
        for position, value in enumerate(values):
            run_id = api.new_run(experiment_id)
            # What it had before is ranked, too.
            if position < followed and position % 3 == 0:
                log(api, run_id, 3, 0)
                follow(stream, left)
            log(api, run_id, value, 1)
            there[run_id] = float(value)
            if position < followed:
                follow(stream, left)
        restless = api.new_run(experiment_id)

        def search() -> None:
            check(api, experiment_id, there, queries)

        def index() -> None:
            for _ in range(4):
                with contextlib.suppress(Killed):
                    follow(stream, left)

        def repair() -> None:
            for _ in range(rebuilds):
                with contextlib.suppress(Killed, TemporarilyUnavailable):
                    rebuild.reindex(experiment_id)

        def write() -> None:
            for step, value in enumerate(changes):
                log(api, restless, value, step)

        actors: list[Callable[[], None]] = [search, index, repair, write]
        interleaved(
            order,
            actors,
            deaths=deaths,
            beside=lambda actor, count: chances[actor].sample(range(count), count),
        )
        follow(stream, left)
        assert left == []
        search()
        rebuild.reindex(experiment_id)
        search()
        assert rebuild.verify(experiment_id, patience=0).findings == []
        ways.update(explanation.how for explanation in how)


def log(api: Api, run_id: str, value: Any, step: int) -> None:
    api.post("runs/log-metric", run_id=run_id, key="m", value=value, timestamp=1, step=step)
    api.end(run_id)


def follow(stream: Stream, left: list[Record]) -> None:
    left += stream.fresh()
    done = deliver(list(left))
    del left[:done]


def searched(api: Api, experiment_id: str, text: str, ordering: list[str]) -> list[str]:
    """The ids of all pages."""
    results: list[str] = []
    fields: dict[str, Any] = {"filter": text, "order_by": ordering, "max_results": 2}
    while True:
        answer = api.post("runs/search", experiment_ids=[experiment_id], **fields)
        results += [run["info"]["run_id"] for run in answer.get("runs", ())]
        if "next_page_token" not in answer:
            return results
        fields["page_token"] = answer["next_page_token"]


def matches(text: str, value: float) -> bool:
    if not text:
        return True
    _, operator, number = text.split()
    wanted = float(number)
    return {">": value > wanted, "=": value == wanted, "<": value < wanted}[operator]


def sort_position(value: float, *, descending: bool) -> tuple[bool, float]:
    """NaN is last in either direction."""
    if value != value:  # noqa: PLR0124
        return True, 0.0
    return False, -value if descending else value


@pytest.mark.parametrize("backwards", [False, True])
def test_rows_that_are_sorted_between_two_reads(shared_store: Store, *, backwards: bool) -> None:
    """What may be read side by side is read in either order, and between two of these reads rows
    become a segment, whole."""
    experiment_id = shared_store.api.new_experiment(f"ranked {next(_names)}")
    run_id = "5e" * 16
    places = {"m": inverted_double_bits(1.0), "n": inverted_double_bits(2.0)}
    for at in range(4):
        rank_rows.put({experiment_id: [RunRanks(run_id, 1, 1, places)]})
        ranks = run_ranks.Ranks(experiment_id, ["m", "n"])
        calls = ranks.reads()
        for number, call in enumerate(reversed(calls) if backwards else calls):
            if number == at:
                rank_rows.sort_all(experiment_id)
            call()
        candidates = run_ranks.MetricCandidates(ranks, MetricRange("m", 1.0, 1.0))
        if at >= len(calls):
            rank_rows.sort_all(experiment_id)
        while not candidates.done:
            index_candidates.read_next_pages([candidates])
        assert keys.run(experiment_id, run_id).sk in candidates.sort_keys()
        clear(experiment_id)


def clear(experiment_id: str) -> None:
    """No ranks are left."""
    pk = keys.experiment(experiment_id).pk
    rows = table.query_all(pk, prefix=keys.rank_rows_prefix())
    table.batch_write(deletes=list(map(key_of_item, rows)))
    for segment in list(run_ranks.every_segment(experiment_id)):
        rank_segments.remove(experiment_id, [segment], segment.page_keys(experiment_id))
