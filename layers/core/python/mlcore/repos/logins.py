"""Wrong passwords, counted for a minute by address and user name."""

from __future__ import annotations

import time
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Update, number, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.repos import users
from mlcore.repos.users import User

MAXIMUM_FAILURES: Final = 20
"""In a window; then passwords are no longer tried until the window ends."""

WINDOW_SECONDS: Final = 60


def find(username: str, address: str) -> tuple[User | None, int]:
    """The user, and the number of wrong passwords in this window; one BatchGetItem."""
    item, counted = table.batch_get([keys.user(username), keys.login(address, username)])
    recent = counted is not None and counted["window"]["N"] == str(_window())
    return (
        None if item is None else users.user_in(item),
        int(counted["failures"]["N"]) if counted is not None and recent else 0,
    )


def failed(username: str, address: str) -> None:
    """Counts a wrong password."""
    place, window = keys.login(address, username), _window()
    again = Update()
    again.add("failures", 1)
    again.require_equal("window", number(window))
    try:
        table.update(place, again)
    except ConditionFailed:
        first = Update()
        first.set("type", string(keys.LOGIN.name))
        first.set("window", number(window))
        first.set("failures", number(1))
        first.set("updated_at", number(now_ms()))
        first.set("ttl", number((window + 2) * WINDOW_SECONDS))
        table.update(place, first)


def _window() -> int:
    return int(time.time()) // WINDOW_SECONDS
