"""Delivers stream records to the indexer, and compares the indexes with what the API answers."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import indexer.app
from indexer.ranks import rank_rows, rank_segments
from mlcore.db import keys
from mlcore.db.sortable import double_of_inverted_bits
from mlcore.db.table import Table, key_of_item
from mlcore.models.runs import Run
from mlcore.models.search_index import RankRows
from mlcore.observability import logger
from mlcore.repos.runs.core import marks, runs
from mlcore.repos.runs.ranks import metric_ranks as run_ranks
from mlcore.repos.runs.ranks import rank_columns
from tests.contract.api import Api
from tests.contract.conftest import Store
from tests.contract.streams import Record, Stream


class Broken(Exception):
    """What a chosen call of the table ends in."""


@contextlib.contextmanager
def failing(at: int | None) -> Iterator[None]:
    """The ``at``-th call of the table fails."""
    original = Table._call
    calls = itertools.count()

    def fail_once(self: Table, operation: str, **parameters: Any) -> dict[str, Any]:
        if next(calls) == at:
            raise Broken(operation)
        return original(self, operation, **parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "_call", fail_once)
        patch.setattr(logger, "exception", lambda *_args, **_more: None)
        yield


def deliver(records: list[Record], failing_call: int | None = None) -> int:
    """Gives a batch to the indexer; how many of its records from the first on it has handled."""
    with failing(failing_call):
        try:
            answer = indexer.app.handler({"Records": records}, None)
        except indexer.app.NothingIndexed:
            return 0
    for failure in answer["batchItemFailures"]:
        numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
        return numbers.index(failure["itemIdentifier"])
    return len(records)


def ranks_wanted(api: Api, run_ids: list[str]) -> set[tuple[str, ...]]:
    """Told by the API, which reads no index."""
    wanted: set[tuple[str, ...]] = set()
    for run_id in run_ids:
        run = api.run(run_id)
        data = run["data"]
        for metric in data.get("metrics", ()):
            wanted.add(("rank_metric", run_id, metric["key"], str(float(metric["value"]))))
        for param in data.get("params", ()):
            wanted.add(("rank_param", run_id, param["key"], param["value"]))
        for dataset_input in run.get("inputs", {}).get("dataset_inputs", ()):
            dataset = dataset_input["dataset"]
            wanted.add(("dataset_link", run_id, dataset["name"], dataset["digest"]))
    return wanted


def items_of(store: Store, run_ids: list[str]) -> list[dict[str, Any]]:
    """Everything in the partitions of the runs' experiments."""
    places = {keys.experiment(str(runs.locate(run_id))).pk for run_id in run_ids}
    results: list[dict[str, Any]] = []
    for pk in places:
        pages = store.direct.get_paginator("query").paginate(
            TableName=store.table,
            ConsistentRead=True,
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": {"S": pk}},
        )
        results += [item for page in pages for item in page["Items"]]
    return results


def of_experiment(store: Store, experiment_id: str) -> list[dict[str, Any]]:
    return [item for item in store.items() if item["PK"]["S"] == keys.experiment(experiment_id).pk]


def found_by(api: Api, experiment_id: str, condition: str) -> list[str]:
    """The ids of the runs that a search answers."""
    answer = api.post("runs/search", experiment_ids=[experiment_id], filter=condition)
    return [run["info"]["run_id"] for run in answer.get("runs", ())]


def ranked(items: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, int]]:
    """What rows and segments have of each metric and run: the values as texts, and of which version
    they are. Pages without their segment count for nothing, as for a search."""
    results: dict[tuple[str, str], dict[str, int]] = {}
    pages, segments, lists = {}, [], []
    for item in items:
        match item["type"]["S"]:
            case "rank_rows":
                lists += rank_columns.unpack_runs(RankRows.of(item).data).items()
            case "rank_page":
                pages[key_of_item(item)] = run_ranks.page_of(item)
            case "rank_segment":
                segments.append((item["PK"]["S"], run_ranks.segment_of(item)))
    for pk, segment in segments:
        experiment_id = keys.parse(pk, "E#META").fields["experiment_id"]
        places = segment.page_keys(experiment_id)
        lists.append((segment.key, [*(segment.entries or ())]))
        lists += [(segment.key, pages[page_key]) for page_key in places]
    for key, entries in lists:
        for entry in entries:
            values = results.setdefault((key, entry.run_id), {})
            text = str(double_of_inverted_bits(entry.inverted_bits))
            values[text] = max(values.get(text, 0), entry.version)
    return results


def tiny_ranks(patch: pytest.MonkeyPatch, *, tiny: bool = True) -> None:
    """Rows are sorted as soon as they are there, a segment has a page for each value, and two of a
    level are merged, which drops what is older by a millisecond; or all is as it is."""
    if tiny:
        patch.setattr(rank_rows, "MOST_BYTES", 0)
        patch.setattr(rank_rows, "VALUES_EACH", 0)
        patch.setattr(rank_rows, "CHECK_EACH_BYTES", 1)
        patch.setattr(rank_rows, "MINUTE_MS", 1)
        patch.setattr(rank_columns, "CLOCKS_MINUTES", 0)
        patch.setattr(rank_segments, "MERGED", 2)
        patch.setattr(run_ranks, "PAGE_ENTRIES", 1)


def with_ranked_run(api: Api, experiment_id: str, stream: Stream, *metrics: str) -> str:
    """A run whose metrics are ranked by now: what is sorted next is merged with them, if ranks are
    tiny. Its id."""
    run_id = api.new_run(experiment_id)
    points = [{"key": key, "value": 1, "timestamp": 0, "step": 0} for key in metrics]
    api.post("runs/log-batch", run_id=run_id, metrics=points)
    api.end(run_id)
    records = stream.fresh()
    assert deliver(records) == len(records)
    return run_id


def ranked_of(store: Store, run_id: str) -> dict[str, set[str]]:
    """The values of a run that rows and segments have, by metric."""
    ranks = ranked(items_of(store, [run_id]))
    return {key: {*values} for (key, of), values in ranks.items() if of == run_id}


def ranks_found(store: Store, run_ids: list[str]) -> set[tuple[str, ...]]:
    """RANK items and links; of what rows and segments have of a run, what is of its latest
    version."""
    items = items_of(store, run_ids)
    ranks: list[tuple[str, ...]] = [
        ("rank_metric", run_id, key, max(values, key=lambda text: values[text]))
        for (key, run_id), values in ranked(items).items()
        if run_id in run_ids
    ]
    for item in items:
        kind = item["type"]["S"]
        if kind not in {"rank_metric", "rank_param", "dataset_link"}:
            continue
        if item["run_id"]["S"] in run_ids:
            names = ("name", "digest") if kind == "dataset_link" else ("key", "value")
            texts = [item[name]["S"] for name in names]
            if kind == "rank_metric":
                texts[1] = str(float(texts[1]))
            ranks.append((kind, item["run_id"]["S"], *texts))
    assert len(ranks) == len(set(ranks))
    return set(ranks)


def marked(store: Store) -> set[str]:
    """The ids of the runs whose marks are to be taken away."""
    return {
        item["run_id"]["S"]
        for item in store.items()
        if item["type"]["S"] == "run" and marks.since(Run.of(item))
    }


def is_marked(item: dict[str, Any]) -> bool:
    """Whether a search looks at a run itself, whatever the indexes say."""
    return marks.since(Run.of(item)) is not None


def marked_or_ranked(store: Store, api: Api, run_ids: list[str]) -> None:
    """What a search relies on: a run without a mark has all its ranks, perhaps old ones too."""
    items = [item for item in items_of(store, run_ids) if item["type"]["S"] == "run"]
    marked_ids = {item["run_id"]["S"] for item in items if is_marked(item)}
    relied = [run_id for run_id in run_ids if run_id not in marked_ids]
    missing = ranks_wanted(api, relied) - ranks_found(store, relied)
    assert not {entry for entry in missing if entry[0] != "dataset_link"}
