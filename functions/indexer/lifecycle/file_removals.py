"""Sends messages to the file remover that name the folders of removed runs, traces, logged models
and experiments. A folder that may hold files of another entity is not removed
(:mod:`mlcore.repos.files.removable_files`).

If the experiment was removed too, its folder is removed as a whole: no messages name the folders of
its traces, nor those of runs and logged models in its default folder. The folder of a run's metric
history is named nevertheless.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mlcore import file_removal_queue
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.file_removal_queue import Removal
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment
from mlcore.models.runs import Run, RunMetricFile
from mlcore.models.search_index import ExperimentEntry
from mlcore.models.traces import Trace
from mlcore.repos.files import default_folders, location_list
from mlcore.repos.files import removable_files as file_owners
from mlcore.repos.files.removable_files import Area, FileOwner
from mlcore.repos.removal import former_root_locations
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.history import history_files

RUN_METRIC_FILE: Final = keys.RUN_METRIC_FILE.name

QUEUE: Final = "FILE_REMOVAL_QUEUE_URL"
"""Environment: the URL of the queue; without it files are kept."""

LISTING_SECONDS: Final = 20.0
"""After ARTIFACT_ROOT was changed: the longest time for adding the experiments outside of it to the
list of file locations. The command ``gc`` has no such limit."""


def send(records: Sequence[Mapping[str, Any]]) -> None:
    """Asks the file remover to delete the files of the items that stream records show as removed,
    and the former files of items of metric history that name another file now. Reads the items'
    experiments (one BatchGetItem per hundred), and entities whose files may be in the same folders.
    """
    queue = os.environ.get(QUEUE)
    removed = [record for record in records if frees_files(record)]
    if not queue or not removed:
        return
    removed = _without_moved_runs(removed)
    former_root_locations.enter_locations(time.monotonic() + LISTING_SECONDS)
    experiment_keys = {_experiment_of(record["OldImage"]): None for record in removed}
    experiments = dict(zip(experiment_keys, table.batch_get(list(experiment_keys)), strict=True))
    parts: list[tuple[str, int, FileOwner]] = []
    internal_areas: list[tuple[str, int, Area]] = []
    for record in removed:
        image, before_ms = record["OldImage"], _time_ms(record)
        experiment = experiments[_experiment_of(image)]
        for part in _parts(image, experiment):
            parts.append((part.workspace, before_ms, part))
        internal_areas += [
            (workspace, before_ms, area) for workspace, area in _internal(image, experiment)
        ]
    removable_areas = file_owners.areas([part for _, _, part in parts])
    artifact_areas = [
        (workspace, before_ms, area)
        for (workspace, before_ms, _), area in zip(parts, removable_areas, strict=True)
        if area is not None
    ]
    if artifact_areas or internal_areas:
        file_removal_queue.send(
            queue,
            [
                Removal(workspace, before_ms, area.key, area.keep)
                for workspace, before_ms, area in (*artifact_areas, *internal_areas)
            ],
        )
    for record in removed:
        _forget(record["OldImage"])


def _without_moved_runs(removed: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the records without those of runs that still exist, because they were moved to
    another experiment: they keep their files. Two BatchGetItem if there are records of runs."""
    run_ids = {
        Run.of(record["OldImage"]).run_id
        for record in removed
        if Item.of(record["OldImage"]).type == keys.RUN.name
    }
    existing = runs.existing(sorted(run_ids)) if run_ids else set()
    return [
        record
        for record in removed
        if Item.of(record["OldImage"]).type != keys.RUN.name
        or Run.of(record["OldImage"]).run_id not in existing
    ]


def frees_files(record: Mapping[str, Any]) -> bool:
    """Whether a stream record says that an item was removed, or that an item of metric history
    names another file than before."""
    old, new = record.get("OldImage"), record.get("NewImage")
    if new is None:
        return True
    if old is None or Item.of(new).type != RUN_METRIC_FILE:
        return False
    return RunMetricFile.of(old).location != RunMetricFile.of(new).location


def _parts(image: Raw, experiment: Raw | None) -> Iterator[FileOwner]:
    """Yields the artifact folders of a removed run, model, trace or experiment.

    Args:
        image: the removed item.
        experiment: the item of its experiment; None if that was removed too.
    """
    kind, experiment_id = Item.of(image).type, ExperimentEntry.of(image).experiment_id
    if kind == RUN_METRIC_FILE:
        return
    if kind == keys.EXPERIMENT.name:
        yield file_owners.of_experiment(image)
    elif kind == keys.TRACE.name:
        # Clients choose trace ids. The folder of an id with a slash may belong to another trace.
        trace_id = Trace.of(image).trace_id
        if experiment is not None and "/" not in trace_id:
            yield file_owners.of_trace(experiment, trace_id)
    else:
        make = file_owners.of_run if kind == keys.RUN.name else file_owners.of_logged_model
        workspace = Experiment.of(experiment).workspace if experiment else DEFAULT_WORKSPACE
        part = make(experiment_id, image, workspace)
        if experiment is not None:
            yield part
            return
        # The workspace is unknown. Only in the default workspace can clients choose locations.
        key = default_folders.key_of(part.location, part.workspace)
        above = None if key is None else default_folders.folder_above(key)
        if key is not None and (above is None or above[0] != experiment_id):
            yield part


def _internal(image: Raw, experiment: Raw | None) -> Iterator[tuple[str, Area]]:
    """Yields (workspace, area of the artifact store) for files that only the product uses and that
    belonged to a removed item: spans of a removed experiment or trace, metric history of a removed
    experiment or run, the file of a removed item of history."""
    kind, experiment_id = Item.of(image).type, ExperimentEntry.of(image).experiment_id
    if kind == RUN_METRIC_FILE:
        yield DEFAULT_WORKSPACE, Area(history_files.folder_of(image))
    elif kind == keys.RUN.name:
        run_id = Run.of(image).run_id
        if history_files.has_place(experiment_id, run_id):
            yield DEFAULT_WORKSPACE, file_owners.history(experiment_id, run_id)
    elif kind == keys.EXPERIMENT.name:
        workspace = Experiment.of(image).workspace
        for area in file_owners.internal(image):
            yield workspace, area
        yield DEFAULT_WORKSPACE, file_owners.history(experiment_id)
    elif kind == keys.TRACE.name and experiment is not None:
        trace_id, workspace = Trace.of(image).trace_id, Experiment.of(experiment).workspace
        if "/" not in trace_id:
            for area in file_owners.internal(experiment, trace_id):
                yield workspace, area


def _forget(image: Raw) -> None:
    if Item.of(image).type == keys.EXPERIMENT.name:
        experiment = Experiment.of(image)
        location_list.remove_entry(
            experiment.experiment_id, experiment.artifact_location, experiment.workspace
        )
    elif Item.of(image).type == keys.RUN.name:
        run = Run.of(image)
        location_list.remove_run_entry(
            run.run_id, run.artifact_uri, run.experiment_id, DEFAULT_WORKSPACE
        )


def _experiment_of(image: Raw) -> Key:
    return keys.experiment(ExperimentEntry.of(image).experiment_id)


def _time_ms(record: Mapping[str, Any]) -> int:
    """Returns the time up to which files of a removed item are removed, in milliseconds since the
    epoch.

    The record has whole seconds. Only an import uses an id of a run or logged model again, so for
    these the time is the end of that second. For other items it is the start, because files written
    later in the second may belong to a new item with the same id.
    """
    second = int(float(record["ApproximateCreationDateTime"]))
    comes_once = Item.of(record["OldImage"]).type in (keys.RUN.name, keys.LOGGED_MODEL.name)
    return second * 1000 + (1000 if comes_once else 0)
