"""What a search relies on holds after every single DynamoDB call, whoever makes it: a run without a
mark has every index item that it asks for.

Writers, the indexer and a rebuild meet in every order of their calls; some are killed on the way.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.full_text import dictionary_page
from indexer.projection.child_items import Writes
from indexer.verification import expected_items, partition_scan, rebuild
from indexer.verification.expected_items import ItemDifference
from mlcore.db import keys
from mlcore.db.table import Table, key_of_item
from mlcore.errors import TemporarilyUnavailable
from mlcore.repos import document, text_index_state
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples
from tests.contract.index_state import deliver, is_marked, ranked, tiny_ranks, with_ranked_run
from tests.contract.interleaved_calls import interleaved
from tests.contract.streams import Record, Stream, following

_names = itertools.count()

Act = tuple[str, str, Any]

KEYS = st.sampled_from(["a", "b"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("metric"), KEYS, st.sampled_from([1, 2, "NaN"])),
        st.tuples(st.just("metric"), KEYS, st.sampled_from([1, 2, "NaN"])),
        st.tuples(st.just("param"), KEYS, st.sampled_from(["x", "y" * 200])),
        st.tuples(st.just("tag"), KEYS, st.sampled_from(["annie", "bob", "z" * 200])),
        st.tuples(st.just("untag"), KEYS, st.none()),
        st.tuples(st.just("name"), st.just(""), st.sampled_from(["anna", "hannah"])),
        st.tuples(st.just("input"), KEYS, st.none()),
        st.tuples(st.just("create"), KEYS, st.sampled_from(["annie", "bob"])),
        st.tuples(st.just("status"), KEYS, st.sampled_from(["FINISHED", "RUNNING"])),
        st.tuples(st.just("status"), KEYS, st.sampled_from(["FINISHED", "FAILED"])),
    ),
    min_size=1,
    max_size=4,
)
RELIED_UPON = {"rank_metric", "rank_param", "dataset_link", "fts"}
"""What searches read; FTS_REV items are for looking after the others."""
DEATHS = st.dictionaries(st.integers(0, 3), st.integers(1, 25), max_size=2)


class Watch:
    """Looks at the table past the product, and notes the runs that lack an index item but have no
    mark."""

    def __init__(self, store: Store, experiment_id: str) -> None:
        self._store = store
        self._experiment_id = experiment_id
        self.faults: list[str] = []

    def __call__(self) -> None:
        items = self._items()
        there = {key_of_item(item) for item in items}
        for (key, run_id), values in ranked(items).items():
            there |= {keys.rank_metric(self._experiment_id, key, float(v), run_id) for v in values}
        marked = {
            item["run_id"]["S"] for item in items if item["type"]["S"] == "run" and is_marked(item)
        }
        (experiment,) = [item for item in items if item["type"]["S"] == "experiment"]
        indexed = text_index_state.covered_fields(experiment)
        pages = [item for item in items if item["type"]["S"] == "fts_texts"]
        listed = dictionary_page.texts_of(pages[0] if pages else None)
        for item in items:
            if item["type"]["S"] == "run" and item["run_id"]["S"] not in marked:
                run = (self._experiment_id, item["run_id"]["S"])
                expected = expected_items.of_run(run, item, {}, indexed)
                self.faults += [
                    key.sk
                    for key, wanted in partition_scan.with_dictionary(expected, listed).items()
                    if wanted["type"]["S"] in RELIED_UPON and key not in there
                ]

    def _items(self) -> list[dict[str, Any]]:
        pages = self._store.direct.get_paginator("query").paginate(
            TableName=self._store.table,
            ConsistentRead=True,
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": {"S": keys.experiment(self._experiment_id).pk}},
        )
        return [item for page in pages for item in page["Items"]]


@pytest.mark.parametrize(("inline_bytes", "room"), [(300_000, 3_500), (300, 50), (300_000, 0)])
@examples(10)
@given(
    writers=st.tuples(ACTS, ACTS),
    rebuilds=st.integers(0, 2),
    order=st.lists(st.integers(0, 3), max_size=120),
    deaths=DEATHS,
    tiny=st.booleans(),
)
def test_a_run_is_marked_or_indexed_after_each_call(
    shared_store: Store,
    inline_bytes: int,
    room: int,
    writers: tuple[list[Act], list[Act]],
    rebuilds: int,
    order: list[int],
    deaths: dict[int, int],
    tiny: bool,
) -> None:
    api = shared_store.api
    with following(shared_store) as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "INLINE_BYTES", inline_bytes)
        patch.setattr(dictionary_page, "ROOM", room)
        patch.setattr(rebuild, "PATIENCE_SECONDS", 0)
        tiny_ranks(patch, tiny=tiny)
        stream.fresh()
        experiment_id = api.new_experiment(f"marked {next(_names)}")
        with_ranked_run(api, experiment_id, stream, "a", "b")
        run_id = api.new_run(experiment_id)
        api.post("runs/log-metric", run_id=run_id, key="a", value=1, timestamp=1, step=0)
        left: list[Record] = []
        steps = itertools.count(1)
        watch = Watch(shared_store, experiment_id)
        actors = [
            *(writer(api, experiment_id, run_id, acts, steps) for acts in writers),
            indexer(stream, left),
            rebuilder(experiment_id, rebuilds),
        ]
        interleaved(order, actors, after=watch, deaths=deaths)
        assert watch.faults == []
        api.end(run_id)
        left += stream.fresh()
        assert deliver(left) == len(left)
        watch()
        rebuild.reindex(experiment_id)
        watch()
        assert watch.faults == []
        assert rebuild.verify(experiment_id, patience=0).findings == []


def test_a_rebuild_spares_what_came_back(
    shared_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A metric leaves a value, a rebuild notes its old RANK item as surplus, the metric returns to
    the value and the indexer follows, all before the rebuild removes what it noted."""
    api = shared_store.api
    experiment_id = api.new_experiment(f"marked {next(_names)}")
    run_id = api.new_run(experiment_id)
    watch = Watch(shared_store, experiment_id)
    decide = rebuild._repairing

    def log(value: int, step: int) -> None:
        api.post("runs/log-metric", run_id=run_id, key="a", value=value, timestamp=1, step=step)
        api.end(run_id)

    with following(shared_store) as stream:
        stream.fresh()
        log(1, 0)
        assert deliver(stream.fresh()) > 0
        log(2, 1)

        def meanwhile(findings: Sequence[ItemDifference]) -> Writes:
            surplus = any(finding.problem == expected_items.SURPLUS for finding in findings)
            if surplus and api.data(run_id)["metrics"]["a"][2] == 1:
                log(1, 2)
                assert deliver(stream.fresh()) > 0
            return decide(findings)

        call = Table._call

        def watched(self: Table, operation: str, **parameters: Any) -> dict[str, Any]:
            answer = call(self, operation, **parameters)
            watch()
            return answer

        monkeypatch.setattr(rebuild, "_repairing", meanwhile)
        monkeypatch.setattr(Table, "_call", watched)
        rebuild.reindex(experiment_id)
    assert watch.faults == []


def writer(
    api: Api, experiment_id: str, run_id: str, acts: list[Act], steps: Any
) -> Callable[[], None]:
    def write() -> None:
        for what, key, value in acts:
            match what:
                case "create":
                    api.new_run(experiment_id, run_name=value, tags=pairs({key: value}))
                case "metric":
                    point = {"key": key, "value": value, "timestamp": 1, "step": next(steps)}
                    api.ask("POST", "runs/log-metric", run_id=run_id, **point)
                case "param":
                    texts = pairs({key: value})
                    api.ask("POST", "runs/log-batch", run_id=run_id, params=texts)
                case "tag":
                    api.ask("POST", "runs/set-tag", run_id=run_id, key=key, value=value)
                case "untag":
                    api.ask("POST", "runs/delete-tag", run_id=run_id, key=key)
                case "name":
                    api.ask("POST", "runs/update", run_id=run_id, run_name=value)
                case "status":
                    api.ask("POST", "runs/update", run_id=run_id, status=value)
                case "input":
                    dataset = {"name": key, "digest": "d", "source_type": "s", "source": "u"}
                    inputs = [{"dataset": dataset}]
                    api.ask("POST", "runs/log-inputs", run_id=run_id, datasets=inputs)

    return write


def indexer(stream: Stream, left: list[Record]) -> Callable[[], None]:
    def follow() -> None:
        for _ in range(5):
            left.extend(stream.fresh())
            done = deliver(list(left))
            del left[:done]

    return follow


def rebuilder(experiment_id: str, times: int) -> Callable[[], None]:
    def repair() -> None:
        for _ in range(times):
            with contextlib.suppress(TemporarilyUnavailable):
                rebuild.reindex(experiment_id)

    return repair
