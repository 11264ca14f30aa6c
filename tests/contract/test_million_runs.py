"""What a million runs of 50 metrics x 1,000 steps take of the item collection of their experiment,
and cost to write: a few such runs are made and followed, and ranks as large as theirs."""

from __future__ import annotations

import math
import random
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ulid import ULID

from indexer.ranks import rank_rows, rank_segments
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.sortable import inverted_double_bits
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.models.search_index import RankRows
from mlcore.repos.runs.history import history_files
from mlcore.repos.runs.ranks import rank_columns
from mlcore.repos.runs.ranks.rank_columns import Ranked, RunRanks
from operate.collection_sizes import LIMIT_BYTES, item_bytes
from tests.contract.api import pairs
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store
from tests.contract.index_state import deliver
from tests.contract.streams import following

RUNS = 1_000_000
METRICS, STEPS = 50, 1_000
MADE = 6
MADE_STEPS = 45
"""As many as make the history of a run a file."""
BEGIN = 1_790_000_000_000
OVERHEAD_BYTES = 100
"""What DynamoDB bills for an item beside what it counts of it."""
NAMES = [f"train/metric_{n}" for n in range(METRICS)]
WORDS = ("bright", "shrike", "calm", "whale", "dapper", "horse", "rare", "sponge", "learned", "cub")
KEPT_BYTES = {
    "run": 4_840,
    "ranks": 1_330,
    "fts": 910,
    "rank_param": 790,
    "run_metric_file": 760,
    "run_param": 490,
    "run_tag": 450,
    "fts_rev": 280,
}
"""Of a run: 9,850 in all, 9.2 GB of a million."""
WRITE_UNITS = {
    "beginning, end": 18,
    "steps": 5_833,
    "batches go": 1_000,
    "followed": 33,
    "ranks": 11.2,
}
"""Of a run. What its steps take is the price of each being kept when it is answered."""
ONCE = {"experiment", "fts_texts", "rank_rows"}
"""There is one of an experiment, or they are counted as part of the ranks."""


class Kept(NamedTuple):
    """Of a run, or of many."""

    items: float
    size: float
    """Bytes, with entries of local indexes."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Iterator[None]:
    with artifacts_in(tmp_path):
        yield


def test_a_million_runs_are_below_ten_gigabytes(store: Store) -> None:
    kept, units = runs_made(store)
    # Of few steps the item of the file is smaller.
    assert kept["run_metric_file"].size < history_file().size
    kept["run_metric_file"] = history_file()
    kept["ranks"], units["ranks"] = ranks()
    size = sum(share.size for share in kept.values())
    assert size * RUNS < LIMIT_BYTES
    assert {kind: share.size for kind, share in kept.items()} == approximately(KEPT_BYTES)
    assert units == approximately(WRITE_UNITS)
    # DynamoDB's bill has this beside it, its count of the collection has not.
    overhead = OVERHEAD_BYTES * sum(share.items for share in kept.values())
    assert overhead == pytest.approx(2_334, rel=0.01)


def approximately(amounts: Mapping[str, float]) -> dict[str, Any]:
    return {what: pytest.approx(amount, rel=0.05) for what, amount in amounts.items()}


def runs_made(store: Store) -> tuple[dict[str, Kept], dict[str, float]]:
    """What a run leaves, by type of item; and write units by what they are for."""
    api, chance = store.api, random.Random(1)
    units: Counter[str] = Counter()

    def post(what: str, path: str, **fields: Any) -> dict[str, Any]:
        answer = api.post(f"runs/{path}", **fields)
        units[what] += int(api.cost.write_units)
        return answer

    with following(store) as stream:
        experiment_id = api.new_experiment("one of a million")
        stream.fresh()
        for _ in range(MADE):
            made = post(
                "beginning, end",
                "create",
                experiment_id=experiment_id,
                start_time=BEGIN,
                run_name=f"{chance.choice(WORDS)}-{chance.choice(WORDS)}-{chance.randrange(1000)}",
                tags=pairs({"mlflow.user": "annie", "mlflow.source.name": "train.py"}),
            )
            run_id = made["run"]["info"]["run_id"]
            post(
                "beginning, end",
                "log-batch",
                run_id=run_id,
                params=pairs({f"param_{n}": str(chance.random()) for n in range(5)}),
                tags=pairs({"stage": chance.choice(WORDS), "dataset": chance.choice(WORDS)}),
            )
            with table.measure() as begun:
                assert deliver(stream.fresh())
            for step in range(MADE_STEPS):
                post("steps", "log-batch", run_id=run_id, metrics=logged(chance, step))
            post("beginning, end", "update", run_id=run_id, status="FINISHED", end_time=BEGIN)
            records = stream.fresh()
            with table.measure() as ended:
                assert deliver(records) == len(records)
            # Of each step an item goes.
            units["followed"] += int(begun.write_units + ended.write_units) - MADE_STEPS
    kept: dict[str, Kept] = {}
    for item in store.items():
        if item["PK"]["S"] == keys.experiment(experiment_id).pk and item["type"]["S"] not in ONCE:
            items, size = kept.get(item["type"]["S"], (0, 0))
            kept[item["type"]["S"]] = Kept(items + 1 / MADE, size + item_bytes(item) / MADE)
    spent = {what: unit / MADE for what, unit in units.items()}
    spent["steps"] *= STEPS / MADE_STEPS
    return kept, {**spent, "batches go": STEPS}


def logged(chance: random.Random, step: int) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": chance.random(), "timestamp": BEGIN + 70 * step, "step": step}
        for name in NAMES
    ]


def history_file() -> Kept:
    """The item of the file with all steps of a run."""
    chance = random.Random(2)
    series = {
        name: [Metric(name, chance.random(), BEGIN + 70 * step, step) for step in range(STEPS)]
        for name in NAMES
    }
    (made,) = history_files.made_of("1", uuid.UUID(int=7).hex, series)
    return Kept(1, item_bytes(made.item))


def ranks() -> tuple[Kept, float]:
    """Rows are sorted as they get many, and segments merged until they are as large as they get:
    what stays of a run, and the write units of all that, but for those of rows that are put."""
    chance = random.Random(3)
    everything = [ended(chance, number) for number in range(rank_segments.MOST_ENTRIES)]
    row = row_of(everything[0], chance)
    units = float(write_units([row]))  # it goes
    length, level = math.ceil(rank_rows.MOST_BYTES / item_bytes(row)), 1
    made = RUNS // length
    items, size = 0.0, 0.0
    while made:
        entries = sorted(everything[:length])
        segment, pages = rank_segments.segment_items("1", NAMES[0], level, "5e" * 8, entries)
        each = [segment, *pages]
        length, level = length * rank_segments.MERGED, level + 1
        merged = made // rank_segments.MERGED if length <= rank_segments.MOST_ENTRIES else 0
        gone = merged * rank_segments.MERGED
        units += METRICS * write_units(each) * (made + gone) / RUNS
        items += METRICS * len(each) * (made - gone) / RUNS
        size += METRICS * sum(map(item_bytes, each)) * (made - gone) / RUNS
        made = merged
    assert level > 4
    return Kept(items, size), units


def ended(chance: random.Random, number: int) -> Ranked:
    """One run after another, five minutes apart."""
    begin = BEGIN + number * 5 * rank_rows.MINUTE_MS
    run_id = ULID.from_bytes(begin.to_bytes(6, "big") + chance.randbytes(10))
    bits, version = inverted_double_bits(chance.random()), STEPS + chance.randrange(9)
    return Ranked(bits, str(run_id), version, begin // rank_rows.MINUTE_MS + 60)


def row_of(run: Ranked, chance: random.Random) -> Raw:
    """A run that was settled alone."""
    places = {name: inverted_double_bits(chance.random()) for name in NAMES}
    data = rank_columns.pack_runs([RunRanks(run.run_id, run.version, run.minute, places)])
    key = keys.rank_rows("1", "5e" * 8)
    return RankRows(PK=key.pk, SK=key.sk, data=data).serialize()


def write_units(items: list[Raw]) -> int:
    return sum(math.ceil(item_bytes(item) / 1024) for item in items)
