"""``make bench``: starts the runner on a folder in memory, measures it and prints one table."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import time
from pathlib import Path

from bench import report
from bench.client import Client
from bench.report import Cost, Row, Timing
from bench.workload import WRITERS, Workload, writers
from tests.doubles import proxy
from tests.doubles.counting import Counting, Measurement
from tests.engines import memory_folder
from tests.servers import start_product, start_stock, stopped

COUNTED = 5
WRITING = f"{WRITERS} writers, log-batch 10 metrics"


def timings(url: str, workload: Workload, runs: int, seconds: float) -> dict[str, Timing]:
    found = {}
    for step in workload.steps(runs):
        _say(step.name)
        taken: list[float] = []
        ends = time.perf_counter() + step.seconds
        for _ in step.calls():
            taken.append(workload.client.seconds)
            if len(taken) == step.times or time.perf_counter() > ends:
                break
        found[step.name] = report.timing(taken)
    _say(WRITING)
    found[WRITING] = report.timing(writers(url, workload.experiment, seconds), WRITERS)
    return found


def costs(engine: str, workload: Workload, folder: Path) -> dict[str, Cost]:
    """What the same calls ask of DynamoDB, through a second runner on the same table whose every
    request is counted. It runs no indexer, so what is counted are the requests of callers, on runs
    that the process has seen before."""
    counting = Counting()
    found = {}
    with (
        proxy.running(engine, counting) as endpoint,
        stopped(
            start_product(folder, "--no-indexer", AWS_ENDPOINT_URL_DYNAMODB=endpoint)
        ) as server,
        Client(server.url) as client,
    ):
        workload.client, workload.spread = client, False
        for step in workload.steps(0):
            _say(f"{step.name}, DynamoDB")
            calls = step.calls()
            next(calls)
            measured: list[Measurement] = []
            for _ in range(COUNTED):
                with counting.measure() as measurement:
                    next(calls)
                measured.append(measurement)
            found[step.name] = report.cost(measured)
    return found


def ours(folder: Path, runs: int, seconds: float) -> tuple[dict[str, Timing], dict[str, Cost]]:
    with stopped(start_product(folder)) as server, Client(server.url) as client:
        workload = Workload(client)
        taken = timings(server.url, workload, runs, seconds)
        announced = re.search(r"^ *engine +(\S+)", server.log.read_text(), re.MULTILINE)
        assert announced, "the runner does not say where its engine is"
        return taken, costs(announced[1], workload, folder)


def stock(folder: Path, runs: int, seconds: float) -> dict[str, Timing]:
    """The same calls to MLflow's own server on SQLite, also in memory."""
    with stopped(start_stock(folder)) as server, Client(server.url) as client:
        return timings(server.url, Workload(client), runs, seconds)


def _say(what: str) -> None:
    sys.stderr.write(f"  {what} …\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000, help="runs to search (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="time of the writers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--stock", action="store_true", help="measure stock MLflow too")
    chosen = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(memory_folder())
        taken, cost = ours(folder, chosen.runs, chosen.seconds)
        other: dict[str, Timing] = {}
        if chosen.stock:
            _say("stock MLflow")
            folder = stack.enter_context(memory_folder())
            other = stock(folder, chosen.runs, chosen.seconds)
    rows = [Row(name, one, cost.get(name), other.get(name)) for name, one in taken.items()]
    print(report.table(rows))
    if chosen.json:
        chosen.json.write_text(json.dumps([row.json() for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
