"""The setting ``llm_prices``: prices of language models in this deployment. They add to, or
replace, prices of the list that is part of this software."""

from __future__ import annotations

from mlcore.prices.model_prices import Own, own_prices
from mlcore.prices.setting import SETTING
from mlcore.repos.settings.cached_setting import Setting

_prices: Setting[Own] = Setting(SETTING, lambda value: own_prices(value or {}))


def own() -> Own:
    """Returns the prices of language models that the deployment itself sets; at most one GetItem
    per minute and process."""
    return _prices.current()


def remembered() -> Own | None:
    """Returns the cached prices of language models that the deployment sets; None if they would
    have to be read."""
    return _prices.remembered()
