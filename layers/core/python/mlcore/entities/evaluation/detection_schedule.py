"""The schedule of an experiment's issue detection, as MLflow keeps it in tags of the experiment:
what clients write (schedule and filter of traces), and what the server answers (state).

Tags are texts of clients, so nothing in them is trusted: a schedule that cannot be read is none,
and a part that cannot be read has its default, as on MLflow's server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from mlcore.entities.evaluation.job_model import JobModel
from mlcore.entities.gateway import SavedKeyModel
from mlcore.wire.json_text import parse_json_text

SCHEDULE_TAG: Final = "mlflow.issueDetection.schedule"
FILTER_TAG: Final = "mlflow.issueDetection.scheduleTraceFilter"
STATE_TAG: Final = "mlflow.issueDetection.scheduleState"

HOURLY: Final = "hourly"
DAILY: Final = "daily"
WEEKLY: Final = "weekly"
CADENCES: Final = (HOURLY, DAILY, WEEKLY)

VERSION: Final = 1
"""Version of the objects in tags of issue detection."""
_UTC: Final = "UTC"
_FIRE_TIME: Final = "09:00"
_WEEKDAYS: Final = 7
_MAX_CLAUSES: Final = 20
_MAX_NAME_LENGTH: Final = 200
_FORBIDDEN: Final = "`'\"\\"
"""Characters that no filter of traces can express, as its grammar has no escape."""


class Schedule(NamedTuple):
    """A schedule of issue detection: when issues are detected, and with which model.

    Example: ``Schedule("weekly", "Europe/Berlin", "09:00", 0, False, JobModel("e"))`` detects
    issues at nine o'clock on Mondays, with the gateway endpoint ``e``.
    """

    cadence: str
    timezone: str
    """A zone that :mod:`zoneinfo` knows."""
    fire_time: str
    """``HH:MM``; of an hourly schedule only the minute counts."""
    weekday: int
    """Monday is 0; only a weekly schedule has a day."""
    is_paused: bool
    model: JobModel | None
    """None if the schedule names no endpoint, and no provider's model with a saved key."""

    @property
    def timing(self) -> str:
        """The fields that decide when the schedule of issue detection fires, as one text such as
        ``daily|09:00|0|Europe/Berlin``."""
        return f"{self.cadence}|{self.fire_time}|{self.weekday}|{self.timezone}"


class State(NamedTuple):
    """The state of a schedule of issue detection, which the server writes into a tag of the
    experiment; times are in ms since the epoch."""

    last_fire_time: int
    """The time of the latest occurrence or, before the first one, when the schedule was saved."""
    timing: str | None
    """:attr:`Schedule.timing` when this was written; None if unknown."""
    next_fire_time: int | None
    last_dispatched_at: int | None = None
    last_run_id: str | None = None

    def to_json(self) -> str:
        """Returns the JSON text that the server writes into the experiment tag with the state of
        the schedule of issue detection, as MLflow does."""
        values = {
            "version": VERSION,
            "lastFireTimeMs": self.last_fire_time,
            "lastDispatchedAtMs": self.last_dispatched_at,
            "lastRunId": self.last_run_id,
            "timing": self.timing,
            "nextFireTimeMs": self.next_fire_time,
        }
        return json.dumps({name: value for name, value in values.items() if value is not None})


class ConfirmedSchedule(NamedTuple):
    """A schedule of issue detection that its owner has confirmed, so that it runs; times are in ms
    since the epoch."""

    workspace: str
    experiment_id: str
    schedule_text: str
    """The tags with the schedule and the filter, as the owner has confirmed them."""
    filter_text: str | None
    owner: str | None
    """The user in whose name issues are detected; None without a login."""
    last_fire_time: int
    fire_time: int
    """When it is due."""
    version: int = 0
    """How often it was written; 0 if it is not stored yet."""
    owner_id: int | None = None
    """The number of the owner, which a later user of the same name does not have."""


def parse_schedule(text: str | None) -> Schedule | None:
    """Returns the schedule of issue detection from the value of the experiment's tag; None if the
    value is missing, cannot be read, has an unknown cadence, or another version than
    :data:`VERSION`."""
    values = envelope(text)
    if values is None or values.get("cadence") not in CADENCES:
        return None
    return Schedule(
        str(values["cadence"]),
        _timezone(values.get("timezone")),
        _fire_time(values.get("fireTime")),
        _weekday(values.get("weekday")),
        values.get("paused") is True,
        _model(values.get("model")),
    )


def parse_state(text: str | None) -> State | None:
    """Returns the detection schedule's state from the text of its experiment tag; None if the text
    is missing or cannot be read."""
    values = envelope(text)
    last = None if values is None else _integer(values.get("lastFireTimeMs"))
    if values is None or last is None:
        return None
    return State(
        last,
        _text(values.get("timing")) or None,
        _integer(values.get("nextFireTimeMs")),
        _integer(values.get("lastDispatchedAtMs")),
        _text(values.get("lastRunId")),
    )


def trace_filter(text: str | None) -> str:
    """Converts the JSON text of the experiment's tag :data:`FILTER_TAG`, which says which traces a
    schedule of issue detection examines, to a filter of the trace search, such as ``tags.`team` =
    'a' AND request_metadata.`user` = 'b'``; "" for none. Clauses that no filter can express, and
    those after the 20th, are left out, as on MLflow's server."""
    try:
        entries = parse_json_text(text or "[]")
    except ValueError:
        return ""
    if not isinstance(entries, list):
        return ""
    clauses = [clause for entry in entries[:_MAX_CLAUSES] if (clause := _clause(entry))]
    return " AND ".join(clauses)


def _clause(entry: Any) -> str:
    if not isinstance(entry, dict) or entry.get("operator", "=") != "=":
        return ""
    key, value = (_text(entry.get("key")) or "").strip(), _text(entry.get("value")) or ""
    if not key or any(
        character in _FORBIDDEN or character < " " or character == "\x7f"
        for character in key + value
    ):
        return ""
    namespace = "tags" if entry.get("field") == "tag" else "request_metadata"
    return f"{namespace}.`{key}` = '{value}'"


def envelope(text: str | None) -> Mapping[str, Any] | None:
    """Returns the JSON object in an experiment's tag with the schedule, or the schedule's state, of
    issue detection; None if the tag is missing, is no JSON object, or its ``version`` is not
    :data:`VERSION`."""
    try:
        values = parse_json_text(text or "null")
    except ValueError:
        return None
    if not isinstance(values, dict) or values.get("version") != VERSION:
        return None
    return values


def _timezone(name: Any) -> str:
    if not isinstance(name, str) or not name:
        return _UTC
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name of a zone, a folder of zones
        return _UTC
    return name


def _fire_time(value: Any) -> str:
    if not isinstance(value, str):
        return _FIRE_TIME
    hour, _, minute = value.strip().partition(":")
    if not (_is_short_number(hour) and _is_short_number(minute)):
        return _FIRE_TIME
    if int(hour) > 23 or int(minute) > 59:
        return _FIRE_TIME
    return f"{int(hour):02d}:{int(minute):02d}"


def _is_short_number(text: str) -> bool:
    return len(text) in {1, 2} and text.isascii() and text.isdecimal()


def _weekday(value: Any) -> int:
    number = _integer(value)
    return number if number is not None and 0 <= number < _WEEKDAYS else 0


def _model(value: Any) -> JobModel | None:
    if not isinstance(value, dict):
        return None
    if endpoint_name := _name(value.get("endpointName")):
        return JobModel(endpoint_name)
    provider, name = _name(value.get("provider")).lower(), _name(value.get("model"))
    secret_id = _text(value.get("secretId")) or ""
    if not (provider and name and secret_id.strip()):
        return None
    return JobModel("", SavedKeyModel(secret_id, provider, name))


def _name(value: Any) -> str:
    stripped = value.strip() if isinstance(value, str) else ""
    if len(stripped) > _MAX_NAME_LENGTH:
        return ""
    has_other = any(character.isspace() or character < " " for character in stripped)
    return "" if has_other else stripped


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
