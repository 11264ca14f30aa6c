"""Reads and writes the tag of an experiment that says, in MLflow's form, up to which trace
scheduled issue detection has analyzed the experiment's traces."""

from __future__ import annotations

import json
from typing import Any, Final

from mlcore import ids
from mlcore.entities.evaluation.detection_schedule import VERSION, envelope
from mlcore.entities.experiments import Experiment
from mlcore.observability import logger
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.experiments import tags
from mlcore.repos.experiments.experiments import StoredExperiment

TAG: Final = "mlflow.issueDetection.checkpoint"


def read(experiment: Experiment) -> int | None:
    """Returns the time of the latest trace that issue detection analyzed, in ms since the epoch;
    None if the experiment's tag is missing or malformed."""
    values = envelope(experiment.tags.get(TAG))
    if values is None:
        return None
    return _whole_number(values.get("lastScannedTraceTimeMs"))


def advance(stored: StoredExperiment, newest: tuple[int, str], run_id: str) -> None:
    """Stores in the experiment's tag :data:`TAG` that issue detection, in the run ``run_id``, has
    analyzed the traces up to ``newest`` (time and id of a trace). Does nothing if the tag already
    has this time or a later one, or if the experiment is deleted meanwhile."""
    time, trace_id = newest
    if (read(stored.experiment) or 0) >= time:
        return
    values = {
        "version": VERSION,
        "lastScannedTraceTimeMs": time,
        "lastScannedTraceId": trace_id,
        "lastRunUuid": run_id,
        "updatedAtMs": ids.now_ms(),
    }
    try:
        tags.set_tag(stored, TAG, json.dumps(values))
    except WriteConflict:
        logger.info("an experiment was deleted during a detection", extra={"run_id": run_id})


def _whole_number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):  # not a number, infinite
        return None
