"""Runs loaded through the API as fast as it takes them, then searched at once and again later.

    .venv/bin/python -m bench.loading --runs 20000

Each run is made, logged to in one batch and ended, as a training does. What follows the stream lags
then; a search has to be exact all the same, and its answers are compared with those of the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from bench.client import Client
from bench.processes import processes, shown
from bench.search_rows import SEARCHES, Row, rows
from bench.workload import side_by_side
from tests.engines import memory_folder
from tests.servers import start_product, stopped

CALLERS: Final = 4
REPEATS: Final = 7
LATER_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.2

ASKED: Final[dict[str, dict[str, Any]]] = {
    **{name: SEARCHES[name] for name in SEARCHES if name.split(",")[0] != "status"},
    "one param value, 1 matches": {"filter": "params.seed = '77'"},
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.loading", description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="how many (20000)")
    parser.add_argument("--callers", type=int, default=CALLERS, help=f"at a time ({CALLERS})")
    options = parser.parse_args()
    with memory_folder() as folder:
        began = time.perf_counter()
        runner = start_product(folder, "--data", str(folder / "data"))
        with stopped(runner):
            print(f"ready after {time.perf_counter() - began:.2f} s")
            time.sleep(1)
            idle = processes(runner.process.pid)
            print("idle, MB:", shown(idle, "megabytes"), flush=True)
            made = list(rows(options.runs))
            with Client(runner.url) as client:
                experiment = client.post("experiments/create", {"name": "loaded"})["experiment_id"]
            began = time.perf_counter()
            taken = load(runner.url, experiment, made, options.callers)
            seconds = time.perf_counter() - began
            ended = time.perf_counter()
            print(f"{options.runs} runs in {seconds:.1f} s, {options.runs / seconds:.0f} a second")
            for name, times in taken.items():
                ordered = sorted(times)
                print(
                    f"  {name}: p50 {_part(ordered, 0.5):.1f}, p95 {_part(ordered, 0.95):.1f}, "
                    f"p99 {_part(ordered, 0.99):.1f} ms"
                )
            print("CPU s:", shown(processes(runner.process.pid), "seconds"), flush=True)
            with Client(runner.url) as client:
                at_once = searched(client, experiment)
                time.sleep(max(0.0, ended + LATER_SECONDS - time.perf_counter()))
                later = searched(client, experiment)
                wait_until_followed(folder / "data")
                print(f"followed {time.perf_counter() - ended:.1f} s after the load")
                in_the_end = searched(client, experiment)
            print("CPU s:", shown(processes(runner.process.pid), "seconds"))
            print("MB:", shown(processes(runner.process.pid), "megabytes"))
    print("| search | at once, ms | 5 s later | when followed |\n|---|---|---|---|")
    for name in ASKED:
        answers = [one[name] for one in (at_once, later, in_the_end)]
        assert len({answer for _, answer in answers}) == 1, f"{name}: answers differ"
        print(f"| {name} | {' | '.join(f'{taken:.0f}' for taken, _ in answers)} |")
    return 0


def load(url: str, experiment: str, made: Sequence[Row], callers: int) -> dict[str, list[float]]:
    """Milliseconds of each call."""
    taken: dict[str, list[float]] = {"create": [], "log-batch": [], "update": []}
    waiting = iter(made)
    turn = threading.Lock()

    def work() -> None:
        with Client(url) as client:
            for row in _shared(waiting, turn):
                _load(client, experiment, row, taken)

    side_by_side(work, callers)
    return taken


def _shared(waiting: Iterator[Row], turn: threading.Lock) -> Iterator[Row]:
    while True:
        with turn:
            row = next(waiting, None)
        if row is None:
            return
        yield row


def _load(client: Client, experiment: str, row: Row, taken: dict[str, list[float]]) -> None:
    tags = [{"key": key, "value": value} for key, value in row.tags.items()]
    body = {"experiment_id": experiment, "start_time": row.position, "run_name": row.name}
    run_id = client.post("runs/create", {**body, "tags": tags})["run"]["info"]["run_id"]
    taken["create"].append(client.seconds * 1000)
    metrics = [
        {"key": key, "value": value, "timestamp": row.position + 1, "step": 1}
        for key, value in row.metrics.items()
    ]
    params = [{"key": key, "value": value} for key, value in row.params.items()]
    client.post("runs/log-batch", {"run_id": run_id, "metrics": metrics, "params": params})
    taken["log-batch"].append(client.seconds * 1000)
    ended = {"run_id": run_id, "status": "FINISHED", "end_time": row.position + 1}
    client.post("runs/update", ended)
    taken["update"].append(client.seconds * 1000)


def searched(client: Client, experiment: str) -> dict[str, tuple[float, tuple[str, ...]]]:
    """Of each search its milliseconds and the names of the runs that it found."""
    found = {}
    for name, asked in ASKED.items():
        taken, answers = [], []
        for _ in range(REPEATS):
            answer = client.post(
                "runs/search", {"experiment_ids": [experiment], "max_results": 100, **asked}
            )
            taken.append(client.seconds * 1000)
            answers.append(tuple(run["info"]["run_name"] for run in answer.get("runs", ())))
        found[name] = (statistics.median(taken), answers[0])
    return found


def wait_until_followed(folder: Path) -> None:
    """Until every reader of the stream has read it all."""
    while True:
        with contextlib.closing(sqlite3.connect(folder / "dynamodb.sqlite")) as file:
            newest = file.execute(
                "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records"
            )
            (end,) = newest.fetchone()
        with contextlib.suppress(OSError, ValueError):
            known = json.loads((folder / "checkpoints.json").read_text())
            indexer = [int(value) for key, value in known.items() if "Indexer" in key]
            if indexer and min(indexer) >= end:
                return
        time.sleep(LOOK_SECONDS)


def _part(ordered: Sequence[float], share: float) -> float:
    return ordered[int((len(ordered) - 1) * share)]


if __name__ == "__main__":
    sys.exit(main())
