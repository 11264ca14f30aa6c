"""Experiments and experiment runs in Kubeflow's API. They are MLflow's experiments and runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kubeflow import lists, lookups
from kubeflow.calls import KubeflowCall
from kubeflow.versions import check_stored_name
from mlcore import ids
from mlcore.auth.permissions import EXPERIMENT
from mlcore.auth.permissions import RUN as MLFLOW_RUN
from mlcore.http.kubeflow_responses import AnswerWithStatus
from mlcore.kubeflow import merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import invalid
from mlcore.kubeflow.kinds import EXPERIMENT as KIND
from mlcore.kubeflow.kinds import EXPERIMENT_RUN as RUN
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.experiments.experiments import StoredExperiment as ExperimentRecord
from mlcore.repos.kubeflow import experiments, numbers, runs


def create(call: KubeflowCall) -> AnswerWithStatus:
    entity = merge.created(KIND, 0, call.parsed.values, ids.now_ms())

    def granting(experiment_id: str) -> list[Any]:
        return call.request.granting(EXPERIMENT, experiment_id)

    return AnswerWithStatus(call.shown(experiments.create(entity, call.workspace, granting)))


def find(call: KubeflowCall) -> dict[str, Any]:
    by_name = partial(experiments.find_by_name, call.workspace)
    record = lookups.find_one(call, KIND, by_name, experiments.find)
    return call.shown(experiments.entity_of(record))


def get(call: KubeflowCall) -> dict[str, Any]:
    return call.shown(experiments.entity_of(_load(call)))


def update(call: KubeflowCall) -> dict[str, Any]:
    values = call.parsed.values
    record = _load(call)
    return call.shown(experiments.change(record, lambda entity: merge.merged(entity, values)))


def delete(call: KubeflowCall) -> None:
    """Deletes the experiment and its runs permanently."""
    retry_on_conflict(KIND.words, lambda: experiments.delete(_load(call)))


def list_all(call: KubeflowCall) -> Any:
    may_read = call.request.may_read(EXPERIMENT)
    entities = (
        experiments.entity_of(record)
        for record in experiments.listed(call.workspace)
        if may_read(record.experiment.experiment_id)
    )
    return lists.page(call, KIND.name, entities)


def _load(call: KubeflowCall) -> ExperimentRecord:
    return experiments.get(call.parsed.id, call.workspace)


# ------------------------------------------------------------------ runs


def create_run(call: KubeflowCall) -> AnswerWithStatus:
    parent = call.parsed.reference("experimentId") or 0
    return AnswerWithStatus(_create_run(call, parent, call.parsed.values))


def create_run_in_experiment(call: KubeflowCall) -> AnswerWithStatus:
    """Kubeflow's API: creates a run in the experiment that the path names, whatever experiment the
    body names. A body with an id updates that run instead, also with the status 201."""
    values = call.parsed.values
    existing_id = call.parsed.reference("id")
    if existing_id is not None:
        return AnswerWithStatus(_update_run(call, runs.get(existing_id, call.workspace), values))
    return AnswerWithStatus(_create_run(call, call.parsed.id, values))


def _create_run(call: KubeflowCall, parent: int, values: Values) -> dict[str, Any]:
    experiment = experiments.get(parent, call.workspace)
    if values.get("name"):
        check_stored_name(parent, values["name"])
    (number,) = numbers.take(numbers.CONTEXTS)
    values = {**values, "experimentId": str(parent)}
    entity = merge.created(RUN, number, values, ids.now_ms())
    _check_end(entity)
    return call.shown(runs.create(entity, experiment, call.username))


def find_run(call: KubeflowCall) -> dict[str, Any]:
    """Returns a Kubeflow experiment run by its name or external id. A name that several runs of the
    experiment have counts as missing."""

    def by_name(parent: int, name: str) -> runs.NumberedRun | None:
        experiment = experiments.find(parent, call.workspace)
        records = [] if experiment is None else runs.named(experiment, name)
        return records[0] if len(records) == 1 else None

    return call.shown(runs.entity_of(lookups.find_child(call, RUN, by_name, runs.find)))


def get_run(call: KubeflowCall) -> dict[str, Any]:
    return call.shown(runs.entity_of(_load_run(call)))


def update_run(call: KubeflowCall) -> dict[str, Any]:
    return _update_run(call, _load_run(call), call.parsed.values)


def _update_run(call: KubeflowCall, record: runs.NumberedRun, values: Values) -> dict[str, Any]:
    def alter(entity: Entity) -> Entity:
        after = merge.merged(entity, values)
        _check_end(after)
        return after

    return call.shown(runs.change(record, alter))


def delete_run(call: KubeflowCall) -> None:
    retry_on_conflict(RUN.words, lambda: runs.delete(_load_run(call)))


def _check_end(entity: Entity) -> None:
    """Checks that a run does not end before it starts. Raises InvalidParameterValue."""
    start = entity.fields.get("startTimeSinceEpoch")
    end = entity.fields.get("endTimeSinceEpoch")
    if start is not None and end is not None and int(end) < int(start):
        raise invalid(f"end time {end} cannot be before start time {start}")


def list_runs(call: KubeflowCall) -> Any:
    may_read = call.request.may_read(MLFLOW_RUN)

    def entities_above(number: int) -> Iterator[Entity]:
        for record in runs.listed(call.workspace, number):
            if may_read(record.run.experiment.experiment_id):
                yield runs.entity_of(record)

    return lists.page_by_number(call, RUN.name, entities_above)


def list_runs_of_experiment(call: KubeflowCall) -> Any:
    experiment = _load(call)
    return lists.page(call, RUN.name, map(runs.entity_of, runs.of_experiment(experiment)))


def _load_run(call: KubeflowCall) -> runs.NumberedRun:
    return runs.get(call.parsed.id, call.workspace)
