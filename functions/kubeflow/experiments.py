"""The rules of experiments and experiment runs: MLflow's, under Kubeflow's API."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kubeflow import finds, lists
from kubeflow.answers import Call, Made
from kubeflow.versions import check_stored_name
from mlcore import ids
from mlcore.auth.permissions import EXPERIMENT
from mlcore.auth.permissions import RUN as MLFLOW_RUN
from mlcore.kubeflow import merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import bad
from mlcore.kubeflow.kinds import EXPERIMENT as KIND
from mlcore.kubeflow.kinds import EXPERIMENT_RUN as RUN
from mlcore.repos.experiments.experiments import StoredExperiment as ExperimentRecord
from mlcore.repos.kubeflow import experiments, numbers, runs
from mlcore.settle import settle


def create(call: Call) -> Made:
    entity = merge.created(KIND, 0, call.asked.values, ids.now_ms())

    def granting(experiment_id: str) -> list[Any]:
        return call.request.granting(EXPERIMENT, experiment_id)

    return Made(call.shown(experiments.create(entity, call.workspace, granting)))


def find(call: Call) -> dict[str, Any]:
    named = partial(experiments.find_by_name, call.workspace)
    return call.shown(experiments.entity_of(finds.find(call, KIND, named, experiments.find)))


def get(call: Call) -> dict[str, Any]:
    return call.shown(experiments.entity_of(_read(call)))


def update(call: Call) -> dict[str, Any]:
    values = call.asked.values
    read = _read(call)
    return call.shown(experiments.change(read, lambda entity: merge.merged(entity, values)))


def delete(call: Call) -> None:
    """With its runs, for good."""
    settle(KIND.words, lambda: experiments.delete(_read(call)))


def list_all(call: Call) -> Any:
    reader = call.request.may_read(EXPERIMENT)
    found = (
        experiments.entity_of(read)
        for read in experiments.listed(call.workspace)
        if reader(read.experiment.experiment_id)
    )
    return lists.page(call, KIND.name, found)


def _read(call: Call) -> ExperimentRecord:
    return experiments.get(call.asked.id, call.workspace)


# ------------------------------------------------------------------ runs


def create_run(call: Call) -> Made:
    parent = call.asked.reference("experimentId") or 0
    return Made(_create_run(call, parent, call.asked.values))


def create_run_in_experiment(call: Call) -> Made:
    """The experiment in the path counts; a run with an id is updated, with the same status."""
    values = call.asked.values
    changed = call.asked.reference("id")
    if changed is not None:
        return Made(_update_run(call, runs.get(changed, call.workspace), values))
    return Made(_create_run(call, call.asked.id, values))


def _create_run(call: Call, parent: int, values: Values) -> dict[str, Any]:
    experiment = experiments.get(parent, call.workspace)
    if values.get("name"):
        check_stored_name(parent, values["name"])
    (number,) = numbers.take(numbers.CONTEXTS)
    values = {**values, "experimentId": str(parent)}
    entity = merge.created(RUN, number, values, ids.now_ms())
    _check_end(entity)
    return call.shown(runs.create(entity, experiment, call.username))


def find_run(call: Call) -> dict[str, Any]:
    def named(parent: int, name: str) -> runs.Record | None:
        experiment = experiments.find(parent, call.workspace)
        found = [] if experiment is None else runs.named(experiment, name)
        return found[0] if len(found) == 1 else None

    return call.shown(runs.entity_of(finds.find_child(call, RUN, named, runs.find)))


def get_run(call: Call) -> dict[str, Any]:
    return call.shown(runs.entity_of(_read_run(call)))


def update_run(call: Call) -> dict[str, Any]:
    return _update_run(call, _read_run(call), call.asked.values)


def _update_run(call: Call, read: runs.Record, values: Values) -> dict[str, Any]:
    def alter(entity: Entity) -> Entity:
        after = merge.merged(entity, values)
        _check_end(after)
        return after

    return call.shown(runs.change(read, alter))


def delete_run(call: Call) -> None:
    runs.delete(_read_run(call))


def _check_end(entity: Entity) -> None:
    """Raises InvalidParameterValue: a run ends before it starts."""
    start = entity.fields.get("startTimeSinceEpoch")
    end = entity.fields.get("endTimeSinceEpoch")
    if start is not None and end is not None and int(end) < int(start):
        raise bad(f"end time {end} cannot be before start time {start}")


def list_runs(call: Call) -> Any:
    reader = call.request.may_read(MLFLOW_RUN)

    def source(above: int) -> Iterator[Entity]:
        for read in runs.listed(call.workspace, above):
            if reader(read.run.experiment.experiment_id):
                yield runs.entity_of(read)

    return lists.page_by_number(call, RUN.name, source)


def list_runs_of_experiment(call: Call) -> Any:
    experiment = _read(call)
    return lists.page(call, RUN.name, map(runs.entity_of, runs.of_experiment(experiment)))


def _read_run(call: Call) -> runs.Record:
    return runs.get(call.asked.id, call.workspace)
