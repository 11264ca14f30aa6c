"""Tells the remover of files which runs, traces, logged models and experiments are gone, and what
of their folders nobody else can name (:mod:`mlcore.repos.files.owners`).

Of a run or a trace whose experiment is gone as well nothing is said where its files lay in the
experiment's own place: that goes as a whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mlcore import file_removal
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.file_removal import Removal
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment
from mlcore.models.index import ExperimentEntry
from mlcore.models.runs import Run
from mlcore.models.traces import Trace
from mlcore.repos.files import former_locations, locations
from mlcore.repos.files import owners as file_owners
from mlcore.repos.files.owners import Area, Part
from mlcore.repos.runs import history_files

RUN_METRIC_FILE: Final = keys.RUN_METRIC_FILE.name

QUEUE: Final = "FILE_REMOVAL_QUEUE_URL"
"""Environment; where it is not set, files stay."""

LISTING_SECONDS: Final = 20.0
"""For what earlier versions have left to list, once for each table; ``gc`` takes what it needs."""


def send(records: Sequence[Mapping[str, Any]]) -> None:
    """Of stream records: those of items that were removed. One BatchGetItem for their experiments,
    what tells who else has files there, then the messages."""
    queue = os.environ.get(QUEUE)
    removed = [record for record in records if "NewImage" not in record]
    if not queue or not removed:
        return
    former_locations.enter(time.monotonic() + LISTING_SECONDS)
    places = {_experiment_of(record["OldImage"]): None for record in removed}
    found = dict(zip(places, table.batch_get(list(places)), strict=True))
    named: list[tuple[str, int, Part]] = []
    own: list[tuple[str, int, Area]] = []
    for record in removed:
        image, before_ms = record["OldImage"], _time_ms(record)
        experiment = found[_experiment_of(image)]
        for part in _parts(image, experiment):
            named.append((part.workspace, before_ms, part))
        own += [(workspace, before_ms, area) for workspace, area in _internal(image, experiment)]
    decided = file_owners.areas([part for _, _, part in named])
    told = [
        (workspace, before_ms, area)
        for (workspace, before_ms, _), area in zip(named, decided, strict=True)
        if area is not None
    ]
    if told or own:
        file_removal.send(
            queue,
            [
                Removal(workspace, before_ms, key=area.key, keep=area.keep)
                for workspace, before_ms, area in (*told, *own)
            ],
        )
    for record in removed:
        _forget(record["OldImage"])


def _parts(image: Raw, experiment: Raw | None) -> Iterator[Part]:
    """The folders of an item that is gone."""
    kind, experiment_id = Item.of(image).type, ExperimentEntry.of(image).experiment_id
    if kind == RUN_METRIC_FILE:
        return
    if kind == keys.EXPERIMENT.name:
        yield file_owners.of_experiment(image)
    elif kind == keys.TRACE.name:
        # Clients choose ids of traces: below a slash may be another's.
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
        # Which workspace it was nobody can tell: but only the default one has chosen locations.
        key = locations.key_of(part.location, part.workspace)
        above = None if key is None else locations.own_place_above(key)
        if key is not None and (above is None or above[0] != experiment_id):
            yield part


def _internal(image: Raw, experiment: Raw | None) -> Iterator[tuple[str, Area]]:
    """Span files of an experiment or a trace that is gone; files of history of an experiment, of a
    run, or whose item is gone."""
    kind, experiment_id = Item.of(image).type, ExperimentEntry.of(image).experiment_id
    if kind == RUN_METRIC_FILE:
        yield DEFAULT_WORKSPACE, Area(history_files.folder_of(image))
    elif kind == keys.RUN.name:
        run_id = Run.of(image).run_id
        if history_files.has_place(experiment_id, run_id):
            yield DEFAULT_WORKSPACE, file_owners.history(experiment_id, run_id)
    elif kind == keys.EXPERIMENT.name:
        workspace = Experiment.of(image).workspace
        yield workspace, file_owners.internal(experiment_id, workspace)
        yield DEFAULT_WORKSPACE, file_owners.history(experiment_id)
    elif kind == keys.TRACE.name and experiment is not None:
        trace_id, workspace = Trace.of(image).trace_id, Experiment.of(experiment).workspace
        if "/" not in trace_id:
            yield workspace, file_owners.internal(experiment_id, workspace, trace_id)


def _forget(image: Raw) -> None:
    if Item.of(image).type == keys.EXPERIMENT.name:
        gone = Experiment.of(image)
        locations.forget(gone.experiment_id, gone.artifact_location, gone.workspace)


def _experiment_of(image: Raw) -> Key:
    return keys.experiment(ExperimentEntry.of(image).experiment_id)


def _time_ms(record: Mapping[str, Any]) -> int:
    """When the item was removed; the record tells the second alone. What is written later within
    it may belong to a new trace or experiment; the ids of runs and logged models come once.
    """
    second = int(float(record["ApproximateCreationDateTime"]))
    comes_once = Item.of(record["OldImage"]).type in (keys.RUN.name, keys.LOGGED_MODEL.name)
    return second * 1000 + (1000 if comes_once else 0)
