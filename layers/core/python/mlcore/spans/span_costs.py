"""Adds the cost of model calls to spans."""

from __future__ import annotations

from typing import Any, Final

from mlcore import reserved_tags
from mlcore.prices.model_call_cost import cost
from mlcore.prices.model_prices import Own
from mlcore.spans.attribute_values import Attributes, json_text
from mlcore.spans.names import SPAN_COST
from mlcore.wire.json_text import load_json

_AGENT: Final = "AGENT"


def lacks_cost(attributes: Attributes) -> bool:
    """Whether a cost must be added to a span: it has tokens and a model, but no cost attribute (an
    attribute without a cost counts as one). False for spans of agents, whose tokens are sums over
    other spans, perhaps of several models."""
    return (
        SPAN_COST not in attributes
        and reserved_tags.SPAN_TOKEN_USAGE in attributes
        and reserved_tags.SPAN_MODEL in attributes
        and _value(attributes.get(reserved_tags.SPAN_TYPE)) != _AGENT
    )


def add_cost(attributes: Attributes, own_prices: Own) -> None:
    """Adds the cost to a span's attributes, in place, if it is missing and the model's price is
    known."""
    if not lacks_cost(attributes):
        return
    model, usage, provider = [
        _value(attributes.get(key))
        for key in (
            reserved_tags.SPAN_MODEL,
            reserved_tags.SPAN_TOKEN_USAGE,
            reserved_tags.SPAN_PROVIDER,
        )
    ]
    span_cost = cost(model, usage, provider, own_prices)
    if span_cost:
        attributes[SPAN_COST] = json_text(span_cost)


def _value(text: Any) -> Any:
    try:
        return load_json(text)
    except (TypeError, ValueError):
        return None
