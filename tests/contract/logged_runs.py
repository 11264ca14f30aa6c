"""What is logged to a run, every way to read it, and the death of the process that logs."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from mlcore.db.table import table
from tests.contract.api import Api, pairs
from tests.contract.conftest import forget
from tests.contract.interleaved_calls import Killed
from tests.contract.kubeflow_api import KubeflowApi

KEYS = "ab"
Point = dict[str, Any]
History = dict[str, dict[tuple[int, int, str], float]]
"""Points by metric: timestamp, step and value as text, and the value."""
_names = itertools.count()


@contextlib.contextmanager
def killed_at(request: int, order: Sequence[int]) -> Iterator[list[str]]:
    """The process is killed before its ``request``-th request to DynamoDB, counted from 0. Requests
    that are sent side by side arrive in a chosen order. Gives those that arrived."""
    call, arrived = table._call, list[str]()
    chosen = iter([*order, *itertools.repeat(0, 1000)])

    def counted(operation: str, **parameters: Any) -> Any:
        if len(arrived) == request:
            raise Killed
        arrived.append(operation)
        return call(operation, **parameters)

    def one_by_one(calls: Sequence[Callable[[], Any]]) -> list[Any]:
        waiting, answers = list(range(len(calls))), dict[int, Any]()
        while waiting:
            at = waiting.pop(next(chosen) % len(waiting))
            answers[at] = calls[at]()
        return [answers[at] for at in range(len(calls))]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_call", counted)
        patch.setattr(table, "parallel", one_by_one)
        with contextlib.suppress(Killed):
            yield arrived
    forget()


class Logged:
    """What of a run can be seen, according to what was logged."""

    def __init__(self) -> None:
        self.history: History = {key: {} for key in KEYS}
        self.latest: dict[str, tuple[float, int, int]] = {}
        self.texts: set[str] = set()
        """Names of params and tags."""
        self.of_model: set[tuple[str, int, int]] = set()

    def with_(self, request: Request) -> Logged:
        after = Logged()
        after.history = {key: dict(points) for key, points in self.history.items()}
        after.latest = dict(self.latest)
        after.texts = self.texts | set(request.texts)
        after.of_model = set(self.of_model)
        for point in request.points:
            key, value = point["key"], float(point["value"])
            at = (point["timestamp"], point["step"])
            after.history[key][(*at, str(value))] = value
            known = after.latest.get(key)
            if known is None or _recency(value, *at) > _recency(*known):
                after.latest[key] = (value, *at)
            if request.of_model:
                after.of_model.add((key, point["step"], point["timestamp"]))
        return after

    def rewound(self, after_step: int | None, keys: Sequence[str] | None) -> Logged:
        """What is left without the points after a step."""
        after = Logged()
        after.texts, after.of_model = set(self.texts), set(self.of_model)
        for key, points in self.history.items():
            for (timestamp, step, text), value in points.items():
                if keys is not None and key not in keys:
                    pass
                elif after_step is None or step > after_step:
                    continue
                after.history[key][timestamp, step, text] = value
                known = after.latest.get(key)
                if known is None or _recency(value, timestamp, step) > _recency(*known):
                    after.latest[key] = (value, timestamp, step)
        return after


def _recency(value: float, timestamp: int, step: int) -> tuple[int, int, float]:
    return step, timestamp, 0.0 if math.isnan(value) else value


class Request:
    """Something that is logged."""

    def __init__(self, points: list[Point], number: int, *, texts: bool, of_model: bool) -> None:
        self.of_model = of_model
        self.points = (
            [{**point, "value": _value(point)} for point in points] if of_model else points
        )
        self.texts = [f"p{number}", f"t{number}"] if texts else []

    def send(self, api: Api, run_id: str, model_id: str) -> int:
        named = {"model_id": model_id} if self.of_model else {}
        points = [{**point, **named} for point in self.points]
        if len(points) == 1 and not self.texts:
            return api.ask("POST", "runs/log-metric", run_id=run_id, **points[0]).status
        more = {}
        if self.texts:
            param, tag = self.texts
            more = {"params": pairs({param: "v"}), "tags": pairs({tag: "v"})}
        return api.ask("POST", "runs/log-batch", run_id=run_id, metrics=points, **more).status


def _value(point: Point) -> float:
    """Of a model's metric there is one value for a step and timestamp."""
    return float(2 * point["step"] + point["timestamp"])


class World:
    """A run with a logged model, read in every way."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.name = f"killed {next(_names)}"
        self.experiment_id = api.new_experiment(self.name)
        self.run_id = api.new_run(self.experiment_id, run_name=self.name)
        made = api.post("logged-models", experiment_id=self.experiment_id, name="m")
        self.model_id: str = made["model"]["info"]["model_id"]
        self.kubeflow = KubeflowApi()

    def differences(self, expected: Logged) -> list[str]:
        """What some read shows otherwise."""
        api, wrong = self.api, list[str]()

        def compare(what: str, actual: object, wanted: object) -> None:
            if repr(actual) != repr(wanted):
                wrong.append(f"{what}: {actual} is not {wanted}")

        latest = {key: _plain(*point) for key, point in sorted(expected.latest.items())}
        search = {"experiment_ids": [self.experiment_id]}
        orders = [f"metrics.{key} DESC" for key in KEYS]
        (searched,) = api.post("runs/search", **search, order_by=orders)["runs"]
        for what, run in (("runs/get", api.run(self.run_id)), ("runs/search", searched)):
            shown = {
                metric["key"]: _plain(float(metric["value"]), metric["timestamp"], metric["step"])
                for metric in run["data"].get("metrics", ())
            }
            compare(what, dict(sorted(shown.items())), latest)
            texts = {
                pair["key"]
                for kind in ("params", "tags")
                for pair in run["data"].get(kind, ())
                if not pair["key"].startswith("mlflow.")
            }
            compare(f"texts of {what}", sorted(texts), sorted(expected.texts))
        for key in KEYS:
            count = len(
                api.post("runs/search", **search, filter=f"metrics.{key} > -5").get("runs", ())
            )
            value = expected.latest.get(key, (math.nan,))[0]
            compare(f"search by {key}", count, int(value > -5))
            wanted = sorted(map(repr, expected.history[key]))
            for what, points in self._histories(key):
                compare(f"{what} of {key}", sorted(map(repr, points)), wanted)
            # Kubeflow has no word for NaN.
            numbers = sorted(text.replace("nan", "0.0") for text in wanted)
            compare(f"Kubeflow's {key}", sorted(map(repr, self._in_kubeflow(key))), numbers)
        listed = self._model_points()
        compare("logged model", listed, sorted(expected.of_model))
        return wrong

    def _histories(self, key: str) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
        for size in (None, 1):
            points = self.api.history(self.run_id, key, size)
            yield f"history by {size}", [(at, step, str(float(v))) for at, step, v in points]
        for path, named in (
            ("metrics/get-history-bulk", "run_id"),
            ("metrics/get-history-bulk-interval", "run_ids"),
        ):
            fields = {named: [self.run_id], "metric_key": key}
            answer = self.api.get(path, **fields)
            yield path, [_of(metric) for metric in answer.get("metrics", ())]

    def _in_kubeflow(self, key: str) -> list[tuple[int, int, str]]:
        (run,) = self.kubeflow.items("experiment_runs", filterQuery=f"name = '{self.name}'")
        items = self.kubeflow.get(f"experiment_runs/{run['id']}/metric_history", name=key)["items"]
        return [(int(item["timestamp"]), item["step"], str(float(item["value"]))) for item in items]

    def _model_points(self) -> list[tuple[str, int, int]]:
        model = self.api.get(f"logged-models/{self.model_id}")["model"]
        metrics = model.get("data", {}).get("metrics", ())
        return sorted((metric["key"], metric["step"], metric["timestamp"]) for metric in metrics)


def _plain(value: float, timestamp: int, step: int) -> tuple[str, int, int]:
    return str(value), timestamp, step


def _of(point: Point) -> tuple[int, int, str]:
    return point["timestamp"], point["step"], str(float(point["value"]))
