"""The setting ``llm_prices``: what models cost in this deployment, where the shipped list is silent
or wrong."""

from __future__ import annotations

from mlcore.prices.price_list import Own, own_prices
from mlcore.prices.setting import SETTING
from mlcore.repos.settings.setting import Setting

_prices: Setting[Own] = Setting(SETTING, lambda value: own_prices(value or {}))


def own() -> Own:
    """The deployment's own prices; one GetItem in a while."""
    return _prices.current()


def remembered() -> Own | None:
    """What :func:`own` answers without a request; None if it needs one."""
    return _prices.remembered()
