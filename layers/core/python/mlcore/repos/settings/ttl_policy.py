"""The setting ``ttl_policy``: how long deleted runs and experiments, traces and metric history are
kept; without it nothing expires."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.limits.config import seconds_of
from mlcore.models.base import Item
from mlcore.models.platform import Config

SETTING: Final = "ttl_policy"
SETTING_SECONDS: Final = 60.0
"""For so long a process remembers the setting."""

_setting: list[tuple[float, Mapping[str, Any]]] = []


def asking() -> Sequence[Key]:
    """What a BatchGetItem reads besides, so that :func:`kept` needs no request; mostly nothing."""
    return () if _fresh() else (keys.config(SETTING),)


def learn(items: Sequence[Raw | None]) -> None:
    """Remembers what was read for :func:`asking`."""
    for item in items:
        value = json.loads(Config.of(item).value) if item is not None else {}
        _setting[:] = [(time.monotonic(), value)]


def kept(kind: str) -> int | None:
    """For how many seconds things of a kind are kept; None for ever. One GetItem in a while."""
    if not _fresh():
        learn([table.get(keys.config(SETTING))])
    return seconds_of(_setting[0][1].get(kind))


def until(kind: str) -> int | None:
    """When something expires that is made now, in seconds since the epoch; None for never."""
    seconds = kept(kind)
    return None if seconds is None else int(time.time()) + seconds


def marked(item: Raw, end: int | None) -> Raw:
    """An item that expires then."""
    return item if end is None else {**item, Item.ttl.attr_name: Item.ttl.raw(end)}


def forget() -> None:
    """Reads the setting anew at the next need."""
    _setting.clear()


def _fresh() -> bool:
    return bool(_setting) and time.monotonic() - _setting[0][0] < SETTING_SECONDS
