"""Tells the remover of files which runs, traces, logged models and experiments are gone.

Of a run or a trace whose experiment is gone as well nothing is said: its files lie below those of
the experiment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mlcore import file_removal
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.file_removal import Removal

QUEUE: Final = "FILE_REMOVAL_QUEUE_URL"
"""Environment; where it is not set, files stay."""


def send(records: Sequence[Mapping[str, Any]]) -> None:
    """Of stream records: those of items that were removed. One BatchGetItem for their experiments,
    then the messages."""
    queue = os.environ.get(QUEUE)
    removed = [record for record in records if "NewImage" not in record]
    if not queue or not removed:
        return
    places = {keys.experiment(record["OldImage"]["experiment_id"]["S"]): None for record in removed}
    found = dict(zip(places, table.batch_get(list(places)), strict=True))
    removals = [
        removal
        for record in removed
        for removal in _removals(
            record["OldImage"],
            found[keys.experiment(record["OldImage"]["experiment_id"]["S"])],
            _time_ms(record),
        )
    ]
    if removals:
        file_removal.send(queue, removals)


def _removals(image: Raw, experiment: Raw | None, before_ms: int) -> Iterator[Removal]:
    kind, experiment_id = image["type"]["S"], image["experiment_id"]["S"]
    if kind == "experiment":
        workspace, location = image["workspace"]["S"], image["artifact_location"]["S"]
        # Others may share a location that somebody chose.
        if location.rstrip("/").endswith(f"/{experiment_id}"):
            yield Removal(workspace, before_ms, location=location)
        yield Removal(workspace, before_ms, internal=f"traces/{experiment_id}")
    elif experiment is None:
        return
    elif kind == "run":
        yield Removal(experiment["workspace"]["S"], before_ms, image["artifact_uri"]["S"])
    elif kind == "logged_model":
        yield Removal(experiment["workspace"]["S"], before_ms, image["artifact_location"]["S"])
    elif kind == "trace":
        yield from _of_trace(image["trace_id"]["S"], experiment, before_ms)


def _of_trace(trace_id: str, experiment: Raw, before_ms: int) -> Iterator[Removal]:
    """Clients choose ids of traces, and may set the tag that says where the files are."""
    if "/" in trace_id:
        return  # what lies below may be another's
    workspace, experiment_id = experiment["workspace"]["S"], experiment["experiment_id"]["S"]
    location = experiment["artifact_location"]["S"].rstrip("/")
    yield Removal(workspace, before_ms, internal=f"traces/{experiment_id}/{trace_id}")
    yield Removal(workspace, before_ms, location=f"{location}/traces/{trace_id}")


def _time_ms(record: Mapping[str, Any]) -> int:
    """When the item was removed; whole seconds in AWS."""
    return int(float(record["ApproximateCreationDateTime"]) * 1000)
