"""Reads experiments, runs and logged models of an MLflow server as entities of this product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlparse

from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.logged_models import LoggedModel, ModelMetric
from mlcore.entities.metrics import Metric, stored_value
from mlcore.entities.runs import Dataset, DatasetInput, ModelOutput, Run
from mlcore.entities.tags import Tag
from mlcore.repos.runs.history import metric_history
from mlcore.reserved_tags import RUN_NAME
from operate.transfer.mlflow_client import Json, Server, SourceFailed

API: Final = "api/2.0/mlflow"
API_3: Final = "api/3.0/mlflow"
_ROUTE: Final = "/api/2.0/mlflow-artifacts/artifacts/"
HISTORY_PAGE_POINTS: Final = 25_000
"""Points in a page of metric history; the most that MLflow's server allows."""


def proxy_path(location: str, folder: Path | None = None) -> str | None:
    """Returns the path, in the artifact proxy of the source MLflow server, that an artifact
    location refers to; None if the location is not behind the proxy.

    Args:
        folder: the folder that the proxy serves, if it is known.
    """
    parsed = urlparse(location)
    if folder is not None and parsed.scheme in ("", "file"):
        return _below(folder, unquote(parsed.path) if parsed.scheme else location)
    if parsed.scheme == "mlflow-artifacts":
        return parsed.path.lstrip("/")
    if parsed.scheme in ("http", "https") and _ROUTE in parsed.path:
        return parsed.path.split(_ROUTE, 1)[1]
    return None


def _below(folder: Path, path: str) -> str | None:
    """Returns the part of a path that is below the folder, or below a folder of the same name: a
    run in ``mlruns`` has the path of that time, and the folder may have been moved since."""
    parts = PurePosixPath(path).parts
    own = folder.parts
    if parts[: len(own)] == own:
        rest = parts[len(own) :]
    elif folder.name in parts[:-1]:
        rest = parts[parts.index(folder.name) + 1 :]
    else:
        return None
    return None if not rest or ".." in rest else "/".join(rest)


def target_location(location: str, folder: Path | None = None) -> str:
    """Returns an artifact location of an import's source as this product stores it: one behind the
    source's artifact proxy without the source's host name, any other unchanged. For ``folder`` see
    :func:`proxy_path`."""
    path = proxy_path(location, folder)
    return location if path is None else f"mlflow-artifacts:/{path}"


def values_by_key(pairs: list[Json] | None) -> dict[str, str]:
    return {pair["key"]: pair.get("value", "") for pair in pairs or ()}


def empty_if_unsupported(entries: Iterator[Json]) -> Iterator[Json]:
    """Yields what a route of the source server lists; nothing if that server lacks the route."""
    try:
        yield from entries
    except SourceFailed as failed:
        if not failed.unknown:
            raise


def none_if_unsupported(entries: Iterator[Json]) -> list[Json] | None:
    """Returns the entities that the source server of an import lists; None if that server lacks the
    route, or keeps its data in files: MLflow's file store does not support these entities, so the
    server answers with an error page."""
    try:
        return list(entries)
    except SourceFailed as failed:
        if failed.unknown or (failed.status == 500 and not failed.code):
            return None
        raise


class SourceReader:
    """Reads one workspace of another MLflow server, and converts its entities to this product's.

    Args:
        target_of: returns this product's id of an experiment, given that server's id.
    """

    def __init__(self, server: Server, target_of: Callable[[str], str]) -> None:
        self.server = server
        self.target_of = target_of
        self.workspace = server.workspace

    def experiments(self, names: list[str]) -> list[Experiment]:
        """Returns the MLflow server's experiments, deleted ones too, oldest first: all of them, or
        those with the given names."""
        all_experiments = [
            _experiment(page, self.server)
            for page in self.server.pages(
                "POST",
                f"{API}/experiments/search",
                "experiments",
                view_type="ALL",
                max_results=1000,
            )
        ]
        chosen = [
            experiment for experiment in all_experiments if not names or experiment.name in names
        ]
        return sorted(chosen, key=lambda each: (each.creation_time, each.experiment_id))

    def runs(self, experiment_id: str) -> Iterator[tuple[str, str]]:
        """Yields (run id, artifact location) of each run that the source server has in an
        experiment, including deleted runs."""
        for run in self.server.pages(
            "POST",
            f"{API}/runs/search",
            "runs",
            experiment_ids=[experiment_id],
            run_view_type="ALL",
            max_results=500,
        ):
            info = run["info"]
            yield info.get("run_id") or info["run_uuid"], info.get("artifact_uri", "")

    def run(self, run_id: str) -> Run:
        fields = self.server.get(f"{API}/runs/get", run_id=run_id)["run"]
        info, data = fields["info"], fields.get("data", {})
        tags = values_by_key(data.get("tags"))
        return Run(
            run_id=run_id,
            experiment_id=self.target_of(info["experiment_id"]),
            run_name=info.get("run_name") or tags.get(RUN_NAME, ""),
            user_id=info.get("user_id", ""),
            status=info.get("status", "RUNNING"),
            start_time=int(info.get("start_time", 0)),
            end_time=int(info.get("end_time", 0)) or None,
            artifact_uri=target_location(info.get("artifact_uri", ""), self.server.files),
            lifecycle_stage=info.get("lifecycle_stage", ACTIVE),
            metrics={
                entry["key"]: _metric(entry["key"], entry) for entry in data.get("metrics", ())
            },
            params=values_by_key(data.get("params")),
            tags=tags,
            dataset_inputs=tuple(
                map(_dataset_input, fields.get("inputs", {}).get("dataset_inputs", ()))
            ),
            model_inputs=tuple(
                entry["model_id"] for entry in fields.get("inputs", {}).get("model_inputs", ())
            ),
            model_outputs=tuple(
                ModelOutput(entry["model_id"], int(entry.get("step", 0)))
                for entry in fields.get("outputs", {}).get("model_outputs", ())
            ),
        )

    def history(self, run_id: str, key: str) -> list[Metric]:
        """Returns every distinct point that the source server has of a run's metric, in the
        server's order."""
        path = f"{API}/metrics/get-history"
        fields = {"run_id": run_id, "metric_key": key}
        try:
            points = list(
                self.server.pages("GET", path, "metrics", **fields, max_results=HISTORY_PAGE_POINTS)
            )
        except SourceFailed as failed:
            if failed.status != 400:
                raise
            points = self.server.get(path, **fields).get(
                "metrics", []
            )  # an old server without pages
        return metric_history.distinct(_metric(key, point) for point in points)

    def logged_models(self, experiment_id: str) -> Iterator[LoggedModel]:
        """Yields the active logged models of an experiment; none for a server before 3.0. Deleted
        models are not transferred, because no server lists them."""
        try:
            for fields in self.server.pages(
                "POST",
                f"{API}/logged-models/search",
                "models",
                experiment_ids=[experiment_id],
                max_results=50,
            ):
                yield self.logged_model(fields)
        except SourceFailed as failed:
            if not failed.unknown:
                raise

    def logged_model(self, fields: Json) -> LoggedModel:
        """Converts a logged model in the REST API's JSON to this product's entity."""
        info, data = fields["info"], fields.get("data", {})
        return LoggedModel(
            model_id=info["model_id"],
            experiment_id=self.target_of(info["experiment_id"]),
            name=info.get("name", ""),
            artifact_location=target_location(info.get("artifact_uri", ""), self.server.files),
            creation_time=int(info["creation_timestamp_ms"]),
            last_update_time=int(info["last_updated_timestamp_ms"]),
            status=info.get("status", "LOGGED_MODEL_STATUS_UNSPECIFIED"),
            lifecycle_stage=ACTIVE,
            model_type=info.get("model_type", ""),
            source_run_id=info.get("source_run_id", ""),
            params=values_by_key(data.get("params")),
            tags=values_by_key(info.get("tags")),
            metrics=tuple(
                ModelMetric(
                    *_metric(entry["key"], entry),
                    run_id=entry.get("run_id", ""),
                    dataset_name=entry.get("dataset_name"),
                    dataset_digest=entry.get("dataset_digest"),
                )
                for entry in data.get("metrics", ())
            ),
        )


def _experiment(fields: Json, server: Server) -> Experiment:
    created = int(fields.get("creation_time", 0))
    return Experiment(
        experiment_id=fields["experiment_id"],
        name=fields["name"],
        artifact_location=target_location(fields.get("artifact_location", ""), server.files),
        lifecycle_stage=fields.get("lifecycle_stage", ACTIVE),
        creation_time=created,
        last_update_time=int(fields.get("last_update_time", created)),
        tags=values_by_key(fields.get("tags")),
        workspace=server.workspace,
    )


def _metric(key: str, fields: Json) -> Metric:
    value: Any = fields.get("value", 0)
    return Metric(
        key, stored_value(float(value)), int(fields.get("timestamp", 0)), int(fields.get("step", 0))
    )


def _dataset_input(fields: Json) -> DatasetInput:
    dataset = fields["dataset"]
    return DatasetInput(
        Dataset(
            dataset["name"],
            dataset["digest"],
            dataset.get("source_type", ""),
            dataset.get("source", ""),
            dataset.get("schema"),
            dataset.get("profile"),
        ),
        tuple(Tag(tag["key"], tag.get("value", "")) for tag in fields.get("tags", ())),
    )
