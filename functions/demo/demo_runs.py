"""Creates, finds and ends the demo's runs. A run is found by a tag, so that creating the demo again
creates no second run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import reserved_tags
from mlcore.http.api_client import ApiClient
from mlcore.ids import now_ms

RUN_TAG: Final = "mlflow.demo.run"
"""The tag that holds a run's name in the demo."""


def of_experiment(client: ApiClient, experiment_id: str) -> dict[str, dict[str, Any]]:
    """Returns the ``info`` of the demo's runs in an experiment, by their names in the demo."""
    listed = client.post("/2.0/mlflow/runs/search", experiment_ids=[experiment_id])
    return {
        tag["value"]: run["info"]
        for run in listed.get("runs", ())
        for tag in run["data"].get("tags", ())
        if tag["key"] == RUN_TAG
    }


def create(
    client: ApiClient,
    experiment_id: str,
    name: str,
    tags: Mapping[str, str],
    start_time: int,
) -> dict[str, Any]:
    """Creates a run of the demo by the API and returns its ``info``. ``start_time`` is in ms."""
    made = client.post(
        "/2.0/mlflow/runs/create",
        experiment_id=experiment_id,
        run_name=name,
        start_time=start_time,
        tags=[{"key": key, "value": value} for key, value in {RUN_TAG: name, **tags}.items()],
    )
    return dict(made["run"]["info"])


def find_or_create(
    client: ApiClient, experiment_id: str, name: str, tags: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the ``info`` of the demo's run with this name that an earlier call created, or of a
    new run."""
    former = of_experiment(client, experiment_id).get(name)
    marked = {reserved_tags.DEMO: "true", **tags}
    return former or create(client, experiment_id, name, marked, now_ms())


def end(client: ApiClient, run: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
    """Logs the metrics of a run of the demo and ends the run. Repeating the call changes nothing:
    the points' time and the end follow from the run's start."""
    run_id, began = run["run_id"], int(run["start_time"])
    points = [
        {"key": key, "value": value, "timestamp": began, "step": 0}
        for key, value in metrics.items()
    ]
    if points:
        client.post("/2.0/mlflow/runs/log-batch", run_id=run_id, metrics=points)
    path = "/2.0/mlflow/runs/update"
    client.post(path, run_id=run_id, status="FINISHED", end_time=began + 21_000)
