"""The calls that are measured, in their order; a call finds what those before it left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, NamedTuple, Protocol

from bench.client import Client

SEARCHED = 100
HISTORY = 10_000
INTERVAL_RUNS = 10
BATCH = 1_000
WRITERS = 8


class Step(NamedTuple):
    """A kind of call. ``calls`` makes one request each time it is advanced.

    The step ends early after ``seconds``, so that a slow machine does not wait for minutes.
    """

    name: str
    times: int
    seconds: float
    calls: Callable[[], Iterator[None]]


class Caller(Protocol):
    """``seconds`` is how long the last call took."""

    @property
    def seconds(self) -> float: ...
    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]: ...
    def get(self, path: str) -> dict[str, Any]: ...


class Workload:
    """One experiment with its runs on one server, filled by the first steps.

    ``spread``: calls go to all runs in turn instead of one of them.
    """

    def __init__(self, client: Caller) -> None:
        self.client = client
        name = f"bench {time.time_ns()}"
        self.experiment = client.post("experiments/create", {"name": name})["experiment_id"]
        self.runs: list[str] = []
        self.spread = True
        self._curve = 0
        self._metrics, self._batches, self._large = count(), count(), count()
        self._tags, self._params, self._updates = count(), count(), count()

    def _run(self, number: int) -> str:
        return self.runs[-1 - number % len(self.runs) if self.spread else -1]

    def steps(self, runs: int) -> list[Step]:
        return [
            Step("runs/create", runs, 25, self.create),
            Step("log-metric", runs, 20, self.log_metric),
            Step("set-tag", 300, 6, self.set_tag),
            Step("log-parameter", 300, 6, self.log_param),
            Step("runs/update", 300, 6, self.update),
            Step("log-batch 20 metrics, 20 params, 5 tags", 200, 6, self.log_batch),
            Step("log-batch 1,000 metrics", 20, 6, self.log_many),
            Step("runs/get", 300, 6, self.get_run),
            Step("runs/search newest 100", 30, 6, self.search_newest),
            Step("runs/search top 100 by a metric", 30, 6, self.search_top),
            Step("get-history 10,000 points", 20, 6, self.history),
            Step("get-history-bulk-interval 10 runs", 20, 6, self.interval),
        ]

    def create(self) -> Iterator[None]:
        for number in count():
            body = {
                "experiment_id": self.experiment,
                "run_name": f"run {number}",
                "user_id": "bench",
                "start_time": 1_700_000_000_000 + number,
                "tags": [{"key": "kind", "value": "bench"}],
            }
            self.runs.append(self.client.post("runs/create", body)["run"]["info"]["run_id"])
            yield

    def log_metric(self) -> Iterator[None]:
        for number in self._metrics:
            body = {"run_id": self._run(number), **_point("loss", number)}
            self.client.post("runs/log-metric", body)
            yield

    def set_tag(self) -> Iterator[None]:
        for number in self._tags:
            body = {"run_id": self._run(number), "key": f"tag {number % 5}", "value": str(number)}
            self.client.post("runs/set-tag", body)
            yield

    def log_param(self) -> Iterator[None]:
        for number in self._params:
            body = {"run_id": self._run(number), "key": f"param {number}", "value": str(number)}
            self.client.post("runs/log-parameter", body)
            yield

    def update(self) -> Iterator[None]:
        for number in self._updates:
            name = f"renamed {number}"
            body = {"run_id": self._run(number), "status": "RUNNING", "run_name": name}
            self.client.post("runs/update", body)
            yield

    def log_batch(self) -> Iterator[None]:
        for number in self._batches:
            body = {
                "run_id": self._run(number),
                "metrics": [_point(f"m{key}", number) for key in range(20)],
                "params": [{"key": f"p{number}.{key}", "value": str(key)} for key in range(20)],
                "tags": [{"key": f"t{key}", "value": str(number)} for key in range(5)],
            }
            self.client.post("runs/log-batch", body)
            yield

    def log_many(self) -> Iterator[None]:
        """The first ten of these make the history that is read later."""
        for number in self._large:
            steps = range(number * BATCH, (number + 1) * BATCH)
            points = [_point("curve", step) for step in steps]
            run = self.runs[min(number * BATCH // HISTORY, len(self.runs) - 1)]
            self.client.post("runs/log-batch", {"run_id": run, "metrics": points})
            self._curve += BATCH if run == self.runs[0] else 0
            yield

    def get_run(self) -> Iterator[None]:
        for number in count():
            self.client.get(f"runs/get?run_id={self._run(number)}")
            yield

    def search_newest(self) -> Iterator[None]:
        while True:
            self._search()
            yield

    def search_top(self) -> Iterator[None]:
        while True:
            self._search(order_by=["metrics.loss DESC"])
            yield

    def _search(self, **more: Any) -> None:
        body = {"experiment_ids": [self.experiment], "max_results": SEARCHED, **more}
        found = len(self.client.post("runs/search", body)["runs"])
        assert found >= min(SEARCHED, len(self.runs)), found

    def history(self) -> Iterator[None]:
        while True:
            path = f"metrics/get-history?run_id={self.runs[0]}&metric_key=curve"
            found = len(self.client.get(path)["metrics"])
            assert found == self._curve, found
            yield

    def interval(self) -> Iterator[None]:
        """What a chart of ten runs asks, as MLflow's UI does."""
        runs = "&".join(f"run_ids={run}" for run in self.runs[:INTERVAL_RUNS])
        while True:
            path = f"metrics/get-history-bulk-interval?{runs}&metric_key=curve&max_results=2500"
            found = len(self.client.get(path)["metrics"])
            assert found > min(self._curve, SEARCHED), found
            yield


def writers(url: str, experiment: str, seconds: float) -> list[float]:
    """Eight callers log batches of ten metrics, each to a run of its own; how long each took."""
    taken: list[float] = []
    until = time.perf_counter() + seconds

    def write() -> None:
        with Client(url) as client:
            run = client.post("runs/create", {"experiment_id": experiment})["run"]["info"]
            for number in count():
                if time.perf_counter() > until:
                    return
                points = [_point(f"m{key}", number) for key in range(10)]
                client.post("runs/log-batch", {"run_id": run["run_id"], "metrics": points})
                taken.append(client.seconds)

    side_by_side(write, WRITERS)
    return taken


def side_by_side(work: Callable[[], None], threads: int) -> None:
    """In so many threads. Raises what one of them has raised, when all have ended."""
    with ThreadPoolExecutor(threads) as pool:
        calls = [pool.submit(work) for _ in range(threads)]
    for call in calls:
        call.result()


def _point(key: str, step: int) -> dict[str, Any]:
    value = (step * 7919 % 10_007) / 10_007
    return {"key": key, "value": value, "timestamp": 1_700_000_000_000 + step, "step": step}
