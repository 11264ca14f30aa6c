"""The setting ``ttl_policy``: how long deleted runs and experiments, archived models and versions,
traces and metric history are kept. Without it nothing expires."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.limits.settings import seconds_of
from mlcore.models.base import Item
from mlcore.repos.settings.cached_setting import Setting

SETTING: Final = "ttl_policy"

_policy: Setting[Mapping[str, Any]] = Setting(SETTING, lambda value: value or {})


def unread_keys() -> Sequence[Key]:
    """Returns the keys of settings that a caller's BatchGetItem should read as well, so that
    :func:`kept_seconds` needs no request; empty while the setting is cached."""
    return () if _policy.remembered() is not None else (_policy.key,)


def learn(items: Sequence[Raw | None]) -> None:
    """Caches the setting ``ttl_policy`` from the items that a caller has read at the keys of
    :func:`unread_keys`."""
    for item in items:
        _policy.learn(item)


def kept_seconds(kind: str) -> int | None:
    """Returns for how many seconds the setting ``ttl_policy`` keeps entities of a kind (``runs``,
    ``traces``, …); None if they never expire. One GetItem per minute and process."""
    return seconds_of(_policy.current().get(kind))


def expires_at(kind: str) -> int | None:
    """Returns when an entity of a kind (``runs``, ``traces``, …) that is created now expires, in
    seconds since the epoch; None for never."""
    seconds = kept_seconds(kind)
    return None if seconds is None else int(time.time()) + seconds


def with_expiry(item: Raw, end: int | None) -> Raw:
    """Returns an item with the time at which it expires, in seconds since the epoch; unchanged if
    ``end`` is None."""
    return item if end is None else {**item, Item.ttl.attr_name: Item.ttl.raw(end)}
