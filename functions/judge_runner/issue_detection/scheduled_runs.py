"""Starts the detections of issues that are due by a schedule.

A sweep looks for due schedules every five minutes. For each whose experiment is active it creates
one run, in one transaction with the write of the schedule's next time: with a job, or finished
because there are no traces. While another detection runs in the experiment, the schedule waits. If
the schedule may not run any more, the transaction deletes it and creates a failed run with the
reason. So two sweeps at once, or one that dies, create one run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from judge_runner.issue_detection import schedule_checkpoints
from judge_runner.issue_detection.detection import error_text
from mlcore import errors, ids
from mlcore.db.failures import AdditionalOperationFailed
from mlcore.db.table import Operation
from mlcore.entities.evaluation import issue_detection
from mlcore.entities.evaluation.detection_priorities import (
    PRIORITIES_TAG,
    Priorities,
    parse_priorities,
)
from mlcore.entities.evaluation.detection_schedule import (
    FILTER_TAG,
    SCHEDULE_TAG,
    STATE_TAG,
    ConfirmedSchedule,
    Schedule,
    State,
    parse_schedule,
    trace_filter,
)
from mlcore.entities.evaluation.fire_times import due, following, window_start
from mlcore.entities.evaluation.job_model import JobModel
from mlcore.entities.evaluation.jobs import Creator, Job
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.traces import Trace
from mlcore.gateway.call_traces import CALLER
from mlcore.gateway.caller import JUDGE
from mlcore.http.gate import is_on
from mlcore.observability import logger
from mlcore.optimistic_retry import WriteConflict
from mlcore.policies.background_callers import absent_caller
from mlcore.policies.jobs import may_detect_issues, may_use_models
from mlcore.repos.evaluation import detection_schedules, issue_detections, job_runs, jobs
from mlcore.repos.evaluation.issue_detections import RunningDetection
from mlcore.repos.experiments import experiments, tags
from mlcore.repos.experiments.experiments import StoredExperiment
from mlcore.repos.gateway import configuration
from mlcore.repos.runs.core import creations
from mlcore.repos.traces import search
from mlcore.search.trace_filter import parse_filter, parse_order_by

MAX_SCHEDULES: Final = 500
"""The most schedules of one sweep; the next sweep continues with those that are still due."""
MAX_TRACES: Final = 500
"""The most traces of one run: the newest in its time window."""
_MIN_REMAINING_MS: Final = 60_000
_LATE_MS: Final = 300_000
"""Interval of the sweeps. A schedule that is late by more may have made an earlier sweep fail."""
_POSTPONED_MS: Final = 900_000
_FAILED: Final = "FAILED"
_FINISHED: Final = "FINISHED"


class _Occurrence(NamedTuple):
    """One due time of a schedule, with its experiment."""

    confirmed: ConfirmedSchedule
    schedule: Schedule
    model: JobModel
    stored: StoredExperiment
    fire_time: int

    @property
    def experiment(self) -> Experiment:
        return self.stored.experiment

    @property
    def priorities(self) -> Priorities:
        return parse_priorities(self.experiment.tags.get(PRIORITIES_TAG))

    @property
    def following(self) -> ConfirmedSchedule:
        """The schedule after this occurrence."""
        return self.confirmed._replace(
            last_fire_time=self.fire_time, fire_time=following(self.schedule, self.fire_time)
        )


class _Window(NamedTuple):
    """The traces of an occurrence: those after ``start`` until ``end``, in ms since the epoch."""

    start: int
    end: int
    newest: Trace | None
    """The latest trace in that time, whether it matches the filter or not. A run that succeeds
    moves the checkpoint to it."""
    trace_ids: list[str]
    """Traces that match the filter of the schedule."""


def sweep(remaining: Callable[[], float]) -> None:
    """Starts the scheduled issue detections of all experiments that are due. An error in one is
    logged and does not affect the others; a later sweep tries it again.

    A schedule that is at least five minutes late is first given a later time at which it is tried
    again, and only then started. So one whose start fails, takes all the time or ends the process
    does not block the others.

    Args:
        remaining: returns the remaining milliseconds of the function call.
    """
    for confirmed in detection_schedules.due(ids.now_ms(), MAX_SCHEDULES):
        if remaining() < _MIN_REMAINING_MS:
            return
        details = {"experiment_id": confirmed.experiment_id, "workspace": confirmed.workspace}
        try:
            now = ids.now_ms()
            is_late = now - confirmed.fire_time >= _LATE_MS
            current = _postponed(confirmed, now) if is_late else confirmed
            if current is not None:
                _start(current, now)
        except Exception:  # any error: the other experiments must still be swept
            logger.exception("a scheduled detection was not started", extra=details)


def _postponed(confirmed: ConfirmedSchedule, now: int) -> ConfirmedSchedule | None:
    """Stores a later time at which a schedule is tried again, and returns the stored schedule. The
    due time that it has missed stays the same. Returns None if another sweep, or the schedule's
    owner, has written the schedule meanwhile."""
    later = confirmed._replace(fire_time=now + _POSTPONED_MS)
    return later._replace(version=later.version + 1) if _put(later) else None


def _start(confirmed: ConfirmedSchedule, now: int) -> None:
    try:
        stored = experiments.get(confirmed.experiment_id, confirmed.workspace)
    except (errors.ResourceDoesNotExist, errors.InvalidParameterValue):
        detection_schedules.remove(confirmed)  # the experiment was removed, or moved
        return
    schedule = _unchanged(confirmed, stored.experiment)
    if schedule is None or schedule.model is None:
        detection_schedules.remove(confirmed)
        return
    fire_time = due(schedule, confirmed.last_fire_time, now)
    if fire_time is None:  # the rules of its time zone have changed since it was stored
        _put(confirmed._replace(fire_time=following(schedule, confirmed.last_fire_time)))
        return
    occurrence = _Occurrence(confirmed, schedule, schedule.model, stored, fire_time)
    if stored.experiment.lifecycle_stage != ACTIVE:
        _put(occurrence.following)
        return
    reason = _refusal(confirmed, schedule.model)
    if reason is None:
        _detect(occurrence, now)
    else:
        _refuse(occurrence, reason, now)


def _unchanged(confirmed: ConfirmedSchedule, experiment: Experiment) -> Schedule | None:
    """Returns the schedule if the experiment's tags are still those that its owner has confirmed,
    else None. Everybody who may update the experiment may change its tags, but a changed schedule
    must not run in the owner's name."""
    texts = (experiment.tags.get(SCHEDULE_TAG), experiment.tags.get(FILTER_TAG))
    if texts != (confirmed.schedule_text, confirmed.filter_text):
        return None
    return parse_schedule(confirmed.schedule_text)


def _put(confirmed: ConfirmedSchedule) -> bool:
    """Writes a schedule. Returns False if another sweep, or the schedule's owner, has written it
    meanwhile."""
    try:
        detection_schedules.put(confirmed)
    except WriteConflict:
        return False
    return True


def _refusal(confirmed: ConfirmedSchedule, model: JobModel) -> str | None:
    """Returns why the schedule must not run in its owner's name; None if it may."""
    if is_on(os.environ):
        caller = absent_caller(confirmed.owner or "", confirmed.owner_id, confirmed.workspace)
        if caller is None:
            return "The user who saved the schedule does not exist any more."
        if not (
            may_detect_issues(caller, confirmed.experiment_id) and may_use_models(caller, [model])
        ):
            return (
                "The user who saved the schedule may no longer detect issues in this experiment, "
                "or may no longer use the schedule's endpoint or API key."
            )
    try:
        model.check_usable(configuration.read(confirmed.workspace))
    except errors.ResourceDoesNotExist:
        return "The schedule's endpoint or API key does not exist any more."
    except errors.InvalidParameterValue as error:
        return error.message
    return None


def _refuse(occurrence: _Occurrence, reason: str, now: int) -> None:
    """Deletes the confirmed schedule, and creates a failed run with the reason."""
    text = f"{reason} Save the schedule again to continue."
    run_tags = {**_tags(occurrence, 0, None), issue_detection.ERROR_TAG: error_text(text)}
    removal = detection_schedules.removal(occurrence.confirmed)
    run_id = _create_ended(occurrence, _FAILED, run_tags, now, removal)
    if run_id is not None:
        timing = occurrence.schedule.timing
        _write_state(occurrence, State(occurrence.fire_time, timing, None, now, run_id))


def _detect(occurrence: _Occurrence, now: int) -> None:
    """Starts a job for the traces of the occurrence; without traces, creates a finished run."""
    experiment = occurrence.experiment
    job_id, run_id = jobs.new_id(), ids.new_ulid()
    start_write = issue_detections.beginning(experiment, job_id, run_id)
    if isinstance(start_write, RunningDetection):
        return  # the next sweep looks again
    window = _window(occurrence)
    run_tags = _tags(occurrence, len(window.trace_ids), window.start)
    if not window.trace_ids:
        _finish_quietly(occurrence, window, run_tags, now)
        return
    schedule_write = detection_schedules.replacement(occurrence.following)
    job = _job(occurrence, window, run_id)._replace(job_id=job_id)
    run_tags = {**run_tags, issue_detection.JOB_TAG: job_id}
    run = job_runs.new_run(job, experiment, tags=run_tags)
    try:
        job_runs.submit(job, run, experiment, [start_write, schedule_write])
    except AdditionalOperationFailed:
        return  # another sweep, or a request to detect issues, was first
    _write_dispatched(occurrence, run_id, now)


def _finish_quietly(
    occurrence: _Occurrence, window: _Window, run_tags: dict[str, str], now: int
) -> None:
    """Creates a finished run without traces, so that users see that the schedule has run."""
    analyzed = {issue_detection.ANALYZED_TAG: "0", issue_detection.COST_TAG: "0.0"}
    schedule_write = detection_schedules.replacement(occurrence.following)
    run_id = _create_ended(occurrence, _FINISHED, {**run_tags, **analyzed}, now, schedule_write)
    if run_id is None:
        return
    if window.newest is not None:
        newest = (window.newest.request_time, window.newest.trace_id)
        schedule_checkpoints.advance(occurrence.stored, newest, run_id)
    _write_dispatched(occurrence, run_id, now)


def _job(occurrence: _Occurrence, window: _Window, run_id: str) -> Job:
    newest = window.newest
    job = issue_detections.new_job(
        occurrence.experiment,
        run_id,
        window.trace_ids,
        occurrence.priorities,
        occurrence.model,
        Creator(occurrence.confirmed.owner, occurrence.confirmed.owner_id),
    )
    covered = [newest.request_time, newest.trace_id] if newest else None
    return job._replace(params={**job.params, "newest_trace": covered})


def _window(occurrence: _Occurrence) -> _Window:
    scanned = schedule_checkpoints.read(occurrence.experiment)
    start = window_start(occurrence.schedule, occurrence.fire_time, scanned)
    end = occurrence.fire_time
    newest = _traces(occurrence.experiment, start, end, "", 1)
    if not newest:
        return _Window(start, end, None, [])
    clauses = trace_filter(occurrence.confirmed.filter_text)
    # The calls of judges may be traced in this experiment: a detection must not analyze them.
    matching = [
        trace.trace_id
        for trace in _traces(occurrence.experiment, start, end, clauses, 2 * MAX_TRACES)
        if trace.trace_metadata.get(CALLER) != JUDGE
    ]
    return _Window(start, end, newest[0], matching[:MAX_TRACES])


def _traces(experiment: Experiment, start: int, end: int, text: str, most: int) -> list[Trace]:
    """Returns the traces that match the filter ``text``, newest first."""
    parts = [f"timestamp_ms > {start}", f"timestamp_ms <= {end}", *([text] if text else [])]
    query = search.TraceQuery(
        parse_filter(" AND ".join(parts)), parse_order_by(["timestamp_ms DESC"]), None, most
    )
    rows = search.find([experiment.experiment_id], experiment.workspace, query)
    return [trace for _, trace in rows]


def _tags(occurrence: _Occurrence, total: int, start: int | None) -> dict[str, str]:
    given = {
        **issue_detections.run_tags(occurrence.priorities.categories, occurrence.model, total),
        issue_detection.TRIGGER_TAG: issue_detection.BY_SCHEDULE,
        issue_detection.WINDOW_END_TAG: str(occurrence.fire_time),
    }
    if start is not None:
        given[issue_detection.WINDOW_START_TAG] = str(start)
    return given


def _create_ended(
    occurrence: _Occurrence, status: str, run_tags: dict[str, str], now: int, also: Operation
) -> str | None:
    """Creates an ended run without a job, in one transaction with the write ``also``. Returns the
    run's id. Returns None and writes nothing if another sweep or the schedule's owner was first."""
    experiment, owner = occurrence.experiment, occurrence.confirmed.owner
    run = job_runs.ended_run(owner, now, experiment, status, run_tags)
    try:
        creations.create(run, experiment, [also], created_by=owner)
    except AdditionalOperationFailed:
        return None
    return run.run_id


def _write_dispatched(occurrence: _Occurrence, run_id: str, now: int) -> None:
    after = occurrence.following
    _write_state(
        occurrence,
        State(after.last_fire_time, occurrence.schedule.timing, after.fire_time, now, run_id),
    )


def _write_state(occurrence: _Occurrence, state: State) -> None:
    """Writes the tag from which the UI shows the schedule's state. Apart from the UI, only a
    request that saves the schedule reads it. The next occurrence writes it again."""
    try:
        tags.set_tag(occurrence.stored, STATE_TAG, state.to_json())
    except WriteConflict:
        return  # the experiment was deleted meanwhile
