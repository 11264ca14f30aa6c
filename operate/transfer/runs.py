"""Transfers runs with all points of their metrics from an MLflow server to the product's table."""

from __future__ import annotations

import math
from typing import Any

from mlcore import errors, reserved_tags
from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import Run
from mlcore.models.runs import Run as RunItem
from mlcore.repos.experiments import experiments
from mlcore.repos.files import location_list
from mlcore.repos.runs.core import creations, datasets, run_writes, runs
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import metric_history
from operate.transfer.experiments import change
from operate.transfer.source_reader import SourceReader
from operate.transfer.transfer_item import Content, TransferItem


def item(source: SourceReader, run_id: str) -> TransferItem:
    seen: list[Run] = []

    def read() -> Run:
        if not seen:
            seen.append(_with_datasets_of_target(source.run(run_id)))
        return seen[0]

    def want() -> Content:
        run = read()
        return _content(run, {key: source.history(run_id, key) for key in run.metrics})

    def have() -> Content | None:
        existing = _find(run_id, source.workspace)
        if existing is None:
            return None
        run = runs.entity(existing)
        where = run.experiment_id
        return _content(run, {key: metric_history.read(where, run_id, key) for key in run.metrics})

    def write(want: Content, existing: Content | None) -> None:
        run = read()
        points = [
            [Metric(key, float(value), timestamp, step) for step, timestamp, value in packed]
            for key, packed in want["history"].items()
        ]
        for series in points:
            metric_history.write(run.experiment_id, run_id, series)
        _write_datasets(run)
        if existing is None:
            # The run's item is written last: a run that exists is complete.
            experiment = experiments.get(run.experiment_id, source.workspace).experiment
            location_list.enter_imported(experiment, run.artifact_uri)
            creations.create(run, experiment)
        else:
            _update(run, source.workspace)

    return TransferItem(
        "run",
        run_id,
        want,
        have,
        write,
        outline=lambda: _content(read(), {}),
        exists=lambda: _find(run_id, source.workspace) is not None,
    )


def read(source: SourceReader, run_id: str) -> Content:
    """Returns the content of a run as the source server has it, including all metric points."""
    run = source.run(run_id)
    return _content(run, {key: source.history(run_id, key) for key in run.metrics})


def outline(run: Run) -> Content:
    """Returns those values of a run that an import compares and writes, except the points of its
    metrics."""
    return _content(run, {})


def _find(run_id: str, workspace: str) -> StoredRun | None:
    try:
        return runs.load(run_id, workspace)
    except errors.ResourceDoesNotExist:
        return None


def _content(run: Run, points: dict[str, list[Metric]]) -> Content:
    fields: dict[str, Any] = run._asdict()
    fields["metrics"] = {key: list(metric) for key, metric in run.metrics.items()}
    fields["dataset_inputs"] = {
        f"{dataset_input.dataset.name} {dataset_input.dataset.digest}": {
            **dataset_input.dataset._asdict(),
            "tags": dict(dataset_input.tags),
        }
        for dataset_input in run.dataset_inputs
    }
    fields["model_inputs"] = sorted(run.model_inputs)
    fields["model_outputs"] = sorted(run.model_outputs)
    fields["history"] = {key: list(map(_comparable, series)) for key, series in points.items()}
    return fields


def _comparable(point: Metric) -> list[int | float | str]:
    """Returns a point as a list of JSON values, with NaN as a text, so that equal points compare
    equal."""
    value = "NaN" if math.isnan(point.value) else point.value
    return [point.step, point.timestamp, value]


def _with_datasets_of_target(run: Run) -> Run:
    """Returns the run with datasets replaced by those that the target's experiment already has. For
    each (name, digest), the first writer decides the source, schema and profile for all runs."""
    known = {
        (dataset.name, dataset.digest): dataset for dataset in datasets.of_runs([run]).values()
    }
    inputs = tuple(
        entry._replace(dataset=known.get((entry.dataset.name, entry.dataset.digest), entry.dataset))
        for entry in run.dataset_inputs
    )
    return run._replace(dataset_inputs=inputs)


def _write_datasets(run: Run) -> None:
    if not run.dataset_inputs:
        return
    datasets.ensure(
        run.experiment_id, [dataset_input.dataset for dataset_input in run.dataset_inputs]
    )
    datasets.add_contexts(
        run.experiment_id,
        [
            (
                dataset_input.dataset.name,
                dataset_input.dataset.digest,
                dict(dataset_input.tags).get(reserved_tags.DATASET_CONTEXT),
            )
            for dataset_input in run.dataset_inputs
        ],
    )


def _update(run: Run, workspace: str) -> None:
    """Updates the table's run with values that changed on the server since the import. Removes
    nothing."""
    stored = runs.load(run.run_id, workspace)
    if stored.stage != ACTIVE:
        run_writes.set_stage(stored, ACTIVE)
        stored = runs.load(run.run_id, workspace)

    def decide(current: StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        changed = {}
        for name, wanted in run_children.texts(run).items():
            present = current.document.texts(name)
            changed[name] = {key: text for key, text in wanted.items() if present.get(key) != text}
        return changed, ()

    run_writes.write(stored, decide)
    update = Update()
    update.set(RunItem.status, run.status)
    update.set(RunItem.user_id, run.user_id)
    update.set(RunItem.artifact_uri, run.artifact_uri)
    update.set(RunItem.lsi3sk, keys.lsi3_run(run.status, run.start_time or 0, run.run_id))
    if run.end_time is not None:
        update.set(RunItem.end_time, run.end_time)
    change(keys.run(stored.experiment.experiment_id, run.run_id), update)
    if run.lifecycle_stage != ACTIVE:
        run_writes.set_stage(runs.load(run.run_id, workspace), run.lifecycle_stage)
