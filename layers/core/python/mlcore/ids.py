"""New identifiers and the clock; the only source of both."""

from __future__ import annotations

import time
from uuid import uuid4

from ulid import ULID


def new_ulid() -> str:
    """A ULID in its canonical form: 26 characters, upper case, ordered by creation time."""
    return str(ULID())


def new_model_id() -> str:
    """The id of a logged model as MLflow makes it; clients know models by its form."""
    return f"m-{uuid4().hex}"


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def created_ms(ulid: str) -> int:
    """When a ULID was made, in milliseconds since the epoch."""
    return int(ULID.from_str(ulid).milliseconds)
