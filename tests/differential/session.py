"""Random sessions of a tracking client: calls of all kinds, valid and refused, on few entities."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from tests.differential.calls import UNKNOWN, metric
from tests.differential.rest import AJAX, Call, Ref, get, post

# Few keys, so that calls meet one another; the last ones are refused.
KEYS = ("a", "b", "c d", "é/x", "mlflow.note.content", "k" * 250)
BAD_KEYS = ("", "a$", "../a", "k" * 251)
VALUES = ("", "1", "2", "é☃", "v" * 5000, "v" * 6001, "v" * 8001)
NUMBERS: tuple[Any, ...] = (0, 1, -1, 0.1, 1e308, "NaN", "Infinity", "-Infinity", "1.5", 7)
TIMES = (0, 1, 2, 1_500_000_000_000, -1)
STEPS = (0, 1, 2, -1, 2**40)
STATUSES = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")
VIEWS = ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
FILTERS = (
    "",
    "metrics.a > 0",
    "metrics.b <= 1",
    "params.a = '1'",
    "params.b IS NULL",
    "tags.a LIKE '%1%'",
    "tags.`c d` IS NOT NULL",
    "attributes.status = 'FINISHED'",
    "attributes.run_name ILIKE 'RUN%'",
    "dataset.name = 'a'",
    "metrics.a > 0 AND tags.b != '2'",
    "metrics.a >",
    "nonsense",
)
ORDERS = ("metrics.a", "metrics.b DESC", "params.a", "tags.a DESC", "start_time", "status DESC")


class Session:
    """Makes calls. ``answered`` tells it what there is now, so that later calls use it."""

    def __init__(self, rng: random.Random, prefix: str) -> None:
        self._rng = rng
        self._prefix = prefix
        self._numbers = count()
        self.experiments: list[str] = []
        self.runs: list[str] = []

    def calls(self, number: int) -> Iterator[Call]:
        for index in range(number):
            few = len(self.experiments) < 2 or len(self.runs) < 2
            if few and index < 6:
                yield self._create_experiment() if len(self.experiments) < 2 else self._create_run()
            else:
                yield self._rng.choices(*self._kinds)[0](self)

    def answered(self, call: Call, status: int) -> None:
        if status == 200:
            for label in call.saves or {}:
                (self.runs if label.startswith("run") else self.experiments).append(label)

    def everything(self) -> Iterator[Call]:
        """Reads all that the session can have changed."""
        for label in self.experiments:
            yield get("experiments/get", experiment_id=Ref(label))
        for label in self.runs:
            yield get("runs/get", run_id=Ref(label))
            for key in KEYS:
                yield get("metrics/get-history", run_id=Ref(label), metric_key=key)
        ids = [Ref(label) for label in self.experiments]
        for view in VIEWS:
            yield post("runs/search", {"experiment_ids": ids, "run_view_type": view})
        yield Call("POST", AJAX + "experiments/search-datasets", {"experiment_ids": ids[:20]})

    # -- values

    def _key(self) -> str:
        return self._rng.choice(BAD_KEYS if self._rng.random() < 0.05 else KEYS)

    def _value(self) -> str:
        return self._rng.choice(VALUES[:4] if self._rng.random() < 0.8 else VALUES)

    def _name(self) -> str:
        return f"{self._prefix} {self._rng.randrange(10)}"

    def _experiment(self) -> Any:
        if self._rng.random() < 0.02 or not self.experiments:
            return "98765432"
        return Ref(self._rng.choice(self.experiments[-6:]))

    def _run(self) -> Any:
        if self._rng.random() < 0.02 or not self.runs:
            return UNKNOWN
        return Ref(self._rng.choice(self.runs[-5:] if self._rng.random() < 0.8 else self.runs))

    def _pairs(self, most: int = 3) -> list[dict[str, str]]:
        keys = self._rng.sample(KEYS, self._rng.randint(0, most))
        return [{"key": key, "value": self._value()} for key in keys]

    def _metric(self) -> dict[str, Any]:
        timestamp = self._rng.choice(TIMES[:4] if self._rng.random() < 0.97 else TIMES)
        return metric(self._key(), self._rng.choice(NUMBERS), timestamp, self._rng.choice(STEPS))

    # -- calls

    def _create_experiment(self) -> Call:
        body = {"name": self._name(), "tags": self._pairs()}
        if self._rng.random() < 0.2:
            body["artifact_location"] = self._rng.choice(("s3://b/x", "s3://b/x#y", "http://h/x"))
        saves = {f"experiment {next(self._numbers)}": "experiment_id"}
        return post("experiments/create", body, saves=saves)

    def _get_by_name(self) -> Call:
        return get("experiments/get-by-name", experiment_name=self._name())

    def _update_experiment(self) -> Call:
        body = {"experiment_id": self._experiment(), "new_name": self._name()}
        return post("experiments/update", body)

    def _delete_experiment(self) -> Call:
        return post("experiments/delete", {"experiment_id": self._experiment()})

    def _restore_experiment(self) -> Call:
        return post("experiments/restore", {"experiment_id": self._experiment()})

    def _experiment_tag(self) -> Call:
        body = {"experiment_id": self._experiment(), "key": self._key()}
        if self._rng.random() < 0.3:
            return post("experiments/delete-experiment-tag", body)
        return post("experiments/set-experiment-tag", {**body, "value": self._value()})

    def _create_run(self) -> Call:
        number = next(self._numbers)
        body = {
            "experiment_id": self._experiment(),
            # No two runs start together, so the order of a search is that of the start times.
            "start_time": self._rng.choice((1, 1, -1, 10**6)) * (number + 1),
            "user_id": self._rng.choice(("", "u")),
            "run_name": self._rng.choice(("", f"run {number}", "x")),
            "tags": self._pairs(),
        }
        return post("runs/create", body, saves={f"run {number}": "run.info.run_id"})

    def _update_run(self) -> Call:
        body: dict[str, Any] = {"run_id": self._run()}
        if self._rng.random() < 0.7:
            body["status"] = self._rng.choice(STATUSES)
        if self._rng.random() < 0.5:
            body["end_time"] = self._rng.choice((0, 5, -5, 10**12, None))
        if self._rng.random() < 0.3:
            body["run_name"] = self._rng.choice(("", "renamed", "y"))
        return post("runs/update", body)

    def _delete_run(self) -> Call:
        return post("runs/delete", {"run_id": self._run()})

    def _restore_run(self) -> Call:
        return post("runs/restore", {"run_id": self._run()})

    def _log_metric(self) -> Call:
        return post("runs/log-metric", {"run_id": self._run(), **self._metric()})

    def _log_param(self) -> Call:
        body = {"run_id": self._run(), "key": self._key(), "value": self._value()}
        return post("runs/log-parameter", body)

    def _log_batch(self) -> Call:
        body = {
            "run_id": self._run(),
            "metrics": [self._metric() for _ in range(self._rng.randint(0, 6))],
            "params": self._pairs(2) if self._rng.random() < 0.3 else [],
            "tags": self._pairs(),
        }
        return post("runs/log-batch", body)

    def _tag(self) -> Call:
        key = self._key() if self._rng.random() < 0.8 else "mlflow.runName"
        body = {"run_id": self._run(), "key": key}
        if self._rng.random() < 0.3:
            return post("runs/delete-tag", body)
        return post("runs/set-tag", {**body, "value": self._value()})

    def _log_inputs(self) -> Call:
        datasets = [
            {
                "dataset": {
                    "name": self._rng.choice("abc"),
                    "digest": self._rng.choice("12"),
                    "source_type": "local",
                    "source": self._rng.choice(("s", "t")),
                    "schema": self._rng.choice(("", "schema")),
                },
                "tags": self._pairs(2),
            }
            for _ in range(self._rng.randint(0, 2))
        ]
        return post("runs/log-inputs", {"run_id": self._run(), "datasets": datasets})

    def _log_output(self) -> Call:
        model = {"model_id": f"m-{self._rng.randrange(9)}", "step": self._rng.choice((0, 3))}
        body = {"run_id": self._run(), "models": [model]}
        return post("runs/outputs", body, permits=frozenset({"repeated output"}))

    def _log_model(self) -> Call:
        text = '{"run_id":"r","artifact_path":"%d","utc_time_created":"2024","flavors":{}}'
        body = {"run_id": self._run(), "model_json": text % next(self._numbers)}
        return post("runs/log-model", body)

    def _get_run(self) -> Call:
        return get("runs/get", run_id=self._run())

    def _get_experiment(self) -> Call:
        return get("experiments/get", experiment_id=self._experiment())

    def _history(self) -> Call:
        more = {"max_results": self._rng.choice((1, 3, 0))} if self._rng.random() < 0.3 else {}
        return get("metrics/get-history", run_id=self._run(), metric_key=self._key(), **more)

    def _bulk_history(self) -> Call:
        query: dict[str, Any] = {
            "run_ids": [self._run(), self._run()],
            "metric_key": self._key(),
        }
        query["max_results"] = self._rng.choice((1, 2, 5, 100))
        return get("metrics/get-history-bulk-interval", query)

    def _search(self) -> Call:
        ids = [self._experiment() for _ in range(self._rng.choice((1, 1, 3)))]
        body = {
            "experiment_ids": ids,
            "filter": self._rng.choice(FILTERS),
            "order_by": self._rng.sample(ORDERS, self._rng.choice((0, 0, 1, 2))),
            "run_view_type": self._rng.choice(VIEWS),
            "max_results": self._rng.choice((2, 100)),
        }
        return post("runs/search", body)

    def _search_experiments(self) -> Call:
        body = {
            "filter": f"name LIKE '{self._prefix}%'",
            "order_by": ["name"],
            "max_results": 100,
            "view_type": self._rng.choice(VIEWS),
        }
        return post("experiments/search", body)

    def _search_datasets(self) -> Call:
        body = {"experiment_ids": [self._experiment()]}
        return Call("POST", AJAX + "experiments/search-datasets", body)

    _kinds: tuple[list[Callable[[Session], Call]], list[int]] = (
        [
            *(_create_experiment, _get_by_name, _update_experiment, _delete_experiment),
            *(_restore_experiment, _experiment_tag, _get_experiment, _search_experiments),
            *(_create_run, _update_run, _delete_run, _restore_run, _get_run),
            *(_log_metric, _log_param, _log_batch, _tag, _log_inputs, _log_output, _log_model),
            *(_history, _bulk_history, _search, _search_datasets),
        ],
        [
            *(3, 2, 3, 2),
            *(4, 6, 3, 2),
            *(8, 6, 3, 5, 8),
            *(14, 6, 14, 10, 6, 3, 2),
            *(5, 3, 10, 2),
        ],
    )
