"""Confirms the schedule of an experiment's issue detection, and returns when it fires next.

Clients save a schedule as a tag of the experiment. Everybody who may update the experiment can
write this tag. The schedule runs only after the request here has confirmed it, in the name of its
caller.
"""

from __future__ import annotations

from typing import Any

from evaluation import detection_models, model_checks
from evaluation import job_messages as m
from mlcore import errors, ids
from mlcore.entities.evaluation.detection_schedule import (
    FILTER_TAG,
    SCHEDULE_TAG,
    STATE_TAG,
    ConfirmedSchedule,
    Schedule,
    State,
    parse_schedule,
    parse_state,
)
from mlcore.entities.evaluation.fire_times import following
from mlcore.entities.evaluation.job_model import JobModel
from mlcore.entities.evaluation.jobs import Creator
from mlcore.http import Request
from mlcore.limits import experiments as limits
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import detection_schedules
from mlcore.repos.experiments import experiments, tags
from mlcore.repos.experiments.experiments import StoredExperiment


def update_state(message: m.UpdateDetectionSchedule, request: Request) -> dict[str, Any]:
    """Applies the schedule of issue detection that clients have written as a tag of the experiment:
    stores, changes or removes the server's schedule, and, if there is such a tag, updates the other
    tag, with its state. Returns ``{"next_fire_time_ms"}``; the value is None for a paused schedule
    or none.

    A paused schedule is not stored, but has a state.

    Raises:
        InvalidParameterValue: the schedule names neither an endpoint of the AI gateway nor a model
            with a saved key of its provider, or the experiment is deleted.
        PermissionDenied: the caller may not use the endpoint or the key, or it does not exist.
        ResourceDoesNotExist: there is no such experiment or, for callers who may know it, endpoint
            or key.
    """
    experiment_id = limits.experiment_id(message.experiment_id)
    stored = experiments.get_active(experiment_id, request.workspace)
    schedule = parse_schedule(stored.experiment.tags.get(SCHEDULE_TAG))
    if schedule is None:
        detection_schedules.remove_of_experiment(request.workspace, experiment_id)
        return {"next_fire_time_ms": None}
    former = parse_state(stored.experiment.tags.get(STATE_TAG))
    if schedule.is_paused:
        detection_schedules.remove_of_experiment(request.workspace, experiment_id)
        state = _state(schedule, former, None)
    else:
        _check_model(schedule.model, request)
        owner = request.creator()
        state = retry_on_conflict("schedule", lambda: _confirm(stored, schedule, former, owner))
    if state != former:
        tags.set_tag(stored, STATE_TAG, state.to_json())
    return {"next_fire_time_ms": state.next_fire_time}


def _check_model(model: JobModel | None, request: Request) -> None:
    if model is None:
        raise errors.InvalidParameterValue(
            "The schedule names no model. Select an endpoint of the AI gateway, or save an API key."
        )
    if model.saved_key is not None:
        detection_models.check_provider(model.saved_key.provider)
    model_checks.check_usable([model], request)


def _confirm(
    stored: StoredExperiment, schedule: Schedule, former: State | None, owner: Creator
) -> State:
    """Stores the schedule with the caller as its owner, and returns its state. Raises WriteConflict
    after a concurrent write."""
    experiment = stored.experiment
    confirmed = detection_schedules.find(experiment.workspace, experiment.experiment_id)
    state = _state(schedule, former, confirmed)
    detection_schedules.put(
        ConfirmedSchedule(
            workspace=experiment.workspace,
            experiment_id=experiment.experiment_id,
            schedule_text=experiment.tags[SCHEDULE_TAG],
            filter_text=experiment.tags.get(FILTER_TAG),
            owner=owner.username,
            owner_id=owner.user_id,
            last_fire_time=state.last_fire_time,
            fire_time=following(schedule, state.last_fire_time),
            version=confirmed.version if confirmed else 0,
        )
    )
    return state


def _state(schedule: Schedule, former: State | None, confirmed: ConfirmedSchedule | None) -> State:
    """Returns the state of a schedule. If the timing has not changed, the time of the last run is
    kept; otherwise the next run is at the first scheduled time after now.

    Args:
        former: the state in the tag. Anybody who may update the experiment may have written it.
        confirmed: the stored schedule; it takes precedence over the tag.
    """
    now = ids.now_ms()
    last, stored = now, confirmed and parse_schedule(confirmed.schedule_text)
    if confirmed is not None and stored is not None and stored.timing == schedule.timing:
        last = confirmed.last_fire_time
    elif former is not None and former.timing in (None, schedule.timing):
        last = former.last_fire_time if 0 <= former.last_fire_time <= now else now
    state = former or State(last, None, None)
    return state._replace(
        last_fire_time=last, timing=schedule.timing, next_fire_time=following(schedule, last)
    )
