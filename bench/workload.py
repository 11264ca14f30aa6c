"""The kinds of calls that are measured, in order; each uses data that earlier calls created."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Final, NamedTuple, Protocol

SEARCHED = 100
HISTORY = 10_000
INTERVAL_RUNS = 10
BATCH = 1_000


class Scale(NamedTuple):
    """How much work is done. ``runs`` runs are created one by one, ``loaded`` runs as fast as the
    server accepts them."""

    runs: int
    calls: int
    heavy: int
    """Number of calls with large answers."""
    loaded: int
    rounds: int
    """The number of rounds. In each round every server has a turn."""
    writing: float
    """Seconds that the eight writers write in a round."""
    starts: int


SCALES: Final = {
    "full": Scale(200, 200, 30, 2_000, 10, 4.0, 3),
    "small": Scale(100, 40, 8, 400, 4, 1.0, 1),
}


class Step(NamedTuple):
    """A kind of call, made ``times`` times. ``calls`` returns an iterator that makes one request
    each time it is advanced."""

    name: str
    times: int
    calls: Callable[[], Iterator[None]]


class Caller(Protocol):
    """The interface of an object that makes calls; ``seconds`` is the duration of the last call."""

    @property
    def seconds(self) -> float: ...
    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]: ...
    def get(self, path: str) -> dict[str, Any]: ...


class Workload:
    """One experiment with its runs on one server. The first steps create the data.
    ``spread``: calls go to all runs in turn instead of one of them.
    """

    def __init__(self, client: Caller) -> None:
        self.client = client
        name = f"bench {time.time_ns()}"
        self.experiment = client.post("experiments/create", {"name": name})["experiment_id"]
        self.runs: list[str] = []
        self.spread = True
        self._curve = self._traces = 0
        self._metrics, self._batches, self._large = count(), count(), count()
        self._tags, self._params, self._updates = count(), count(), count()

    def _run(self, number: int) -> str:
        return self.runs[-1 - number % len(self.runs) if self.spread else -1]

    def steps(self, scale: Scale) -> list[Step]:
        few, times = scale.heavy, scale.calls
        return [
            Step("runs/create", scale.runs, self.create),
            Step("log-batch, 20 metrics, 20 params, 5 tags", times, self.log_batch),
            Step("log-metric", times, self.log_metric),
            Step("set-tag", times, self.set_tag),
            Step("log-parameter", times, self.log_param),
            Step("runs/update", times, self.update),
            Step("log-batch, 1,000 metrics", INTERVAL_RUNS * HISTORY // BATCH, self.log_many),
            Step("runs/get", times, self.get_run),
            Step("history of 10,000 points", few, self.history),
            Step("bulk-interval, 10 runs × 10,000 points", few, self.interval),
            Step("a trace's begin", scale.runs, self.start_trace),
            Step("traces/search, newest 100", few, self.search_traces),
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
            body = {"run_id": self._run(number), **point("loss", number)}
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
                "metrics": [point(f"m{key}", number) for key in range(20)],
                "params": [{"key": f"p{number}.{key}", "value": str(key)} for key in range(20)],
                "tags": [{"key": f"t{key}", "value": str(number)} for key in range(5)],
            }
            self.client.post("runs/log-batch", body)
            yield

    def log_many(self) -> Iterator[None]:
        """Logs a batch of points with each call. Ten calls write the history of the first run, the
        next ten that of the second, and so on."""
        for number in self._large:
            steps = range(number * BATCH, (number + 1) * BATCH)
            points = [point("curve", step) for step in steps]
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

    def _search(self, **more: Any) -> None:
        body = {"experiment_ids": [self.experiment], "max_results": SEARCHED, **more}
        count = len(self.client.post("runs/search", body)["runs"])
        assert count >= min(SEARCHED, len(self.runs)), count

    def history(self) -> Iterator[None]:
        while True:
            path = f"metrics/get-history?run_id={self.runs[0]}&metric_key=curve"
            count = len(self.client.get(path)["metrics"])
            assert count == self._curve, count
            yield

    def interval(self) -> Iterator[None]:
        """Requests the data of a chart of ten runs, as MLflow's UI does."""
        runs = "&".join(f"run_ids={run}" for run in self.runs[:INTERVAL_RUNS])
        while True:
            path = f"metrics/get-history-bulk-interval?{runs}&metric_key=curve&max_results=2500"
            count = len(self.client.get(path)["metrics"])
            assert count > min(self._curve, SEARCHED), count
            yield

    def start_trace(self) -> Iterator[None]:
        for number in count():
            info = {
                "trace_id": f"tr-{number:032x}",
                "trace_location": self._of_experiment(),
                "request_time": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
                "execution_duration": "1.5s",
                "state": "OK",
                "request_preview": "what is it?",
                "response_preview": "it is that",
                "trace_metadata": {"mlflow.trace.session": f"session {number % 10}"},
                "tags": {f"tag {key}": str(number) for key in range(5)},
            }
            self.client.post("/api/3.0/mlflow/traces", {"trace": {"trace_info": info}})
            self._traces += 1
            yield

    def search_traces(self) -> Iterator[None]:
        while True:
            body = {"locations": [self._of_experiment()], "max_results": SEARCHED}
            count = len(self.client.post("/api/3.0/mlflow/traces/search", body)["traces"])
            assert count == min(SEARCHED, self._traces), count
            yield

    def _of_experiment(self) -> dict[str, Any]:
        return {
            "type": "MLFLOW_EXPERIMENT",
            "mlflow_experiment": {"experiment_id": self.experiment},
        }


def side_by_side(work: Callable[[], None], threads: int) -> None:
    """Runs ``work`` in ``threads`` threads and waits for all. Then raises the exception of one of
    them, if any failed."""
    with ThreadPoolExecutor(threads) as pool:
        calls = [pool.submit(work) for _ in range(threads)]
    for call in calls:
        call.result()


def point(key: str, step: int) -> dict[str, Any]:
    value = (step * 7919 % 10_007) / 10_007
    return {"key": key, "value": value, "timestamp": 1_700_000_000_000 + step, "step": step}
