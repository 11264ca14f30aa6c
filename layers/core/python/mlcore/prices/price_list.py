"""Prices of models, from ``llm.json`` and from the setting ``llm_prices``.

``llm.json`` is made by ``make prices``: ``{"source": …, "providers": {provider: {model: [input,
output, read from a cache, written to one, written to one for an hour]}}}``, US dollars for a
million tokens. What a list does not tell is null, or left out at its end. Its providers are in
order: where nobody says whose model it was, the first counts that has a price for it, as on
MLflow's server.

The list takes 4 ms to read, so it is read when the first price is asked for.
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
    """US dollars for a million tokens, in the order of the setting's fields; None where the list
    does not tell."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1hr: float | None = None


Own = Mapping[str, Mapping[str, Price]]
"""A deployment's own prices: by provider, then by model."""


def own_prices(setting: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Own:
    """The prices of a value of the setting that has been checked."""
    return {
        provider: {
            model: Price(*[parts.get(field) for field in FIELDS]) for model, parts in models.items()
        }
        for provider, models in setting.items()
    }


def price(model: str, provider: str | None, own: Own) -> Price | None:
    """The price of a model; None if nobody knows it.

    Own prices count before the list's. A list knows models without the part up to the first slash,
    which names a provider; own prices may be for either name.

    Args:
        provider: in lower case; None or unknown: any that has the model.
    """
    bare = model.split("/", 1)[-1]
    for whose in (provider, ANY):
        found = _own(own, whose, model, bare)
        if found is not None:
            return found
    listed = _listed()
    parts = listed.get(provider, {}).get(bare) if provider else None
    if parts is not None:
        return Price(*parts)
    for whose in sorted(own):
        found = _own(own, whose, model, bare)
        if found is not None:
            return found
    known = [Price(*models[bare]) for models in listed.values() if bare in models]
    return next((one for one in known if one.input), known[0] if known else None)


def _own(own: Own, provider: str | None, model: str, bare: str) -> Price | None:
    models = own.get(provider, {}) if provider else {}
    found = models.get(model)
    return models.get(bare) if found is None else found


@functools.cache
def _listed() -> Mapping[str, Mapping[str, Sequence[float | None]]]:
    providers: dict[str, dict[str, list[float | None]]] = json.loads(FILE.read_bytes())["providers"]
    return providers
