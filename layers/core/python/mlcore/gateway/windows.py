"""The windows of time that budgets are counted in, as MLflow's gateway lays them: whole units from
the beginning of 1970, weeks from a Sunday."""

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
"""The last one before 1970."""
_LAST_MONTH: Final = 9999 * 12 + 11


def window(unit: str, value: int, now_ms: int) -> tuple[int, int]:
    """The beginning and the end, in ms, of the window that a moment is in.

    Args:
        unit: ``MINUTES``, ``HOURS``, ``DAYS``, ``WEEKS`` or ``MONTHS``.
        value: how many of them, 1 at least.
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
    """Of the first moment of a month, which is counted from January 1970."""
    year, month = divmod(min(1970 * 12 + months, _LAST_MONTH), 12)
    return int(datetime(year, month + 1, 1, tzinfo=UTC).timestamp() * 1000)
