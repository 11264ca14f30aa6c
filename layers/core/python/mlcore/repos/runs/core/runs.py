"""Runs: the run item, which is the source of truth, and the ``RUN#`` item that maps its id to its
experiment.

The run item holds attributes and, as maps, the latest metrics, params, tags, inputs and outputs.
The experiment's ``E#META`` is read with it, because its epoch decides the run's stage
(:func:`stage`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import Dataset, DatasetInput, Run
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.runs import Run as RunItem
from mlcore.models.runs import RunReference
from mlcore.process_cache import ProcessCache
from mlcore.repos import document
from mlcore.repos.document import Document
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import datasets
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.history import latest_point_text
from mlcore.repos.settings import ttl_policy

PRIMARY_METRIC_TAG = "mlflow.experiment.primaryMetric.name"
"""MLflow's tag with the name of an experiment's primary metric; LSI5 orders runs by it."""

_places: ProcessCache[str, str] = ProcessCache("place of a run")
"""Experiment ids by run id. They change only if a run is moved (:mod:`.moving`): then its item is
missing in the cached experiment, and :func:`check_place` finds out. A reader who does not read the
run's item must not rely on this cache."""


class StoredRun(NamedTuple):
    """A run that was read: its experiment, its document (item and maps) and its item."""

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
        experiment_id = _learn(run_id, table.get(keys.run_ref(run_id)))
    return experiment_id


def locate_all(run_ids: Sequence[str]) -> list[str | None]:
    """Returns the ids of the experiments of runs, in the order of ``run_ids``; None for an unknown
    run. One consistent BatchGetItem per hundred runs that this process has not cached."""
    located = {run_id: _places.get(run_id) for run_id in run_ids}
    unknown = [run_id for run_id, experiment_id in located.items() if experiment_id is None]
    if unknown:
        references = table.batch_get([keys.run_ref(run_id) for run_id in unknown])
        for run_id, reference in zip(unknown, references, strict=True):
            located[run_id] = _learn(run_id, reference)
    return [located[run_id] for run_id in run_ids]


def _learn(run_id: str, reference: Raw | None) -> str | None:
    """Returns the id of the experiment that a run's ``RUN#`` item names, and caches it; None if
    there is no such item."""
    if reference is None:
        return None
    experiment_id = RunReference.of(reference).experiment_id
    remember(run_id, experiment_id)
    return experiment_id


def load(run_id: str, workspace: str, beside: Callable[[str], None] | None = None) -> StoredRun:
    """Returns a run. One consistent BatchGetItem, one request before it if the run's experiment is
    not cached, and a Query for each map of the run that did not fit into its item. Raises
    ResourceDoesNotExist, also for a run of another workspace, and RunMoved if the run is not in the
    experiment that was cached.

    Args:
        beside: is called with the experiment's id, in parallel with the read.
    """
    experiment_id = locate(run_id)
    if experiment_id is None:
        raise missing(run_id)
    if beside is None:
        return _load([(experiment_id, run_id)], workspace)[0]
    loaded: list[StoredRun] = []
    calls: list[Callable[[], None]] = [
        lambda: loaded.extend(_load([(experiment_id, run_id)], workspace)),
        partial(beside, experiment_id),
    ]
    table.parallel(calls)
    return loaded[0]


def load_all(run_ids: Sequence[str], workspace: str) -> list[StoredRun]:
    """Returns runs in the order of ``run_ids``, also deleted ones. One consistent BatchGetItem per
    hundred items (runs and experiments), and one before it for runs whose experiment is not cached.
    Raises ResourceDoesNotExist and RunMoved as :func:`load`."""
    owners: list[tuple[str, str]] = []
    for run_id, experiment_id in zip(run_ids, locate_all(run_ids), strict=True):
        if experiment_id is None:
            raise missing(run_id)
        owners.append((experiment_id, run_id))
    return _load(owners, workspace)


def _load(owners: Sequence[tuple[str, str]], workspace: str) -> list[StoredRun]:
    """Returns the runs at (experiment id, run id), as :func:`load_all` does."""
    experiment_ids = list(dict.fromkeys(experiment_id for experiment_id, _ in owners))
    metas = [keys.experiment(experiment_id) for experiment_id in experiment_ids]
    run_keys = [keys.run(*owner) for owner in owners]
    items = iter(table.batch_get([*run_keys, *metas, *ttl_policy.unread_keys()]))
    run_items = list(islice(items, len(run_keys)))
    readable = {
        experiment_id: experiments.of_item(meta).experiment
        for experiment_id, meta in zip(experiment_ids, islice(items, len(metas)), strict=True)
        if meta is not None and ExperimentItem.of(meta).workspace == workspace
    }
    ttl_policy.learn(list(items))
    loaded: list[StoredRun] = []
    for (experiment_id, run_id), item in zip(owners, run_items, strict=True):
        experiment = readable.get(experiment_id)
        if item is None or experiment is None:
            check_place(run_id, experiment_id)
            raise missing(run_id)
        loaded.append(of_item(item, experiment))
    return loaded


def check_place(run_id: str, experiment_id: str) -> None:
    """Raises RunMoved if a run was not found in the experiment ``experiment_id`` because it is in
    another one. One consistent GetItem."""
    _places.pop(run_id)
    if locate(run_id) not in (None, experiment_id):
        raise errors.RunMoved


def existing(run_ids: Sequence[str]) -> set[str]:
    """Returns the ids of those of the runs that exist, in whatever experiment. Two consistent
    BatchGetItem per hundred, without a cache."""
    places = owners(run_ids)
    items = table.batch_get([keys.run(*run_key) for run_key in places])
    return {run_id for (_, run_id), item in zip(places, items, strict=True) if item is not None}


def relocate(run_ids: Sequence[str]) -> bool:
    """Reads from DynamoDB the experiment of each run, and caches it. Returns whether one of the
    runs is in another experiment than was cached. One consistent BatchGetItem per hundred runs."""
    cached = {run_id: _places.get(run_id) for run_id in run_ids}
    changed = False
    for experiment_id, run_id in owners(run_ids):
        changed = changed or cached[run_id] not in (None, experiment_id)
        remember(run_id, experiment_id)
    return changed


def check_unmoved(run_id: str, experiment_id: str) -> None:
    """Raises RunMoved if a run is in another experiment than ``experiment_id``. For requests that
    read a run's child items but not the run item itself, and so would not notice a move. One
    consistent BatchGetItem."""
    if owners([run_id]) != [(experiment_id, run_id)]:
        check_place(run_id, experiment_id)


def owners(run_ids: Sequence[str]) -> list[tuple[str, str]]:
    """Returns (experiment id, run id) for each run that has a reference (``RUN#REF``). Unknown runs
    are left out. One consistent BatchGetItem per hundred, without a cache."""
    references = table.batch_get([keys.run_ref(run_id) for run_id in run_ids])
    return [
        (RunReference.of(reference).experiment_id, run_id)
        for run_id, reference in zip(run_ids, references, strict=True)
        if reference is not None
    ]


def missing(run_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Run with id={run_id} not found")


def of_item(raw: Raw, experiment: Experiment) -> StoredRun:
    item = RunItem.of(raw)
    owner = (experiment.experiment_id, item.run_id)
    return StoredRun(experiment, document.load(raw, owner, run_children.MAPS), item)


def outline(run: StoredRun) -> Run:
    """Returns the part of a run that searches need, without a request: no model inputs, and only
    name and digest of its datasets."""
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
    """Returns the dataset inputs of a run, each dataset with its name and digest only."""
    inputs = run_children.dataset_inputs(document.texts("inputs"))
    return tuple(
        DatasetInput(Dataset(reference.name, reference.digest, "", ""), reference.tags)
        for reference in inputs
    )


def with_datasets(outlines: Sequence[Run]) -> list[Run]:
    """Returns the runs with all fields of their datasets; one BatchGetItem per hundred datasets
    that are not cached, and more for fields that are stored in pieces."""
    known = datasets.of_runs(outlines)
    return [
        run._replace(dataset_inputs=run_children.resolve(run, known)) if run.dataset_inputs else run
        for run in outlines
    ]


def entity(stored: StoredRun) -> Run:
    """Returns a run with all its data, the fields of its datasets and its model inputs included;
    one BatchGetItem per hundred datasets that are not cached."""
    (run,) = with_datasets([outline(stored)])
    return run._replace(model_inputs=run_children.in_order(stored.document.texts("model_inputs")))


def metrics(document: Document) -> dict[str, Metric]:
    return latest_point_text.parse_all_latest(document.texts("metrics"))


def check_active(run: StoredRun) -> None:
    """Raises InvalidParameterValue if a run is deleted, as MLflow does for writes of its data."""
    if run.stage != ACTIVE:
        raise errors.InvalidParameterValue(
            f"The run {run.run_id} must be in the 'active' state. Current state is {run.stage}."
        )


def remember(run_id: str, experiment_id: str) -> None:
    """Caches in this process to which experiment a run belongs."""
    _places.put(run_id, experiment_id)
