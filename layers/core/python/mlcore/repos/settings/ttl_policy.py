"""The setting ``ttl_policy``: how long deleted runs and experiments, archived models and versions,
traces and metric history are kept; without it nothing expires."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.limits.config import seconds_of
from mlcore.models.base import Item
from mlcore.repos.settings.setting import Setting

SETTING: Final = "ttl_policy"

_policy: Setting[Mapping[str, Any]] = Setting(SETTING, lambda value: value or {})


def asking() -> Sequence[Key]:
    """What a BatchGetItem reads besides, so that :func:`kept` needs no request; mostly nothing."""
    return () if _policy.remembered() is not None else (_policy.key,)


def learn(items: Sequence[Raw | None]) -> None:
    """Remembers what was read for :func:`asking`."""
    for item in items:
        _policy.learn(item)


def kept(kind: str) -> int | None:
    """For how many seconds things of a kind are kept; None for ever. One GetItem in a while."""
    return seconds_of(_policy.current().get(kind))


def until(kind: str) -> int | None:
    """When something expires that is made now, in seconds since the epoch; None for never."""
    seconds = kept(kind)
    return None if seconds is None else int(time.time()) + seconds


def marked(item: Raw, end: int | None) -> Raw:
    """An item that expires then."""
    return item if end is None else {**item, Item.ttl.attr_name: Item.ttl.raw(end)}
