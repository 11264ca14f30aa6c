"""Runs: the run item, which is the source of truth, and the ``RUN#`` item that maps its id to its
experiment.

The run item holds attributes and, as maps, the latest metrics, params, tags, inputs and outputs.
The experiment's ``E#META`` is read with it, because its epoch decides the run's stage
(:func:`stage`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import Dataset, DatasetInput, Run
from mlcore.entities.stages import ACTIVE
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.runs import Run as RunItem
from mlcore.models.runs import RunReference
from mlcore.process_cache import ProcessCache
from mlcore.repos import document
from mlcore.repos.document import Document
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import children as run_children
from mlcore.repos.runs.core import datasets
from mlcore.repos.runs.history import latest_point_text
from mlcore.repos.settings import ttl_policy

PRIMARY_METRIC_TAG = "mlflow.experiment.primaryMetric.name"
"""MLflow's tag with the name of an experiment's primary metric; LSI5 orders runs by it."""

_places: ProcessCache[str, str] = ProcessCache("place of a run")
"""Experiments of runs by id; they never change."""


class StoredRun(NamedTuple):
    """A run that was read: its item and its experiment."""

    experiment: Experiment
    document: Document
    item: RunItem

    @property
    def run_id(self) -> str:
        return self.item.run_id

    @property
    def stage(self) -> str:
        return stage(self.item, self.experiment)


def stage(item: RunItem, experiment: Experiment) -> str:
    """Returns ``active`` or ``deleted``: the result of the last deletion or restoration of the run
    or of its experiment."""
    return experiment.lifecycle_stage if item.epoch < experiment.epoch else item.stage


def locate(run_id: str) -> str | None:
    """Returns the id of the experiment of a run; None for an unknown run. One consistent GetItem,
    unless this process has cached the id."""
    experiment_id = _places.get(run_id)
    if experiment_id is None:
        item = table.get(keys.run_ref(run_id))
        if item is None:
            return None
        experiment_id = RunReference.of(item).experiment_id
        remember(run_id, experiment_id)
    return experiment_id


def load(run_id: str, workspace: str, beside: Callable[[str], None] | None = None) -> StoredRun:
    """Returns a run. One consistent BatchGetItem, and one request before it if the run's experiment
    is not cached. Raises ResourceDoesNotExist, also for a run of another workspace.

    Args:
        beside: is called with the experiment's id, in parallel with the read.
    """
    experiment_id = locate(run_id)
    if experiment_id is None:
        raise missing(run_id)
    if beside is None:
        return _load(run_id, experiment_id, workspace)
    loaded: list[StoredRun] = []
    calls: list[Callable[[], None]] = [
        lambda: loaded.append(_load(run_id, experiment_id, workspace)),
        partial(beside, experiment_id),
    ]
    table.parallel(calls)
    return loaded[0]


def _load(run_id: str, experiment_id: str, workspace: str) -> StoredRun:
    places = [keys.run(experiment_id, run_id), keys.experiment(experiment_id)]
    item, meta, *setting = table.batch_get([*places, *ttl_policy.unread_keys()])
    ttl_policy.learn(setting)
    if item is None or meta is None or ExperimentItem.of(meta).workspace != workspace:
        raise missing(run_id)
    return of_item(item, experiments.of_item(meta).experiment)


def missing(run_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Run with id={run_id} not found")


def of_item(raw: Raw, experiment: Experiment) -> StoredRun:
    item = RunItem.of(raw)
    owner = (experiment.experiment_id, item.run_id)
    return StoredRun(experiment, document.load(raw, owner, run_children.MAPS), item)


def outline(run: StoredRun) -> Run:
    """Returns the run as searches need it, without a request: without model inputs, and its
    datasets with name and digest only."""
    item, texts = run.item, run.document.texts
    return Run(
        run_id=item.run_id,
        experiment_id=item.experiment_id,
        run_name=item.run_name,
        user_id=item.user_id,
        status=item.status,
        start_time=item.start_time,
        end_time=item.end_time,
        artifact_uri=item.artifact_uri,
        lifecycle_stage=run.stage,
        metrics=metrics(run.document),
        params=texts("params"),
        tags=texts("tags"),
        dataset_inputs=named_datasets(run.document),
        model_outputs=run_children.model_outputs(texts("model_outputs")),
    )


def named_datasets(document: Document) -> tuple[DatasetInput, ...]:
    """Returns the datasets of a run with name and digest only."""
    inputs = run_children.dataset_inputs(document.texts("inputs"))
    return tuple(
        DatasetInput(Dataset(reference.name, reference.digest, "", ""), reference.tags)
        for reference in inputs
    )


def with_datasets(outlines: Sequence[Run]) -> list[Run]:
    """Returns the runs with all fields of their datasets; one BatchGetItem for datasets not
    cached."""
    known = datasets.of_runs(outlines)
    return [
        run._replace(dataset_inputs=run_children.resolve(run, known)) if run.dataset_inputs else run
        for run in outlines
    ]


def entity(stored: StoredRun) -> Run:
    """Returns the whole run."""
    (run,) = with_datasets([outline(stored)])
    return run._replace(model_inputs=run_children.in_order(stored.document.texts("model_inputs")))


def metrics(document: Document) -> dict[str, Metric]:
    return latest_point_text.parse_all_latest(document.texts("metrics"))


def check_active(run: StoredRun) -> None:
    """Raises InvalidParameterValue if a run is deleted, as MLflow does for any write."""
    if run.stage != ACTIVE:
        raise errors.InvalidParameterValue(
            f"The run {run.run_id} must be in the 'active' state. Current state is {run.stage}."
        )


def remember(run_id: str, experiment_id: str) -> None:
    """Caches in this process to which experiment a run belongs."""
    _places.put(run_id, experiment_id)
