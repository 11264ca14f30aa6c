"""Eight processes log to one run at once; afterwards exactly what they logged is there.

    python tests/e2e/hammer.py TRACKING_URI [--processes 8] [--batches 200] [--metrics 10]

A plain script on the standard library; prints what it found and ends with status 1 if a point,
param or tag is missing or doubled, a latest value is wrong, or a call failed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import sys
import time
from typing import Any, Self
from urllib.parse import quote, urlsplit

SHARED_KEYS = 3


class Tracking:
    """One connection to the server; an error answer counts and is kept."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self._host, timeout=120)
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        try:
            self._connection.request(method, f"/api/2.0/mlflow/{path}", data, headers)
            reply = self._connection.getresponse()
            text = reply.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self.errors.append(f"{path}: {error!r}")
            return {}
        if reply.status != 200:
            self.errors.append(f"{path}: {reply.status} {text[:300]}")
            return {}
        answer: dict[str, Any] = json.loads(text)
        return answer


def point(writer: int, number: int, metric: int) -> dict[str, Any]:
    """Even metrics belong to the writer, odd ones are shared, so writers fight for the latest."""
    own = metric % 2 == 0
    key = f"writer {writer}/m{metric}" if own else f"shared/m{metric % (2 * SHARED_KEYS)}"
    step = number if own else number * 100 + writer
    return {
        "key": key,
        "value": writer * 1e6 + number + metric / 64,
        "timestamp": 1 + number,
        "step": step,
    }


def batch(writer: int, number: int, metrics: int) -> dict[str, Any]:
    return {
        "metrics": [point(writer, number, metric) for metric in range(metrics)],
        "params": [{"key": f"writer {writer}/p{number % 50}", "value": str(number % 50)}],
        "tags": [
            {"key": f"writer {writer}", "value": str(number)},
            {"key": "last writer", "value": str(writer)},
        ],
    }


def write(url: str, run_id: str, writer: int, batches: int, metrics: int) -> list[str]:
    with Tracking(url) as tracking:
        for number in range(batches):
            body = {"run_id": run_id, **batch(writer, number, metrics)}
            tracking.call("POST", "runs/log-batch", body)
    return tracking.errors


def _row(value: dict[str, Any]) -> tuple[str, int, int, float]:
    return value["key"], value["step"], value["timestamp"], value["value"]


def check(tracking: Tracking, run_id: str, processes: int, batches: int, metrics: int) -> list[str]:
    """What differs between the run and what was logged."""
    sent = [batch(w, n, metrics) for w in range(processes) for n in range(batches)]
    wanted: dict[str, set[tuple[str, int, int, float]]] = {}
    for body in sent:
        for value in body["metrics"]:
            wanted.setdefault(value["key"], set()).add(_row(value))
    run = tracking.call("GET", f"runs/get?run_id={run_id}").get("run", {})
    data = run.get("data", {})
    faults = []
    latest = {value["key"]: _row(value) for value in data.get("metrics", [])}
    right = {key: max(rows, key=lambda row: row[1:]) for key, rows in wanted.items()}
    faults += [
        f"latest {key}: {latest.get(key)} instead of {row}"
        for key, row in right.items()
        if latest.get(key) != row
    ]
    faults += [f"unknown metric {key}" for key in latest.keys() - right.keys()]
    for key, rows in wanted.items():
        path = f"metrics/get-history?run_id={run_id}&metric_key={quote(key)}"
        points = [_row(value) for value in tracking.call("GET", path).get("metrics", [])]
        if sorted(points) != sorted(rows):
            faults.append(
                f"history {key}: {len(points)} points ({len(set(points))} different) of {len(rows)}"
            )
    params = {pair["key"]: pair["value"] for pair in data.get("params", [])}
    if params != {pair["key"]: pair["value"] for body in sent for pair in body["params"]}:
        faults.append(f"params: {len(params)}")
    tags = {pair["key"]: pair["value"] for pair in data.get("tags", [])}
    for writer in range(processes):
        if tags.get(f"writer {writer}") != str(batches - 1):
            faults.append(f"tag of writer {writer}: {tags.get(f'writer {writer}')}")
    return faults


def hammer(url: str, processes: int = 8, batches: int = 200, metrics: int = 10) -> list[str]:
    """The errors and differences; empty when all is well."""
    with Tracking(url) as tracking:
        body = {"name": f"hammer {time.time_ns()}"}
        experiment = tracking.call("POST", "experiments/create", body)["experiment_id"]
        wanted = {"experiment_id": experiment, "run_name": "hammered", "start_time": 1}
        run_id = tracking.call("POST", "runs/create", wanted)["run"]["info"]["run_id"]
        began = time.perf_counter()
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            work = [(url, run_id, writer, batches, metrics) for writer in range(processes)]
            errors = [error for failures in pool.starmap(write, work) for error in failures]
        seconds = time.perf_counter() - began
        faults = check(tracking, run_id, processes, batches, metrics)
        total = processes * batches
        rate = total * metrics / seconds
        print(f"{total} batches in {seconds:.1f} s, {rate:.0f} metrics/s")  # noqa: T201
        return [*errors, *tracking.errors, *faults]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("url")
    for name, default in (("processes", 8), ("batches", 200), ("metrics", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    faults = hammer(chosen.url, chosen.processes, chosen.batches, chosen.metrics)
    for fault in faults[:20]:
        print(fault)  # noqa: T201
    print(f"{len(faults)} errors" if faults else "ok")  # noqa: T201
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
