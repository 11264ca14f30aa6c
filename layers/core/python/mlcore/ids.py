"""Creates the ids of stored entities, and returns the current time in milliseconds."""

from __future__ import annotations

import time
from uuid import uuid4

from ulid import ULID


def new_ulid() -> str:
    """Returns a ULID in its canonical form: 26 characters, upper case, ordered by the millisecond
    of its creation."""
    return str(ULID())


def new_model_id() -> str:
    """Returns a new id of a logged model, in MLflow's form, by which clients recognise such ids."""
    return f"m-{uuid4().hex}"


def now_ms() -> int:
    """Returns the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def now_us() -> int:
    """Returns the current time in microseconds since the epoch."""
    return time.time_ns() // 1_000
