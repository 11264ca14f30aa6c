"""Random writes from several threads, retried until they are answered, and what must be there then;
starts and kills no server.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

KEYS = ("acc", "loss", "val/loss b", "ä:.-")
WORDS = ("ann", "Hannah", "anna lee", "bob", "lr 0.01", "x", "")
VALUES = (0, 1, 0.5, -2.25, 1e300, "NaN", "Infinity")
RETRY_SECONDS = 0.05
GIVE_UP_SECONDS = 60

Body = dict[str, Any]


class Client:
    """Sends a call until there is an answer, as MLflow's clients do."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        self.retries = 0

    def call(self, method: str, path: str, body: Body | None = None) -> tuple[int, Body, bool]:
        """(status, answer, whether an earlier sending may have been executed)"""
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        deadline = time.monotonic() + GIVE_UP_SECONDS
        repeated = False
        while True:
            try:
                self._connection.request(method, f"/api/2.0/mlflow/{path}", data, headers)
                reply = self._connection.getresponse()
                status, text = reply.status, reply.read()
            except (OSError, http.client.HTTPException):
                status, text = 0, b""
                self._connection.close()
            if 200 <= status < 429 or (status == 429 and time.monotonic() > deadline):
                return status, json.loads(text), repeated
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path}: {status} {text[:300]!r}")
            repeated = True
            self.retries += 1
            time.sleep(RETRY_SECONDS)

    def close(self) -> None:
        self._connection.close()


class Run:
    """What the product must know of a run."""

    def __init__(self, experiment_id: str, name: str) -> None:
        self.experiment_id = experiment_id
        self.tags = {"mlflow.runName": name}
        self.params: dict[str, str] = {}
        self.points: dict[str, set[tuple[int, Any]]] = {}
        self.status = "RUNNING"
        self.deleted = False

    def latest(self) -> dict[str, tuple[int, Any]]:
        return {key: max(points, key=lambda point: point[0]) for key, points in self.points.items()}


class Worker(threading.Thread):
    """Experiments and runs of its own; nobody else writes to them."""

    def __init__(self, url: str, number: int, seed: int, writes: int) -> None:
        super().__init__(name=f"storm-{number}", daemon=True)
        self.client = Client(url)
        self.runs: dict[str, Run] = {}
        self.experiments: dict[str, bool] = {}
        """Whether it is deleted, by id."""
        self.done = 0
        self.faults: list[str] = []
        self._rng = random.Random(f"{seed} {number}")
        self._number = number
        self._writes = writes
        self._step = 0

    def run(self) -> None:
        try:
            while self.done < self._writes and not self.faults:
                self._act()
                self.done += 1
        except Exception as error:
            self.faults.append(repr(error))
        self.client.close()

    def finish(self) -> None:
        """Ends after the write at hand."""
        self._writes = 0

    def _act(self) -> None:
        rng = self._rng
        if not self.experiments or rng.random() < 0.004:
            return self._new_experiment()
        living = [key for key, deleted in self.experiments.items() if not deleted]
        if living and (not self.runs or rng.random() < 0.05):
            return self._new_run(rng.choice(living))
        acts: dict[Callable[[], None], float] = {
            self._log_batch: 6,
            self._log_metric: 6,
            self._set_tag: 4,
            self._delete_tag: 2,
            self._log_param: 2,
            self._update: 2,
            self._log_inputs: 1,
            self._stage_of_run: 1.5,
            self._experiment_tag: 0.7,
            self._rename_experiment: 0.3,
            self._stage_of_experiment: 0.15,
        }
        (act,) = rng.choices(list(acts), list(acts.values()))
        return act()

    def _send(self, path: str, body: Body, *others: int) -> tuple[int, Body, bool]:
        """``others`` are statuses that a repeated call may have for having been executed."""
        status, answer, repeated = self.client.call("POST", path, body)
        if status != 200 and not (repeated and status in others):
            self.faults.append(f"{path} {body}: {status} {answer}")
        return status, answer, repeated

    def _new_experiment(self) -> None:
        name = f"storm {self._number}.{self.done}"
        status, answer, _ = self._send("experiments/create", {"name": name}, 400)
        if status != 200:
            path = f"experiments/get-by-name?experiment_name={name.replace(' ', '%20')}"
            answer = self.client.call("GET", path)[1]["experiment"]
        self.experiments[answer["experiment_id"]] = False

    def _new_run(self, experiment_id: str) -> None:
        """Repeated, it may have made two; the first one stays as it was born."""
        name = self._rng.choice(WORDS) or "n"
        body = {"experiment_id": experiment_id, "start_time": self.done % 50, "run_name": name}
        _, answer, _ = self._send("runs/create", body)
        if not self.faults:
            self.runs[answer["run"]["info"]["run_id"]] = Run(experiment_id, name)

    def _active(self) -> tuple[str, Run] | None:
        """A run that can be written to."""
        chosen = self._rng.choices(list(self.runs.items()), k=4) if self.runs else []
        return next((pair for pair in chosen if not pair[1].deleted), None)

    def _point(self, key: str) -> tuple[Body, tuple[int, Any]]:
        self._step += 1
        value = self._rng.choice(VALUES)
        return {"key": key, "value": value, "timestamp": 1, "step": self._step}, (self._step, value)

    def _log_batch(self) -> None:
        active = self._active()
        if active is None:
            return
        run_id, run = active
        rng = self._rng
        points = {key: self._point(key) for key in rng.sample(KEYS, rng.choice((0, 1, 4)))}
        params = {key: rng.choice(WORDS) for key in rng.sample(KEYS, 2) if key not in run.params}
        tags = {key: rng.choice(WORDS) for key in rng.sample(KEYS, rng.choice((0, 1, 2)))}
        body: Body = {"run_id": run_id, "metrics": [point for point, _ in points.values()]}
        for field, texts in (("params", params), ("tags", tags)):
            body[field] = [{"key": key, "value": value} for key, value in texts.items()]
        self._send("runs/log-batch", body)
        for key, (_, kept) in points.items():
            run.points.setdefault(key, set()).add(kept)
        run.params |= params
        run.tags |= tags

    def _log_metric(self) -> None:
        active = self._active()
        if active is not None:
            key = self._rng.choice(KEYS)
            point, kept = self._point(key)
            self._send("runs/log-metric", {"run_id": active[0], **point})
            active[1].points.setdefault(key, set()).add(kept)

    def _log_param(self) -> None:
        active = self._active()
        key = self._rng.choice(KEYS)
        if active is not None:
            value = active[1].params.setdefault(key, self._rng.choice(WORDS))
            self._send("runs/log-parameter", {"run_id": active[0], "key": key, "value": value})

    def _set_tag(self) -> None:
        active = self._active()
        if active is not None:
            key, value = self._rng.choice(KEYS), self._rng.choice(WORDS)
            self._send("runs/set-tag", {"run_id": active[0], "key": key, "value": value})
            active[1].tags[key] = value

    def _delete_tag(self) -> None:
        active = self._active()
        key = self._rng.choice(KEYS)
        if active is not None and active[1].tags.pop(key, None) is not None:
            self._send("runs/delete-tag", {"run_id": active[0], "key": key}, 404)

    def _update(self) -> None:
        active = self._active()
        if active is not None:
            run = active[1]
            run.status = self._rng.choice(("RUNNING", "FINISHED", "FAILED"))
            run.tags["mlflow.runName"] = self._rng.choice(WORDS[:-1])
            body = {"status": run.status, "run_name": run.tags["mlflow.runName"]}
            self._send("runs/update", {"run_id": active[0], **body})

    def _log_inputs(self) -> None:
        active = self._active()
        if active is not None:
            name = self._rng.choice(WORDS) or "d"
            dataset = {"name": name, "digest": "1", "source_type": "local", "source": "{}"}
            self._send("runs/log-inputs", {"run_id": active[0], "datasets": [{"dataset": dataset}]})

    def _stage_of_run(self) -> None:
        if self.runs:
            run_id, run = self._rng.choice(list(self.runs.items()))
            run.deleted = not run.deleted
            self._send(f"runs/{'delete' if run.deleted else 'restore'}", {"run_id": run_id})

    def _living_experiment(self) -> str | None:
        chosen = self._rng.choice(list(self.experiments))
        return None if self.experiments[chosen] else chosen

    def _experiment_tag(self) -> None:
        chosen = self._living_experiment()
        if chosen is not None:
            body = {"key": self._rng.choice(KEYS), "value": self._rng.choice(WORDS)}
            self._send("experiments/set-experiment-tag", {"experiment_id": chosen, **body})

    def _rename_experiment(self) -> None:
        chosen = self._living_experiment()
        if chosen is not None:
            body = {"new_name": f"renamed {self._number}.{self.done}"}
            self._send("experiments/update", {"experiment_id": chosen, **body})

    def _stage_of_experiment(self) -> None:
        chosen = self._rng.choice(list(self.experiments))
        deleted = self.experiments[chosen] = not self.experiments[chosen]
        verb = "delete" if deleted else "restore"
        self._send(f"experiments/{verb}", {"experiment_id": chosen}, 404)
        for run in self.runs.values():
            if run.experiment_id == chosen:
                run.deleted = deleted

    # -- what must be there ------------------------------------------------------------------------

    def check(self) -> list[str]:
        """What differs between the product and what was answered."""
        faults = list(self.faults)
        for run_id, run in self.runs.items():
            shown_run = self.client.call("GET", f"runs/get?run_id={run_id}")[1]["run"]
            data = shown_run["data"]
            pairs = {
                field: {pair["key"]: pair.get("value", "") for pair in data.get(field, ())}
                for field in ("params", "tags")
            }
            metrics = {
                metric["key"]: (metric["step"], metric["value"])
                for metric in data.get("metrics", ())
            }
            seen = (pairs["params"], pairs["tags"], shown_run["info"]["status"], metrics)
            latest = {key: (step, _stored(value)) for key, (step, value) in run.latest().items()}
            wanted = (run.params, run.tags, run.status, latest)
            if seen != wanted:
                faults.append(f"{run_id}: {seen} instead of {wanted}")
            for key, points in run.points.items():
                logged = history(self.client, run_id, key)
                if sorted(logged, key=repr) != sorted(points, key=repr):
                    faults.append(f"{run_id} {key}: {len(logged)} points, {len(points)} logged")
            stage = "deleted" if run.deleted else "active"
            if shown_run["info"]["lifecycle_stage"] != stage:
                faults.append(f"{run_id} is not {stage}")
        self.client.close()
        return faults


def history(client: Client, run_id: str, key: str) -> list[tuple[int, Any]]:
    """(step, value) of all points of a metric."""
    results: list[tuple[int, Any]] = []
    token = ""
    while True:
        path = f"metrics/get-history?run_id={run_id}&metric_key={quote(key)}&page_token={token}"
        page = client.call("GET", path)[1]
        results += [(metric["step"], _named(metric["value"])) for metric in page.get("metrics", ())]
        token = page.get("next_page_token", "")
        if not token:
            return results


def _named(value: Any) -> Any:
    """As it was logged."""
    return "Infinity" if value == _stored("Infinity") else value


def _stored(value: Any) -> Any:
    return 1.7976931348623157e308 if value == "Infinity" else value
