"""The setting ``llm_prices``: what models cost in this deployment, where the shipped list is silent
or wrong."""

from __future__ import annotations

import json
import time
from typing import Final

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.models.platform import Config
from mlcore.prices.price_list import Own, own_prices
from mlcore.prices.setting import SETTING

SETTING_SECONDS: Final = 60.0
"""For so long a process remembers the setting."""

_setting: list[tuple[float, Own]] = []


def own() -> Own:
    """The deployment's own prices; one GetItem in a while."""
    found = remembered()
    if found is None:
        item = table.get(keys.config(SETTING))
        found = own_prices(json.loads(Config.of(item).value)) if item is not None else {}
        _setting[:] = [(time.monotonic(), found)]
    return found


def remembered() -> Own | None:
    """What :func:`own` answers without a request; None if it needs one."""
    for since, found in _setting:
        if time.monotonic() - since < SETTING_SECONDS:
            return found
    return None


def forget() -> None:
    """Reads the setting anew at the next need."""
    _setting.clear()
