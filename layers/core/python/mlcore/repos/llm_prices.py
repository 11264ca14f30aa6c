"""The setting ``llm_prices``: what models cost in this deployment, where the shipped list is silent
or wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.prices import Own, own_prices
from mlcore.prices.price_list import SETTING

SETTING_SECONDS: Final = 60.0
"""For so long a process remembers the setting."""

_setting: list[tuple[float, Own]] = []


def asking() -> Sequence[Key]:
    """What a BatchGetItem reads besides, so that :func:`own` needs no request; mostly nothing."""
    return () if _remembered() is not None else (keys.config(SETTING),)


def learn(items: Sequence[Raw | None]) -> None:
    """Remembers what was read for :func:`asking`."""
    for item in items:
        _learned(item)


def own() -> Own:
    """The deployment's own prices; one GetItem in a while."""
    found = _remembered()
    return _learned(table.get(keys.config(SETTING))) if found is None else found


def forget() -> None:
    """Reads the setting anew at the next need."""
    _setting.clear()


def _learned(item: Raw | None) -> Own:
    found = own_prices(json.loads(item["value"]["S"]) if item is not None else {})
    _setting[:] = [(time.monotonic(), found)]
    return found


def _remembered() -> Own | None:
    for since, found in _setting:
        if time.monotonic() - since < SETTING_SECONDS:
            return found
    return None
