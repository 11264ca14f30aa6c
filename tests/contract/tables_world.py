"""Random writes through the API, and what the system tables should say of them."""

from __future__ import annotations

import math
import random
from typing import Any

from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import Run
from mlcore.entities.workspaces import Workspace
from mlcore.ids import new_ulid
from mlcore.repos.experiments import experiments
from mlcore.repos.removal import permanent_deletion, workspace_moves
from mlcore.repos.runs.core import creations
from mlcore.repos.runs.history import metric_history
from mlcore.repos.workspaces import workspaces
from runs import app as runs_app
from tests.contract.api import called
from tests.contract.conftest import Store

KEYS = ("loss", "a/b: c", "acc-1")
HOME, AWAY = "default", "team"
VALUES: tuple[Any, ...] = (0.0, 1.5, -3.25, 1e300, -1e-300, "NaN", "Infinity", 7, 1234567.0625)


def _stored(value: Any) -> float:
    return {"NaN": math.nan, "Infinity": 1.7976931348623157e308}.get(value, value)


class World:
    """Does random things through the API and remembers what they mean."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.api, self.rng = store, store.api, random.Random(seed)
        if AWAY not in workspaces.names():  # another world may have made it
            workspaces.create(Workspace(AWAY, None))
        self.experiments: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.number = 0

    def step(self) -> None:
        acts = [self.create_run, *[self.log] * 5, self.change, self.delete_run, self.restore_run]
        acts += [self.rewind] if self.rng.random() < 0.4 else []
        acts += [self.rename] if self.rng.random() < 0.3 else []
        acts += [self.delete_experiment] if self.rng.random() < 0.2 else []
        acts += [self.restore_experiment] if self.rng.random() < 0.4 else []
        acts += [self.purge] if self.rng.random() < 0.1 else []
        acts += [self.import_run, self.move] if self.rng.random() < 0.3 else []
        acts += [self.expire_run, self.purge_run] if self.rng.random() < 0.1 else []
        if len(self.experiments) < 3:
            acts = [self.create_experiment]
        self.rng.choice(acts)()

    def _experiment(self, *, deleted: bool) -> str | None:
        items = [
            key
            for key, about in self.experiments.items()
            if about["deleted"] is deleted and about["workspace"] == HOME
        ]
        return self.rng.choice(items) if items else None

    def _run(self, *, deleted: bool) -> str | None:
        """Of those that the API reaches."""
        runs = [
            run
            for run, about in self.runs.items()
            if about["deleted"] is deleted
            and not self.experiments[about["experiment"]]["deleted"]
            and self.experiments[about["experiment"]]["workspace"] == HOME
        ]
        return self.rng.choice(runs) if runs else None

    def _name(self) -> str:
        self.number += 1
        return f"name {self.number}"

    def create_experiment(self) -> None:
        name = self._name()
        made = self.api.post("experiments/create", name=name)["experiment_id"]
        self.experiments[made] = {"name": name, "deleted": False, "workspace": HOME}

    def create_run(self) -> None:
        experiment = self._experiment(deleted=False)
        if experiment is None:
            return
        start = self.rng.randrange(1_500_000_000_000, 1_800_000_000_000)
        made = self.api.post("runs/create", experiment_id=experiment, start_time=start)
        self.runs[made["run"]["info"]["run_id"]] = {
            "experiment": experiment,
            "deleted": False,
            "status": "RUNNING",
            "params": {},
            "points": set(),
        }

    def log(self) -> None:
        run = self._run(deleted=False)
        if run is None:
            return
        rng = self.rng
        metrics = [
            {
                "key": rng.choice(KEYS),
                "value": rng.choice(VALUES),
                "step": rng.randrange(-2, 6),
                "timestamp": rng.randrange(5),
            }
            for _ in range(rng.choice((1, 1, 3, 12)))
        ]
        about = self.runs[run]
        if len(metrics) == 1:
            self.api.post("runs/log-metric", run_id=run, **metrics[0])
        else:
            key = f"p{rng.randrange(4)}"
            value = about["params"].setdefault(key, self._name())
            self.api.post(
                "runs/log-batch",
                run_id=run,
                metrics=metrics,
                params=[{"key": key, "value": value}],
            )
        for metric in metrics:
            about["points"].add(
                (metric["key"], metric["step"], metric["timestamp"], metric["value"])
            )

    def rewind(self) -> None:
        run = self._run(deleted=False)
        if run is None:
            return
        keys = self.rng.choice((None, list(KEYS[:1]), list(KEYS)))
        step = self.rng.choice((None, *range(-2, 6)))
        fields: dict[str, Any] = {"delete_all": True} if step is None else {"after_step": step}
        if keys is not None:
            fields["metric_keys"] = keys
        path = "/api/3.0/mlflow-serverless/runs/rewind"
        answer = called(runs_app.handler, "POST", path, {"run_id": run, **fields})
        assert answer.status == 200, answer.body
        about = self.runs[run]
        about["points"] = {
            point
            for point in about["points"]
            if (keys is not None and point[0] not in keys)
            or (step is not None and point[1] <= step)
        }

    def change(self) -> None:
        run = self._run(deleted=False)
        if run is not None:
            status = self.rng.choice(("FINISHED", "FAILED", "RUNNING"))
            self.api.post("runs/update", run_id=run, status=status)
            self.runs[run]["status"] = status

    def delete_run(self) -> None:
        run = self._run(deleted=False)
        if run is not None:
            self.api.post("runs/delete", run_id=run)
            self.runs[run]["deleted"] = True

    def restore_run(self) -> None:
        run = self._run(deleted=True)
        if run is not None:
            self.api.post("runs/restore", run_id=run)
            self.runs[run]["deleted"] = False

    def rename(self) -> None:
        experiment = self._experiment(deleted=False)
        if experiment is not None:
            name = self._name()
            self.api.post("experiments/update", experiment_id=experiment, new_name=name)
            self.experiments[experiment]["name"] = name

    def delete_experiment(self) -> None:
        experiment = self._experiment(deleted=False)
        if experiment is not None:
            self.api.post("experiments/delete", experiment_id=experiment)
            self._stage(experiment, deleted=True)

    def restore_experiment(self) -> None:
        experiment = self._experiment(deleted=True)
        if experiment is not None:
            self.api.post("experiments/restore", experiment_id=experiment)
            self._stage(experiment, deleted=False)

    def _stage(self, experiment: str, *, deleted: bool) -> None:
        """As MLflow, which deletes and restores the runs with their experiment."""
        self.experiments[experiment]["deleted"] = deleted
        for about in self.runs.values():
            if about["experiment"] == experiment:
                about["deleted"] = deleted

    def purge(self) -> None:
        experiment = self._experiment(deleted=True)
        if experiment is not None:
            permanent_deletion.experiment(experiment)
            del self.experiments[experiment]
            gone = [run for run, about in self.runs.items() if about["experiment"] == experiment]
            for run in gone:
                del self.runs[run]

    def import_run(self) -> None:
        """As an import does: the whole history, and then the run."""
        experiment = self._experiment(deleted=False)
        if experiment is None:
            return
        run, steps = new_ulid(), self.rng.randrange(1, 40)
        values = [self.rng.choice((1.25, -2.5, math.nan)) for _ in range(steps)]
        series = [Metric("old", value, 7, step) for step, value in enumerate(values)]
        metric_history.write(experiment, run, series)
        about = (run, experiment, "imported", "ann", "FINISHED", 1, 2, "mlflow-artifacts:/x")
        whole = Run(*about, ACTIVE, {"old": series[-1]}, {"imported": "yes"}, {})
        creations.create(whole, experiments.get(experiment, HOME).experiment)
        self.runs[run] = {
            "experiment": experiment,
            "deleted": False,
            "status": "FINISHED",
            "params": {"imported": "yes"},
            "points": {
                ("old", step, 7, "NaN" if math.isnan(value) else value)
                for step, value in enumerate(values)
            },
        }

    def move(self) -> None:
        """To another workspace, where the API does not reach it, or back."""
        items = [key for key, about in self.experiments.items() if not about["deleted"]]
        if not items:
            return
        experiment = self.rng.choice(items)
        about = self.experiments[experiment]
        about["workspace"] = AWAY if about["workspace"] == HOME else HOME
        workspace_moves.experiment(experiment, about["workspace"])

    def purge_run(self) -> None:
        run = self._run(deleted=True)
        if run is not None:
            permanent_deletion.run(self.runs.pop(run)["experiment"], run, HOME)

    def expire_run(self) -> None:
        """As DynamoDB takes away what has an end: item by item, in no order."""
        run = self._run(deleted=True)
        if run is not None:
            items = self.store.items_of(self.runs.pop(run)["experiment"], run)
            self.rng.shuffle(items)
            for item in items:
                self.store.direct.delete_item(
                    TableName=self.store.table, Key={"PK": item["PK"], "SK": item["SK"]}
                )

    # ------------------------------------------------------------ what the tables should say

    def expected(self) -> tuple[Any, Any, Any]:
        experiments = {
            key: (about["name"], about["deleted"], about["workspace"])
            for key, about in self.experiments.items()
        }
        points = sorted(
            (run, self._workspace(about), key, step, timestamp, repr(_stored(value)))
            for run, about in self.runs.items()
            for key, step, timestamp, value in {
                (key, step, timestamp, repr(float(_stored(value)))): (key, step, timestamp, value)
                for key, step, timestamp, value in about["points"]
            }.values()
        )
        points = [(*rest, repr(float(value))) for *rest, value in points]
        runs = {
            run: (
                about["experiment"],
                self._workspace(about),
                about["status"],
                about["deleted"],
                about["params"],
                self._metrics(about["points"]),
            )
            for run, about in self.runs.items()
        }
        return experiments, runs, points

    def _workspace(self, run: dict[str, Any]) -> str:
        workspace: str = self.experiments[run["experiment"]]["workspace"]
        return workspace

    def _metrics(self, points: set[tuple[str, int, int, Any]]) -> dict[str, tuple[str, str, str]]:
        summaries = {}
        for key in {point[0] for point in points}:
            series = [(step, at, _stored(value)) for name, step, at, value in points if name == key]
            latest = max(
                series,
                key=lambda point: (point[0], point[1], 0.0 if math.isnan(point[2]) else point[2]),
            )
            values = [value for *_, value in series]
            poisoned = any(map(math.isnan, values))
            ends = (
                ("nan", "nan") if poisoned else (repr(float(min(values))), repr(float(max(values))))
            )
            position = latest[:2]
            same = [value for step, at, value in series if (step, at) == position]
            zero = (
                0.0 in same
                and any(map(math.isnan, same))
                and max(0.0 if math.isnan(value) else value for value in same) == 0.0
            )
            # Where NaN and 0 are equally late the first stays, which the model does not know.
            summaries[key] = ("either" if zero else repr(float(latest[2])), *ends)
        return summaries
