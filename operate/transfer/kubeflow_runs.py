"""Transfers experiments and runs of a Kubeflow registry to the product's table, with the values
that the runs logged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from kubeflow import run_artifacts
from mlcore.entities.metrics import Metric, stored_value
from mlcore.entities.workspaces import DEFAULT_WORKSPACE as SPACE
from mlcore.kubeflow import not_a_number
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import EXPERIMENT_RUN, METRIC, PARAMETER
from mlcore.repos.experiments.experiments import StoredExperiment
from mlcore.repos.kubeflow import artifacts, experiments, numbers, run_values, runs
from operate.transfer.kubeflow_comparison import content, contents, labelled, within
from operate.transfer.kubeflow_merge import altering, values
from operate.transfer.kubeflow_reader import Registry
from operate.transfer.mlflow_client import SourceFailed
from operate.transfer.transfer_item import Content, TransferItem


class Experiments:
    """Transfers the experiments of a Kubeflow registry, which are found in the table by name, and
    their runs, which are found by name within their experiment."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def listed(self) -> list[Entity]:
        return self._registry.experiments()

    def item(self, experiment: Entity, *, last: bool) -> TransferItem:
        """Returns the TransferItem that imports a Kubeflow experiment; with ``last`` only its
        state, without ``last`` everything else. The state is written after the runs, because an
        archived experiment accepts no runs."""
        own_content = content(experiment)
        wanted = {name: value for name, value in own_content.items() if (name == "state") == last}

        def have() -> Content | None:
            read = experiments.find_by_name(SPACE, experiment.name)
            return None if read is None else within(wanted, content(experiments.entity_of(read)))

        def write(_: Content, existing: Content | None) -> None:
            if existing is None:
                live = experiment._replace(fields={**experiment.fields, "state": "LIVE"})
                experiments.create(live, SPACE, lambda _id: ())
                return
            read = _experiment(experiment.name)
            state = (
                experiment.fields["state"] if last else experiments.entity_of(read).fields["state"]
            )
            wish = experiment._replace(fields={**experiment.fields, "state": state})
            experiments.change(read, altering(wish))

        kind = "experiment's state" if last else "experiment"
        return TransferItem(kind, experiment.name, lambda: wanted, have, write)

    def runs(self, experiment: Entity) -> Iterator[TransferItem]:
        path = f"experiments/{experiment.id}/experiment_runs"
        for entity in self._registry.entities(EXPERIMENT_RUN, path):
            yield self._run(experiment, entity)

    def _run(self, experiment: Entity, run: Entity) -> TransferItem:
        start = run.fields.get("startTimeSinceEpoch") or str(run.create_time)
        started = run._replace(fields={**run.fields, "startTimeSinceEpoch": start})
        wanted_content = dict(content(started))
        if experiment.fields["state"] != "LIVE":
            del wanted_content["state"]  # here all runs of an archived experiment are archived
        logged: dict[str, Entity] = {}
        points: dict[str, Metric] = {}
        wanted: dict[str, Any] = {}

        def want() -> Content:
            path = f"experiment_runs/{started.id}"
            logged.update(labelled(self._registry.artifacts(f"{path}/artifacts")))
            history = map(_point, self._registry.read(f"{path}/metric_history"))
            points.update((_name(point), point) for point in history)
            wanted.update(wanted_content)
            wanted["artifacts"] = contents(logged, of_run=True)
            wanted["history"] = dict.fromkeys(points, 1)
            return wanted

        def have() -> Content | None:
            read = _find(experiment.name, started.name)
            if read is None:
                return None
            there = contents(_logged(read), of_run=True)
            existing = {
                **content(runs.entity_of(read)),
                "artifacts": there,
                "history": _history(read),
            }
            return within(wanted, existing)

        def write(_: Content, existing: Content | None) -> None:
            read = _find(experiment.name, started.name)
            if existing is None or read is None:
                read = _create(experiment.name, started)
            _log(read, logged, points)
            read = runs.get(read.number, SPACE)
            now = runs.entity_of(read)
            if within(wanted_content, content(now)) != wanted_content:
                fields = {
                    **started.fields,
                    "state": wanted_content.get("state", now.fields["state"]),
                }
                runs.change(read, altering(started._replace(fields=fields)))

        return TransferItem("run", f"{experiment.name}/{started.name}", want, have, write)


def _experiment(name: str) -> StoredExperiment:
    record = experiments.find_by_name(SPACE, name)
    if record is None:
        raise SourceFailed(404, f"experiment {name!r} was deleted meanwhile")
    return record


def _find(experiment: str, name: str) -> runs.NumberedRun | None:
    """Returns the run of an experiment by name; None if there is none. If several runs have the
    name, because MLflow's API created others, returns the first."""
    owner = experiments.find_by_name(SPACE, experiment)
    if owner is None:
        return None
    return min(runs.named(owner, name), key=lambda read: read.number, default=None)


def _create(experiment: str, run: Entity) -> runs.NumberedRun:
    owner = _experiment(experiment)
    entity = experiments.entity_of(owner)
    if entity.fields["state"] != "LIVE":
        live = entity._replace(fields={**entity.fields, "state": "LIVE"})
        experiments.change(owner, altering(live))
        owner = _experiment(experiment)
    (number,) = numbers.take(numbers.CONTEXTS)
    fields = {**run.fields, "experimentId": str(entity.id)}
    return runs.get(runs.create(run._replace(id=number, fields=fields), owner, None).id, SPACE)


def _logged(read: runs.NumberedRun) -> dict[str, Entity]:
    reference = numbers.get(read.number, EXPERIMENT_RUN.name, SPACE)
    return labelled(run_values.entities_of(run_values.number_and_read(reference)))


def _log(read: runs.NumberedRun, logged: dict[str, Entity], points: dict[str, Metric]) -> None:
    """Logs a run's metric points first and then its other values, because a metric's artifact shows
    its latest point."""
    known = _history(read)
    for name, point in points.items():
        if name not in known:
            run_values.log_metric(read, point)
    reference = numbers.get(read.number, EXPERIMENT_RUN.name, SPACE)
    there = _logged(read)
    for label, artifact in logged.items():
        existing = there.get(label)
        own_content = content(artifact)
        if existing is not None and _same(artifact, existing):
            continue
        if existing is None or artifact.kind in (METRIC.name, PARAMETER.name):
            run_artifacts.upsert(reference, artifact.of_kind, values(artifact))
        elif own_content:
            artifacts.change(artifacts.get(existing.id, SPACE), altering(artifact))


def _same(artifact: Entity, existing: Entity) -> bool:
    want = contents({"": artifact}, of_run=True)
    return within(want, contents({"": existing}, of_run=True)) == want


def _history(read: runs.NumberedRun) -> dict[str, int]:
    return {
        _name(Metric(point.name, *_fields(point.fields))): 1
        for point in run_values.history_of(read, "", [])
    }


def _point(fields: dict[str, Any]) -> Metric:
    return Metric(fields["name"], *_fields(fields))


def _fields(fields: dict[str, Any]) -> tuple[float, int, int]:
    """Returns the value, time and step of a metric. A missing value stands for NaN, which JSON
    cannot express."""
    value = fields.get("value")
    if value is None or not_a_number.is_marked_nan(fields):
        value = math.nan
    number = stored_value(float(value))
    return number, int(fields.get("timestamp") or 0), int(fields.get("step") or 0)


def _name(point: Metric) -> str:
    return f"{point.key} at step {point.step}, {point.timestamp} ms: {point.value!r}"
