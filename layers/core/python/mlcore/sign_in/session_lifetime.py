"""How long a browser session lasts: at most SESSION_HOURS, and SESSION_IDLE_MINUTES without a
request."""

from __future__ import annotations

import os
from typing import Final

from mlcore.entities.users import Session
from mlcore.repos.users.sessions import MAXIMUM_SECONDS

_HOURS: Final = "SESSION_HOURS"
_IDLE_MINUTES: Final = "SESSION_IDLE_MINUTES"
_TOUCHES: Final = 10
"""The last use of a session is stored at most this many times within the idle period."""


def longest_seconds() -> int:
    """Returns the seconds that a browser session lasts at most, however often it is used."""
    return min(int(float(os.environ.get(_HOURS) or 12) * 3_600), MAXIMUM_SECONDS)


def idle_seconds() -> int:
    """Returns the seconds that a browser session lasts without a request."""
    return int(float(os.environ.get(_IDLE_MINUTES) or 60) * 60)


def is_alive(session: Session, now: float) -> bool:
    """Whether a browser session has neither ended nor been idle for too long."""
    return now < session.expires_at and now < session.seen_at + idle_seconds()


def is_due(session: Session, now: float) -> bool:
    """Whether this use of a browser session should be stored, so that the session does not count as
    idle."""
    return now >= session.seen_at + idle_seconds() / _TOUCHES
