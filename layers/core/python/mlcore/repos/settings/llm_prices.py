"""The setting ``llm_prices``: prices of models in this deployment, which add to or override the
shipped list."""

from __future__ import annotations

from mlcore.prices.price_list import Own, own_prices
from mlcore.prices.setting import SETTING
from mlcore.repos.settings.setting import Setting

_prices: Setting[Own] = Setting(SETTING, lambda value: own_prices(value or {}))


def own() -> Own:
    """Returns the prices of language models that the deployment itself sets; one GetItem per
    minute."""
    return _prices.current()


def remembered() -> Own | None:
    """Returns the cached value of :func:`own`; None if it would need a request."""
    return _prices.remembered()
