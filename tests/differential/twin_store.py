"""The same writes told to the product's handlers and to stock MLflow's SQL store, with the same run
ids; searches nothing.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.contract.api import Api, pairs
from tests.differential import search_samples as samples
from tests.differential.stock import MlflowException, mlflow_entities, sqlalchemy_store

RUN_NAME = "mlflow.runName"


class Twins:
    """One world of two experiments on both sides. Every method does one random write to both."""

    def __init__(self, rng: random.Random, api: Api, stock: Any, name: str) -> None:
        self._rng = rng
        self._api = api
        self._stock = stock
        self.experiments: list[tuple[str, str]] = []
        """(the product's id, stock's id)"""
        self.runs: list[str] = []
        for number in range(2):
            location = f"mlflow-artifacts:/{name}.{number}"
            title = f"{name}.{number}"
            ours = api.new_experiment(title, artifact_location=location)
            self.experiments.append((ours, stock.create_experiment(title, location)))

    def write(self) -> None:
        rng = self._rng
        if not self.runs or rng.random() < 0.4:
            self._create()
        run_id = rng.choice(self.runs[-12:] if rng.random() < 0.7 else self.runs)
        acts = {
            self._log: 9,
            self._log_metric: 4,
            self._set_tag: 3,
            self._update: 3,
            self._delete_tag: 2,
            self._log_inputs: 2,
            self._set_stage: 2,
            self._set_experiment_stage: 0.2,
        }
        (act,) = rng.choices(list(acts), list(acts.values()))
        act(run_id)

    def _create(self) -> None:
        rng = self._rng
        ours, theirs = rng.choice(self.experiments)
        fields = {
            "user_id": rng.choice(samples.TEXTS),
            "start_time": rng.choice(samples.TIMES),
            "run_name": rng.choice(samples.TEXTS) or "name",
        }
        answer = self._api.ask("POST", "runs/create", experiment_id=ours, **fields)
        run_id = "refused"
        if answer.status == 200:
            run_id = answer.body["run"]["info"]["run_id"]
            self.runs.append(run_id)
        with pytest.MonkeyPatch.context() as patch:
            given = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=run_id))
            patch.setattr(sqlalchemy_store, "uuid", given)
            self._same(answer.status, self._stock.create_run, theirs, tags=[], **fields)

    def _log(self, run_id: str) -> None:
        rng = self._rng
        metrics = [self._metric() for _ in range(rng.choice((0, 1, 2, 4, 6)))]
        texts = [
            {key: rng.choice(samples.TEXTS) for key in samples.KEYS if rng.random() < share}
            for share in (0.3, 0.2)
        ]
        made = mlflow_entities
        answer = self._api.ask(
            "POST",
            "runs/log-batch",
            run_id=run_id,
            metrics=[{**metric, "value": samples.shown(metric["value"])} for metric in metrics],
            params=pairs(texts[0]),
            tags=pairs(texts[1]),
        )
        self._same(
            answer.status,
            self._stock.log_batch,
            run_id,
            [made.Metric(**metric) for metric in metrics],
            [made.Param(*item) for item in texts[0].items()],
            [made.RunTag(*item) for item in texts[1].items()],
        )

    def _log_metric(self, run_id: str) -> None:
        metric = self._metric()
        sent = {**metric, "value": samples.shown(metric["value"])}
        answer = self._api.ask("POST", "runs/log-metric", run_id=run_id, **sent)
        point = mlflow_entities.Metric(**metric)
        self._same(answer.status, self._stock.log_metric, run_id, point)

    def _set_tag(self, run_id: str) -> None:
        key = self._rng.choice((*samples.KEYS, RUN_NAME))
        value = self._rng.choice(samples.TEXTS) or "v"
        answer = self._api.ask("POST", "runs/set-tag", run_id=run_id, key=key, value=value)
        self._same(answer.status, self._stock.set_tag, run_id, mlflow_entities.RunTag(key, value))

    def _delete_tag(self, run_id: str) -> None:
        key = self._rng.choice((*samples.KEYS, RUN_NAME))
        answer = self._api.ask("POST", "runs/delete-tag", run_id=run_id, key=key)
        self._same(answer.status, self._stock.delete_tag, run_id, key)

    def _update(self, run_id: str) -> None:
        rng = self._rng
        status = rng.choice((None, *samples.STATUSES))
        end_time = rng.choice((None, *samples.TIMES))
        name = rng.choice((None, *samples.TEXTS))
        given = {"status": status, "end_time": end_time, "run_name": name}
        sent = {field: value for field, value in given.items() if value is not None}
        answer = self._api.ask("POST", "runs/update", run_id=run_id, **sent)
        code = status and mlflow_entities.RunStatus.from_string(status)
        self._same(answer.status, self._stock.update_run_info, run_id, code, end_time, name)

    def _log_inputs(self, run_id: str) -> None:
        rng, made = self._rng, mlflow_entities
        name, digest = rng.choice(samples.DATASET_NAMES), rng.choice(samples.DATASET_DIGESTS)
        tags = {"other": "a"} if rng.random() < 0.3 else {}
        if rng.random() < 0.7:
            tags["mlflow.data.context"] = rng.choice(samples.DATASET_CONTEXTS)
        dataset = {"name": name, "digest": digest, "source_type": "local", "source": "{}"}
        answer = self._api.ask(
            "POST",
            "runs/log-inputs",
            run_id=run_id,
            datasets=[{"dataset": dataset, "tags": pairs(tags)}],
        )
        listed = [made.InputTag(*item) for item in tags.items()]
        linked = made.DatasetInput(made.Dataset(**dataset), listed)
        self._same(answer.status, self._stock.log_inputs, run_id, [linked])

    def _set_stage(self, run_id: str) -> None:
        verb = self._rng.choice(("delete", "restore"))
        answer = self._api.ask("POST", f"runs/{verb}", run_id=run_id)
        self._same(answer.status, getattr(self._stock, f"{verb}_run"), run_id)

    def _set_experiment_stage(self, _: str) -> None:
        ours, theirs = self._rng.choice(self.experiments)
        verb = self._rng.choice(("delete", "restore", "restore"))
        answer = self._api.ask("POST", f"experiments/{verb}", experiment_id=ours)
        self._same(answer.status, getattr(self._stock, f"{verb}_experiment"), theirs)

    def _metric(self) -> dict[str, Any]:
        rng = self._rng
        return {
            "key": rng.choice(rng.choice((samples.KEYS, samples.KEYS[:2]))),
            "value": rng.choice(samples.METRIC_VALUES),
            "timestamp": rng.choice((1, 1, 2)),
            "step": rng.randrange(-1, 4),
        }

    @staticmethod
    def _same(status: int, call: Any, *arguments: Any, **fields: Any) -> None:
        """Stock does what the product did: takes the write, or refuses it."""
        refusal = None
        try:
            call(*arguments, **fields)
        except MlflowException as refused:
            refusal = refused
        assert (refusal is None) is (status == 200), (call.__name__, arguments, fields, refusal)
