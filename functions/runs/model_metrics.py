"""Checks and prepares metrics that name a logged model. They are logged both for the model and for
their run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlcore import errors
from mlcore.db.expression import Raw
from mlcore.entities.logged_models import ModelMetric
from mlcore.entities.metrics import stored_value
from mlcore.repos.logged_models import logged_models
from mlcore.repos.logged_models import points as logged_model_points
from mlcore.repos.logged_models.points import Conflict
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.log_writes import ModelPoints
from mlcore.repos.runs.core.runs import StoredRun
from runs import messages as m

Metrics = Sequence[m.LogMetric | m.Metric]


def check_dataset(metric: m.LogMetric | m.Metric) -> None:
    if bool(metric.dataset_name) != bool(metric.dataset_digest):
        raise errors.InvalidParameterValue(
            "Both dataset_name and dataset_digest must be provided if one is provided"
        )


class Models:
    """The logged models that the metrics of a request name. They are read in parallel with the run,
    and their points are written in parallel with the run's."""

    def __init__(self, metrics: Metrics, workspace: str) -> None:
        self._workspace = workspace
        self._metrics: dict[str, list[m.LogMetric | m.Metric]] = {}
        for metric in metrics:
            if metric.model_id:
                self._metrics.setdefault(metric.model_id, []).append(metric)
        self._items: list[Raw | None] = []

    @property
    def reading(self) -> Callable[[str], None] | None:
        """A function that reads the logged models; it takes the id of the experiment that probably
        contains them. None if the metrics name no model."""
        return self._read if self._metrics else None

    def points(self, run: StoredRun) -> list[ModelPoints]:
        """Returns, for each logged model that the request's metrics name, the points to write.

        Raises:
            InvalidParameterValue: the run is not active.
            BadRequest: a logged model does not exist; or its item, or another of these metrics, has
                another value or dataset for a metric, step and timestamp of the run. Points that
                are stored outside the item are not compared.
        """
        if self._metrics:
            runs.check_active(run)
        points_of_models: list[ModelPoints] = []
        for (model_id, metrics), item in zip(self._metrics.items(), self._items, strict=True):
            if item is None:
                raise errors.BadRequest(f"Logged model with ID '{model_id}' not found.")
            points = _new_points(model_id, item, metrics, run.run_id)
            points_of_models.append(ModelPoints(item, points))
        return points_of_models

    def _read(self, experiment_id: str) -> None:
        self._items = logged_models.find(list(self._metrics), self._workspace, experiment_id)


def _new_points(model_id: str, item: Raw, metrics: Metrics, run_id: str) -> list[ModelMetric]:
    points = [
        ModelMetric(
            metric.key,
            0.0 if math.isnan(metric.value) else stored_value(metric.value),
            metric.timestamp,
            metric.step,
            run_id,
            metric.dataset_name or None,
            metric.dataset_digest or None,
        )
        for metric in metrics
    ]
    try:
        return logged_model_points.new_points(item, points)
    except Conflict as conflict:
        point = conflict.point
        raise errors.BadRequest(
            f"The logged model with ID '{model_id}' already has another value of metric "
            f"'{point.key}' at step {point.step} and timestamp {point.timestamp} of run "
            f"'{point.run_id}'."
        ) from conflict
