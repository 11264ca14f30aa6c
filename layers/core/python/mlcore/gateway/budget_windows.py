"""The time windows in which budgets are counted, as MLflow's gateway computes them: whole units
since the beginning of 1970 in UTC, weeks beginning on Sunday."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_MINUTE: Final = 60_000
_LENGTHS: Final = {
    "MINUTES": _MINUTE,
    "HOURS": 60 * _MINUTE,
    "DAYS": 24 * 60 * _MINUTE,
    "WEEKS": 7 * 24 * 60 * _MINUTE,
}
_SUNDAY: Final = -4 * _LENGTHS["DAYS"]
"""The last Sunday before 1970, in ms."""
_LAST_MONTH: Final = 9999 * 12 + 11


def window_containing(unit: str, value: int, now_ms: int) -> tuple[int, int]:
    """Returns (start, end) of the budget's window that contains ``now_ms``, both in ms; the end is
    the first ms after it.

    Args:
        unit: ``MINUTES``, ``HOURS``, ``DAYS``, ``WEEKS`` or ``MONTHS``.
        value: length of the window in units, at least 1.
    """
    if unit == "MONTHS":
        moment = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
        months = (moment.year - 1970) * 12 + moment.month - 1
        first = months // value * value
        return _month_ms(first), _month_ms(first + value)
    length = _LENGTHS[unit] * value
    origin = _SUNDAY if unit == "WEEKS" else 0
    start = origin + (now_ms - origin) // length * length
    return start, start + length


def _month_ms(months: int) -> int:
    """Returns the first ms of a month. ``months`` counts from January 1970; a month after December
    9999 is taken for that one."""
    year, month = divmod(min(1970 * 12 + months, _LAST_MONTH), 12)
    return int(datetime(year, month + 1, 1, tzinfo=UTC).timestamp() * 1000)
