"""Runs with all points of their metrics, from the server to the table."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import Run
from mlcore.entities.stages import ACTIVE
from mlcore.models.runs import Run as RunItem
from mlcore.repos.experiments import experiments
from mlcore.repos.files import locations
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import creations, datasets, history, runs
from mlcore.repos.runs import writes as run_writes
from mlcore.repos.runs.points import pack
from mlcore.repos.runs.runs import StoredRun
from mlcore.search.fields import DATASET_CONTEXT_TAG
from operate.transfer.experiments import change
from operate.transfer.item import Content, Item
from operate.transfer.source import Source


def item(source: Source, run_id: str) -> Item:
    seen: list[Run] = []

    def read() -> Run:
        if not seen:
            seen.append(source.run(run_id))
        return seen[0]

    def want() -> Content:
        run = read()
        return _content(run, {key: source.history(run_id, key) for key in run.metrics})

    def have() -> Content | None:
        found = _find(run_id, source.workspace)
        if found is None:
            return None
        run = runs.entity(found)
        where = run.experiment_id
        return _content(run, {key: history.read(where, run_id, key) for key in run.metrics})

    def write(want: Content, found: Content | None) -> None:
        run = read()
        points = [
            [Metric(key, float(value), timestamp, step) for step, timestamp, value in packed]
            for key, packed in want["history"].items()
        ]
        for series in points:
            history.write(run.experiment_id, run_id, series)
        _write_datasets(run)
        if found is None:
            # All of a run is written before the run itself, so a run that is there is whole.
            experiment = experiments.get(run.experiment_id, source.workspace).experiment
            locations.enter(experiment, run.artifact_uri)
            creations.create(run, experiment)
        else:
            _update(run, source.workspace)

    return Item(
        "run",
        run_id,
        want,
        have,
        write,
        outline=lambda: _content(read(), {}),
        there=lambda: _find(run_id, source.workspace) is not None,
    )


def _find(run_id: str, workspace: str) -> StoredRun | None:
    try:
        return runs.load(run_id, workspace)
    except errors.ResourceDoesNotExist:
        return None


def _content(run: Run, points: dict[str, list[Metric]]) -> Content:
    fields: dict[str, Any] = run._asdict()
    fields["metrics"] = {key: list(metric) for key, metric in run.metrics.items()}
    fields["dataset_inputs"] = {
        f"{one.dataset.name} {one.dataset.digest}": {
            **one.dataset._asdict(),
            "tags": dict(one.tags),
        }
        for one in run.dataset_inputs
    }
    fields["model_inputs"] = sorted(run.model_inputs)
    fields["model_outputs"] = sorted(run.model_outputs)
    fields["history"] = {key: pack(series) for key, series in points.items()}
    return fields


def _write_datasets(run: Run) -> None:
    if not run.dataset_inputs:
        return
    datasets.ensure(run.experiment_id, [one.dataset for one in run.dataset_inputs])
    datasets.add_contexts(
        run.experiment_id,
        [
            (one.dataset.name, one.dataset.digest, dict(one.tags).get(DATASET_CONTEXT_TAG))
            for one in run.dataset_inputs
        ],
    )


def _update(run: Run, workspace: str) -> None:
    """A run that went on, on the server, since it was brought over. Nothing is taken away."""
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
