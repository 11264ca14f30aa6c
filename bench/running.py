"""What searches of an experiment cost while runs of it go on: ``python -m bench.running``.

A running run is marked, and read itself by each search that would use what the indexer writes. The
experiment has so many ended runs as ``--runs`` says; of the running ones more and more are added.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from itertools import pairwise

from bench.environment import stand_alone
from bench.search import load
from bench.search_rows import SEARCHES, rows
from mlcore.db import capacity
from mlcore.observability import logger
from tests.contract.api import Api, pairs
from tests.contract.conftest import pointed
from tests.engines import create_table, running_dynoxide

REPEATS = 9
METRICS = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.running", description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000, help="ended runs (2000)")
    parser.add_argument("--running", default="0,10,100,300,1000", help="running ones, ascending")
    options = parser.parse_args()
    stand_alone()
    logger.setLevel("ERROR")
    print("| search | running runs | round trips | read units | ms |\n|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(running_dynoxide())
        api = stack.enter_context(pointed(engine.endpoint, create_table(engine.endpoint)))
        experiment_id = load(api, list(rows(options.runs)))
        sizes = [0, *(int(size) for size in options.running.split(","))]
        for before, size in pairwise(sizes):
            for number in range(before, size):
                _run(api, experiment_id, number)
            for name in SEARCHES:
                print(_measured(api, experiment_id, name, size), flush=True)
    return 0


def _run(api: Api, experiment_id: str, number: int) -> None:
    run_id = api.new_run(experiment_id, run_name=f"running-{number}")
    metrics = [
        {"key": key, "value": number / 10_000, "timestamp": 1, "step": 1}
        for key in ("acc", *(f"metric {n}" for n in range(METRICS - 1)))
    ]
    params, tags = pairs({"lr": "0.1", "depth": "3"}), pairs({"owner": "bob"})
    api.post("runs/log-batch", run_id=run_id, metrics=metrics, params=params, tags=tags)


def _measured(api: Api, experiment_id: str, name: str, size: int) -> str:
    asked = {"experiment_ids": [experiment_id], "max_results": 100, **SEARCHES[name]}
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        api.post("runs/search", **asked)
        taken.append((time.perf_counter() - began) * 1000)
    cost = capacity.last()
    assert cost is not None
    return (
        f"| {name} | {size} | {cost.round_trips} | {cost.read_units:.0f} "
        f"| {statistics.median(taken):.0f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
