"""Looks up the prices of models in ``llm.json`` and in the setting ``llm_prices``.

``llm.json`` is made by ``make prices``: ``{"source": …, "providers": {provider: {model: [input,
output, read from a cache, written to one, written to one for an hour]}}}``, in US dollars per
million tokens. An unknown price is null, or omitted at the end of its list. The order of providers
matters: for a model without a known provider, the first provider with an input price above zero is
used, otherwise the first that lists the model, as on MLflow's server.

Reading the list takes 4 ms, so it is read when a price is first needed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mlcore.prices.setting import ANY, FIELDS

FILE: Final = Path(__file__).with_name("llm.json")


class Price(NamedTuple):
    """Prices of a language model in US dollars per million tokens, in the order of the fields of
    the setting ``llm_prices``; None for an unknown price."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1hr: float | None = None


Own = Mapping[str, Mapping[str, Price]]
"""The prices that a deployment has set itself, by provider and model."""


def own_prices(setting: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Own:
    """Converts the checked value of the setting ``llm_prices`` to prices by provider and model."""
    return {
        provider: {
            model: Price(*[parts.get(field) for field in FIELDS]) for model, parts in models.items()
        }
        for provider, models in setting.items()
    }


def price(model: str, provider: str | None, own: Own) -> Price | None:
    """Returns the price of a model; None if it is unknown.

    The prices that the deployment sets (``own``) take precedence over the packaged list of prices.
    The list's model names lack the part up to the first slash, which names a provider; ``own`` may
    have either name.

    Args:
        provider: in lower case. If it is None or has no price of the model, another provider's
            price is used.
    """
    bare = model.split("/", 1)[-1]
    for whose in (provider, ANY):
        own_price = _own(own, whose, model, bare)
        if own_price is not None:
            return own_price
    listed = _listed()
    parts = listed.get(provider, {}).get(bare) if provider else None
    if parts is not None:
        return Price(*parts)
    for whose in sorted(own):
        own_price = _own(own, whose, model, bare)
        if own_price is not None:
            return own_price
    known = [Price(*models[bare]) for models in listed.values() if bare in models]
    return next(
        (known_price for known_price in known if known_price.input), known[0] if known else None
    )


def _own(own: Own, provider: str | None, model: str, bare: str) -> Price | None:
    models = own.get(provider, {}) if provider else {}
    own_price = models.get(model)
    return models.get(bare) if own_price is None else own_price


@functools.cache
def _listed() -> Mapping[str, Mapping[str, Sequence[float | None]]]:
    providers: dict[str, dict[str, list[float | None]]] = json.loads(FILE.read_bytes())["providers"]
    return providers
