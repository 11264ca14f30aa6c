"""Counts wrong passwords per minute, by address and user name.

The names tried from one address share 4,096 counters, so that nobody can fill the table with names.
A counter does not depend on whether the name exists, which it would otherwise reveal.
"""

from __future__ import annotations

import ipaddress
import time
from hashlib import sha256
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.users import User
from mlcore.ids import now_ms
from mlcore.models.users import Login
from mlcore.repos.users import users

MAXIMUM_FAILURES: Final = 20
"""Wrong passwords in a window after which no more are checked until the window ends."""

WINDOW_SECONDS: Final = 60


COUNTERS: Final = 4_096
"""Counters per address."""


def find(username: str, address: str) -> tuple[User | None, int]:
    """Returns the user (None if there is none) and how many wrong passwords were counted in the
    present minute by the counter that this user name shares with others of its IP address; one
    BatchGetItem."""
    item, counted = table.batch_get([keys.user(username), _counter(username, address)])
    user = None if item is None else users.user_in(item)
    login = None if counted is None else Login.of(counted)
    return user, login.failures if login is not None and login.window == _window() else 0


def failed(username: str, address: str) -> None:
    """Counts a wrong password for the user name and the address."""
    counter, window = _counter(username, address), _window()
    again = Update()
    again.add(Login.failures, 1)
    again.require_equal(Login.window, window)
    try:
        table.update(counter, again)
    except ConditionFailed:
        first = Update()
        first.set(Login.type, keys.LOGIN.name)
        first.set(Login.window, window)
        first.set(Login.failures, 1)
        first.set(Login.updated_at, now_ms())
        first.set(Login.ttl, (window + 2) * WINDOW_SECONDS)
        first.require_absent_or_other(Login.window, window)
        try:
            table.update(counter, first)
        except ConditionFailed:
            table.update(counter, again)  # another request began the window meanwhile


def _counter(username: str, address: str) -> Key:
    number_of_name = int.from_bytes(sha256(username.encode()).digest()[:4]) % COUNTERS
    return keys.login(network(address), f"{number_of_name:03x}")


def network(address: str) -> str:
    """Returns an IPv4 address unchanged, and the network half of an IPv6 address, because a caller
    can choose the other half."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.IPv6Network((int(parsed) >> 64 << 64, 64)))


def _window() -> int:
    return int(time.time()) // WINDOW_SECONDS
