"""Computes when a schedule of issue detection fires.

Times are wall-clock times in the schedule's zone, so they stay when clocks are changed: a time
that does not exist on that day fires as much later as the clocks were put forward, and one that
exists twice fires the first time. An hourly schedule does not fire in the repeated hour.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from mlcore.entities.evaluation.detection_schedule import DAILY, HOURLY, WEEKLY, Schedule

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
INTERVAL_MS: Final = {HOURLY: _HOUR_MS, DAILY: _DAY_MS, WEEKLY: 7 * _DAY_MS}
"""How far back the first run of a schedule searches traces, in ms by cadence."""
MAX_WINDOW_MS: Final = 8 * _DAY_MS
"""How far back any run searches traces at most, in ms: a week, and a day for late runs and changed
clocks."""

_STEPS: Final = {HOURLY: timedelta(hours=1), DAILY: timedelta(days=1), WEEKLY: timedelta(weeks=1)}


def following(schedule: Schedule, after: int) -> int:
    """Returns the first time at which a schedule of issue detection fires after the given one, both
    in ms since the epoch. ``after`` must be a time of this millennium."""
    for steps in range(4):
        candidate = _at(schedule, after, steps)
        if candidate > after:
            return candidate
    raise ValueError(f"{schedule.timing} does not fire after {after}")


def due(schedule: Schedule, last: int, now: int) -> int | None:
    """Returns the latest time at which a schedule of issue detection has fired since ``last``,
    until ``now`` inclusive; None if it has not. If several times were missed, it is the last of
    them, so one detection makes up for all."""
    first = following(schedule, last)
    if first > now:
        return None
    return max(
        [first, *(time for steps in range(-2, 2) if (time := _at(schedule, now, steps)) <= now)]
    )


def window_start(schedule: Schedule, fire_time: int, scanned: int | None) -> int:
    """Returns the time (ms since the epoch) after which a trace must have been created to be
    searched by a scheduled issue detection.

    Args:
        fire_time: when the detection was due; later traces are not searched.
        scanned: the time of the latest trace that earlier detections have searched; None if there
            was none.
    """
    start = fire_time - INTERVAL_MS[schedule.cadence] if scanned is None else scanned
    return max(start, fire_time - MAX_WINDOW_MS)


def _at(schedule: Schedule, near: int, steps: int) -> int:
    """Returns the time (ms) at which the schedule fires in the hour or day of ``near`` or, if it is
    weekly, in the seven days that end with the day of ``near``; plus ``steps`` hours, days or
    weeks."""
    zone = ZoneInfo(schedule.timezone)
    clock = datetime.fromtimestamp(near / 1000, tz=zone).replace(tzinfo=None)
    hour, minute = map(int, schedule.fire_time.split(":"))
    if schedule.cadence == HOURLY:
        hour = clock.hour
    clock = clock.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    if schedule.cadence == WEEKLY:
        clock -= timedelta(days=(clock.weekday() - schedule.weekday) % 7)
    clock += steps * _STEPS[schedule.cadence]
    return int(clock.replace(tzinfo=zone).timestamp() * 1000)
