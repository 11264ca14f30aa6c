"""Computes the cost of one call of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore.prices.model_prices import Own, Price, price

_MILLION: Final = 1_000_000
_ROUTES: Final = ("gateway:/", "endpoints:/")
"""Prefixes of model names that name a route to a model; price lists lack them."""
_DATABRICKS: Final = ("databricks-", "databricks/")
"""Prefixes of model names that identify the provider."""


def cost(
    model: Any, usage: Any, provider: Any = None, own: Own | None = None
) -> dict[str, float] | None:
    """Returns the cost of a call in US dollars, computed as MLflow's server does; None if the price
    or the usage is unknown.

    The usage counts tokens under MLflow's names. The input tokens include those that were read from
    a cache or written to one. Callers may send any JSON; usage that is not a number gives None.

    Args:
        own: the deployment's own prices.

    Returns:
        ``{"input_cost": …, "output_cost": …, "total_cost": …}``
    """
    if not isinstance(model, str) or not isinstance(usage, dict) or model.startswith(_ROUTES):
        return None
    whose = provider.lower() if isinstance(provider, str) else None
    if not provider and model.startswith(_DATABRICKS):
        whose = "databricks"
    try:
        if not model or not (usage.get("input_tokens", 0) or usage.get("output_tokens", 0)):
            return None
        listed = price(model, whose, own or {})
        return None if listed is None else _computed(listed, usage)
    except (TypeError, OverflowError):
        return None


def _computed(listed: Price, usage: Mapping[str, Any]) -> dict[str, float]:
    """Computes the cost in US dollars, in MLflow's order of operations, so that even the last digit
    is equal."""
    plain = _of_one(listed.input, 0.0)
    written_price = _of_one(listed.cache_write, plain)
    read = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    for_an_hour = min(usage.get("cache_creation_input_tokens_above_1hr") or 0, written)
    total = max(usage.get("input_tokens", 0) - read - written, 0) * plain
    for count, rate in (
        (read, _of_one(listed.cache_read, plain)),
        (written - for_an_hour, written_price),
        (for_an_hour, _of_one(listed.cache_write_1hr, written_price)),
    ):
        if count > 0:
            total += count * rate
    output = usage.get("output_tokens", 0) * _of_one(listed.output, 0.0)
    return {"input_cost": total, "output_cost": output, "total_cost": total + output}


def _of_one(of_a_million: float | None, otherwise: float) -> float:
    return otherwise if of_a_million is None else of_a_million / _MILLION
