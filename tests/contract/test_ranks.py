"""Ranks of settled runs: what becomes of many sortings, of segments that lack a page, and what it
all costs."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from indexer.ranks import rank_rows, rank_segments
from indexer.verification import expected_items, rebuild
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.sortable import inverted_double_bits
from mlcore.db.table import key_of_item, table
from mlcore.models.search_index import RankMetric
from mlcore.process_cache import clear
from mlcore.repos import document, index_candidates
from mlcore.repos.runs.ranks import metric_ranks as run_ranks
from mlcore.repos.runs.ranks.rank_columns import Ranked, RunRanks
from mlcore.repos.runs.search import run_search
from operate import collection_sizes
from tests.contract.conftest import Store
from tests.contract.explain import explained
from tests.contract.index_state import (
    deliver,
    found_by,
    of_experiment,
    ranked,
    ranked_of,
    tiny_ranks,
)
from tests.contract.streams import following


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is sorted, eight of them are merged, and all but three values are on pages."""
    merged = rank_segments.MERGED
    tiny_ranks(monkeypatch)
    monkeypatch.setattr(rank_segments, "MERGED", merged)
    monkeypatch.setattr(run_ranks, "PAGE_ENTRIES", 2)
    monkeypatch.setattr(run_search, "SMALL_RUNS", 0)


def kinds(items: Sequence[Raw]) -> Counter[str]:
    return Counter(item["type"]["S"] for item in items if item["type"]["S"].startswith("rank_"))


def ranked_runs(store: Store, experiment_id: str) -> list[str]:
    """Makes six runs whose metric is in a segment of three pages; all have the parameter ``p``."""
    api = store.api
    made: list[str] = []
    with following(store) as stream:
        for value in (3, 1, 2, "NaN", 5, 4):
            made.append(api.new_run(experiment_id))
            api.post("runs/log-metric", run_id=made[-1], key="m", value=value, timestamp=1, step=0)
            api.post("runs/log-parameter", run_id=made[-1], key="p", value="x")
            api.end(made[-1])
        assert deliver(stream.fresh())
    assert kinds(of_experiment(store, experiment_id))["rank_page"] == 3
    return made


def lose_page(store: Store, experiment_id: str, number: int) -> None:
    (page,) = [
        item
        for item in of_experiment(store, experiment_id)
        if item["type"]["S"] == "rank_page" and item["SK"]["S"].endswith(f"{number}")
    ]
    key = {"PK": page["PK"], "SK": page["SK"]}
    store.direct.delete_item(TableName=store.table, Key=key)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("page", [2, 1000])
def test_searches_of_two_conditions_end_if_the_index_of_one_lacks_a_page(
    store: Store, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """The other condition matches more runs than the index of the first one has entries."""
    monkeypatch.setattr(index_candidates, "PAGE_IDS", page)
    monkeypatch.setattr(run_ranks, "PAGE_IDS", page)
    monkeypatch.setattr(index_candidates, "FEW", 1)
    experiment_id = store.api.new_experiment("damaged")
    made = ranked_runs(store, experiment_id)
    for number in range(3):
        lose_page(store, experiment_id, number)
    wanted = {"metrics.m > 4 and params.p = 'x'": [4], "metrics.m < 2 and metrics.m > 0": [1]}
    for text, runs in wanted.items():
        answer = store.api.post("runs/search", experiment_ids=[experiment_id], filter=text)
        assert [run["info"]["run_id"] for run in answer["runs"]] == [made[n] for n in runs]


@pytest.mark.usefixtures("tiny")
def test_segments_that_lack_a_page(store: Store) -> None:
    """Searches go another way and stay exact, until somebody rebuilds."""
    api = store.api
    experiment_id = api.new_experiment("damaged")
    made = ranked_runs(store, experiment_id)

    def search(how: dict[str, str]) -> None:
        wanted = {
            ("metrics.m > 4", ""): [4],
            ("metrics.m = 1", ""): [1],
            ("", "metrics.m DESC"): [4, 5],
            ("", "metrics.m ASC"): [1, 2],
        }
        for (text, ordering), runs in wanted.items():
            with explained() as explanations:
                answer = api.post(
                    "runs/search",
                    experiment_ids=[experiment_id],
                    filter=text,
                    order_by=[ordering] if ordering else [],
                    max_results=2,
                )
            assert [run["info"]["run_id"] for run in answer["runs"]] == [made[n] for n in runs]
            assert [explanation.how for explanation in explanations] == [
                how["order" if ordering else "range"]
            ]

    search({"range": "MetricRange", "order": "MetricOrder"})
    assert rebuild.verify(experiment_id, patience=0).findings == []
    # The pages of the greatest and of the least values, and of NaN.
    for number in (0, 2):
        lose_page(store, experiment_id, number)
    search({"range": "all", "order": "all"})
    lacking = {finding.key.sk for finding in rebuild.verify(experiment_id, patience=0).findings}
    assert lacking == {
        keys.rank_metric(experiment_id, "m", value, made[at]).sk
        for value, at in ((5, 4), (4, 5), (1, 1), (float("nan"), 3))
    }
    repaired = rebuild.reindex(experiment_id).findings
    assert {(finding.problem, finding.key.sk) for finding in repaired} == {
        (expected_items.MISSING, sort_key) for sort_key in lacking
    }
    assert rebuild.verify(experiment_id, patience=0).findings == []
    search({"range": "MetricRange", "order": "MetricOrder"})


@pytest.mark.usefixtures("tiny")
def test_many_sortings(store: Store) -> None:
    """Segments stay few, no page is without its segment, and what runs had before goes."""
    experiment_id = store.api.new_experiment("sorted")
    chance = random.Random(5)
    current: dict[str, float] = {}
    for turn in range(40):
        minute = 10 * turn
        runs = [f"{chance.randrange(12):032x}" for _ in range(3)]
        settled = []
        for run_id in dict.fromkeys(runs):
            current[run_id] = chance.choice((float(turn), float("nan")))
            places = {"m": inverted_double_bits(current[run_id])}
            settled.append(RunRanks(run_id, turn + 1, minute, places))
        rank_rows.compact_if_due(rank_rows.put({experiment_id: settled}))
        levels = Counter(segment.level for segment in run_ranks.segments(experiment_id, "m"))
        assert all(count < rank_segments.MERGED for count in levels.values())
    assert levels == {2: 40 // rank_segments.MERGED}
    items = of_experiment(store, experiment_id)
    assert kinds(items)["rank_rows"] == 0
    named = {
        page_key
        for segment in run_ranks.every_segment(experiment_id)
        for page_key in segment.page_keys(experiment_id)
    }
    assert {key_of_item(item) for item in items if item["type"]["S"] == "rank_page"} == named
    values = ranked(items)
    for run_id, value in current.items():
        assert str(value) in values["m", run_id]
    # Each of them has what its runs had at last, and once.
    for segment in run_ranks.segments(experiment_id, "m"):
        pages = table.batch_get(segment.page_keys(experiment_id))
        entries = [entry for page in pages if page is not None for entry in run_ranks.page_of(page)]
        entries += segment.entries or ()
        assert len({entry.run_id for entry in entries}) == len(entries) == segment.size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_segments, "MERGED", 2)
        rank_segments.merge(experiment_id, ["m"])
    (last,) = run_ranks.segments(experiment_id, "m")
    assert last.size == len(current)
    counted: Counter[str] = Counter()
    for item in of_experiment(store, experiment_id):
        counted[item["type"]["S"]] += collection_sizes.item_bytes(item)
    assert collection_sizes.collection(experiment_id) == counted
    assert counted.keys() > {"rank_segment", "rank_page", "rank_rows_sorted"}


@pytest.mark.parametrize("together", [1, 10])
def test_a_run_of_fifty_metrics_costs_eight_units(store: Store, together: int) -> None:
    """Rows, sorted and merged; 100 units before there were rows."""
    chance = random.Random(together)
    runs = [
        RunRanks(
            f"{chance.getrandbits(128):032x}",
            1_000 + chance.randrange(9),
            30_000_000 + number,
            {f"train/metric_{n}": inverted_double_bits(chance.random()) for n in range(50)},
        )
        for number in range(300)
    ]
    with table.measure() as cost:
        for at in range(0, len(runs), together):
            rank_rows.compact_if_due(rank_rows.put({"1": runs[at : at + together]}))
    assert cost.write_units <= 8 * len(runs)
    assert {
        key: len({run.run_id for run in ranked_runs})
        for key, ranked_runs in everything("1").items()
    } == {f"train/metric_{n}": 300 for n in range(50)}


def everything(experiment_id: str) -> dict[str, list[Ranked]]:
    results: dict[str, list[Ranked]] = {}
    for key, entries in run_ranks.every(experiment_id):
        results.setdefault(key, []).extend(entries)
    return results


def test_what_searches_read_where_ranks_are_many(store: Store) -> None:
    """Each run of the answer is a read unit; what else is read is little. Once in a process the
    segments are read again."""
    api, chance = store.api, random.Random(4)
    experiment_id = api.new_experiment("of twenty thousand")
    runs_like(store, experiment_id)
    rank_rows.sort_all(experiment_id)
    # As sortings of some sixty runs leave them.
    lengths = [(4, 4_000)] * 4 + [(3, 500)] * 7 + [(2, 60)] * 7
    for number, (level, length) in enumerate(lengths):
        entries = sorted(
            Ranked(
                inverted_double_bits(chance.random()), f"{chance.getrandbits(128):032x}", 1_000, at
            )
            for at in range(length)
        )
        rank_segments.put(
            [rank_segments.segment_items(experiment_id, "m", level, str(number), entries)]
        )
    for fields, way, runs, first in (
        ({"filter": "metrics.m > 4", "max_results": 200}, "MetricRange", 100, 4),
        ({"order_by": ["metrics.m DESC"], "max_results": 90}, "MetricOrder", 90, 5),
    ):
        clear()
        for round_trips, units in ((first, 160), (3, 130)):
            with explained() as how:
                answer = api.post("runs/search", experiment_ids=[experiment_id], **fields)
            assert len(answer["runs"]) == runs
            assert [explanation.how for explanation in how] == [way]
            assert api.cost.read_units <= units
            assert api.cost.round_trips == round_trips


def runs_like(store: Store, experiment_id: str) -> None:
    """A hundred settled runs with one value, and three hundred without: copies of two."""
    api = store.api
    with following(store) as stream:
        made = [api.new_run(experiment_id) for _ in range(2)]
        api.post("runs/log-metric", run_id=made[0], key="m", value=5, timestamp=1, step=0)
        for run_id in made:
            api.end(run_id)
        assert deliver(stream.fresh())
    settled, copies = [], []
    for item in of_experiment(store, experiment_id):
        if item["type"]["S"] != "run":
            continue
        run_id = item["run_id"]["S"]
        for number in range(99 if run_id == made[0] else 300):
            other = f"{made.index(run_id)}{number:031x}"
            copies.append(json.loads(json.dumps(item).replace(run_id, other)))
            if run_id == made[0]:
                settled.append(RunRanks(other, 9, 1, {"m": inverted_double_bits(5.0)}))
    rank_rows.put({experiment_id: settled})
    table.batch_write(copies)


@pytest.mark.usefixtures("tiny")
def test_values_outside_their_run_have_items_of_their_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """METRIC and RANK items of what its run has no room for; all else is in rows."""
    monkeypatch.setattr(document, "INLINE_BYTES", 700)
    api, experiment_id = store.api, store.api.new_experiment("outside")
    names = [f"metric {n:02}" for n in range(20)]
    with following(store) as stream:
        run_id = api.new_run(experiment_id)
        points = [
            {"key": key, "value": value, "timestamp": 0, "step": 0}
            for key, value in {"m": 1, **dict.fromkeys(names, 2)}.items()
        ]
        api.post("runs/log-batch", run_id=run_id, metrics=points)
        api.end(run_id)
        assert deliver(stream.fresh())

    def is_right() -> None:
        items = of_experiment(store, experiment_id)
        outside = {item["key"]["S"] for item in items if "outside" in item}
        singly_ranked = {item["key"]["S"] for item in items if item["type"]["S"] == "rank_metric"}
        assert outside
        assert outside < {*names}
        assert singly_ranked == outside
        assert {item["key"]["S"] for item in items if item["type"]["S"] == "run_metric"} == outside
        assert ranked_of(store, run_id).keys() == {"m", *names} - outside
        assert found_by(api, experiment_id, "metrics.m = 1") == [run_id]
        for name in names:
            assert found_by(api, experiment_id, f"metrics.`{name}` = 2") == [run_id]

    is_right()
    assert rebuild.verify(experiment_id, patience=0).findings == []
    (lost, *_) = [
        key_of_item(item)
        for item in of_experiment(store, experiment_id)
        if item["type"]["S"] == "rank_metric"
    ]
    table.delete(lost)
    (finding,) = rebuild.verify(experiment_id, patience=0).findings
    assert (finding.problem, finding.key) == ("missing", lost)
    assert rebuild.reindex(experiment_id).findings == [finding]
    is_right()
    nobody_asks_for = keys.rank_metric(experiment_id, "m", 7.0, run_id)
    model = RankMetric(
        PK=nobody_asks_for.pk, SK=nobody_asks_for.sk, key="m", value=7.0, run_id=run_id
    )
    table.put(model.serialize())
    (finding,) = rebuild.verify(experiment_id, patience=0).findings
    assert (finding.problem, finding.key) == ("surplus", nobody_asks_for)
    assert rebuild.reindex(experiment_id).findings == [finding]
    is_right()
