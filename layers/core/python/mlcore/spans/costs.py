"""Completes spans by what the calls of models that they tell of cost."""

from __future__ import annotations

import json
from typing import Any

from mlcore.prices.cost import cost
from mlcore.prices.price_list import Own
from mlcore.spans.attributes import Attributes, json_text
from mlcore.spans.names import SPAN_COST, SPAN_MODEL, SPAN_PROVIDER, SPAN_USAGE


def is_due(attributes: Attributes) -> bool:
    """Whether a span has tokens and a model, but says nothing of a cost, not even that there is
    none."""
    return SPAN_COST not in attributes and SPAN_USAGE in attributes and SPAN_MODEL in attributes


def complete(attributes: Attributes, own: Own) -> None:
    """Adds the cost, in place, where it is due and the model's price is known."""
    if not is_due(attributes):
        return
    model, usage, provider = [
        _value(attributes.get(key)) for key in (SPAN_MODEL, SPAN_USAGE, SPAN_PROVIDER)
    ]
    found = cost(model, usage, provider, own)
    if found:
        attributes[SPAN_COST] = json_text(found)


def _value(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
