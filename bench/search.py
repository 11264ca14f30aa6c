"""What a search reads and how long it takes as an experiment grows.

    PYTHONPATH=functions .venv/bin/python -m bench.search --runs 1000,10000

Runs are written as items, together with their RANK items, because logging 100,000 runs takes a
quarter of an hour; the searches go through the handler. All figures are of one process and the
embedded engine: compare them with one another.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from indexer.index_items import INDEXES
from mlcore.db import capacity, keys
from mlcore.db.expression import Raw, number, string
from mlcore.db.table import table
from mlcore.entities import Metric
from mlcore.ids import new_ulid
from mlcore.repos import points
from tests.contract.api import Api
from tests.contract.conftest import pointed
from tests.engines import REGION, create_table, running_dynoxide

MATCHES = 200
"""Runs with ``acc`` above 0.95, at every size; a quarter of them has ``lr`` 0.01."""
NEEDLES = 50
"""Runs whose name begins with ``needle``."""
PARAMS = ("lr", "depth", "batch", "opt", "seed")
WRITTEN_TOGETHER = 2_000
REPEATS = 7


class Result(NamedTuple):
    name: str
    rows: int
    requests: int
    round_trips: int
    read_units: float
    median_ms: float


SEARCHES: dict[str, dict[str, Any]] = {
    "newest 100": {},
    "top 100 by a metric": {"order_by": ["metrics.acc DESC"]},
    "metric and param, 50 match": {"filter": "metrics.acc > 0.95 AND params.lr = '0.01'"},
    "name prefix, 50 match": {"filter": "run_name LIKE 'needle%'"},
    "status, none match": {"filter": "status = 'KILLED'"},
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--runs", default="1000,10000", help="sizes, ascending (1000,10000)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(variable, "test")
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        os.environ.setdefault(variable, REGION)
    sizes = [int(size) for size in options.runs.split(",")]
    found: dict[int, list[Result]] = {}
    with (
        running_dynoxide() as engine,
        pointed(engine.endpoint, create_table(engine.endpoint)) as api,
    ):
        for size in sizes:
            began = time.perf_counter()
            experiment_id = load(api, size)
            print(f"{size} runs written in {time.perf_counter() - began:.0f} s", file=sys.stderr)
            found[size] = [measured(api, experiment_id, name, SEARCHES[name]) for name in SEARCHES]
    print(as_table(found))
    if options.json:
        plain = {size: [result._asdict() for result in results] for size, results in found.items()}
        Path(options.json).write_text(json.dumps(plain), encoding="utf-8")
    return 0


def load(api: Api, size: int) -> str:
    """An experiment of so many runs."""
    experiment_id = api.new_experiment(f"of {size}")
    first = api.new_run(experiment_id)
    api.post(
        "runs/log-batch",
        run_id=first,
        metrics=[{"key": key, "value": 0, "timestamp": 1, "step": 0} for key in ("acc", "loss")],
        params=[{"key": key, "value": "x"} for key in PARAMS],
    )
    pattern = table.get(keys.run(experiment_id, first))
    assert pattern is not None
    pending = list(table.query_all(pattern["PK"]["S"], prefix=keys.pending_prefix("run")))
    table.batch_write(
        deletes=[keys.Key(item["PK"]["S"], item["SK"]["S"]) for item in pending]
        + [keys.run(experiment_id, first)]
    )
    made = items(pattern, experiment_id, size)
    while chunk := list(islice(made, WRITTEN_TOGETHER)):
        table.batch_write(chunk)
    return experiment_id


def items(pattern: Raw, experiment_id: str, size: int) -> Iterator[Raw]:
    """Run items in the shape of one that was logged, each followed by its RANK items."""
    for position in range(size):
        rest = position - (size - MATCHES)
        acc = 0.95 + (rest + 1) * 0.0002 if rest >= 0 else 0.95 * position / size
        run_id = new_ulid()
        name = f"needle-{position}" if position < NEEDLES else f"run-{position}"
        texts = {
            "metrics": {
                "acc": points.latest_text(Metric("acc", acc, 1, 0)),
                "loss": points.latest_text(Metric("loss", 1 / (1 + position % 97), 1, 0)),
            },
            "params": {
                "lr": ("0.1", "0.01", "0.001", "1")[position % 4],
                "depth": str(position % 10),
                "batch": str(2 ** (position % 6)),
                "opt": ("sgd", "adam", "lamb")[position % 3],
                "seed": str(position),
            },
        }
        item = copy.deepcopy(pattern)
        item |= {
            "SK": string(keys.run(experiment_id, run_id).sk),
            "run_id": string(run_id),
            "run_name": string(name),
            "start_time": number(position),
            "lsi1sk": string(keys.lsi1_run("active", position, run_id)),
            "lsi2sk": string(keys.lsi2_run(position, run_id)),
            "lsi3sk": string(keys.lsi3_run("RUNNING", position, run_id)),
            "lsi4sk": string(keys.lsi4_run(name, run_id)),
        }
        item["tags"]["M"]["mlflow.runName"] = string(name)
        for attribute, entries in texts.items():
            item[attribute] = {"M": {key: string(text) for key, text in entries.items()}}
        yield item
        for attribute, entries in texts.items():
            for key, text in entries.items():
                yield INDEXES[attribute].item((experiment_id, run_id), key, text, 1)


def measured(api: Api, experiment_id: str, name: str, asked: dict[str, Any]) -> Result:
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        answer = api.post("runs/search", experiment_ids=[experiment_id], max_results=100, **asked)
        taken.append((time.perf_counter() - began) * 1000)
    cost = capacity.last()
    assert cost is not None
    return Result(
        name=name,
        rows=len(answer.get("runs", ())),
        requests=cost.requests,
        round_trips=cost.round_trips,
        read_units=cost.read_units,
        median_ms=statistics.median(taken),
    )


def as_table(found: dict[int, list[Result]]) -> str:
    lines = [
        "| search | runs | rows | requests | round trips | read units | ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in SEARCHES:
        for size, results in found.items():
            (one,) = [result for result in results if result.name == name]
            lines.append(
                f"| {name} | {size} | {one.rows} | {one.requests} | {one.round_trips} "
                f"| {one.read_units:.0f} | {one.median_ms:.0f} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
