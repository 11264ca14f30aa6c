"""Metrics that are not a number (NaN), for which JSON has no word although each metric must show a
value.

The API's clients in Python read the word ``NaN``, which their JSON parser knows. For all others
such a metric has the value 0 and the custom property ``is_nan``, as MLflow's own tables say it;
written back so, it is not a number again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.kubeflow.properties import BOOL, Property

PROPERTY: Final = "is_nan"
_MARK: Final = Property(BOOL, True)
_PYTHON: Final = re.compile(r"OpenAPI-Generator/[^/]+/python")


def reads_the_word(user_agent: str) -> bool:
    """Whether a client reads ``NaN``: one that was generated for Python."""
    return _PYTHON.fullmatch(user_agent) is not None


def told(answer: Any) -> None:
    """Makes strict JSON of an entity, or of a page of entities."""
    entities = answer.get("items", (answer,)) if isinstance(answer, dict) else ()
    for entity in entities:
        value = entity.get("value")
        if isinstance(value, float) and math.isnan(value):
            entity["value"] = 0.0
            properties = entity.get("customProperties", {})
            entity["customProperties"] = {**properties, PROPERTY: _MARK.json()}


def is_told(entity: Mapping[str, Any]) -> bool:
    """Whether the JSON of a metric, as a server answered it, says that it is not a number."""
    properties = entity.get("customProperties") or {}
    return entity.get("value") == 0 and properties.get(PROPERTY) == _MARK.json()


def understood(values: Mapping[str, Any]) -> dict[str, Any]:
    """The checked fields of a metric in a body, as they were meant."""
    properties = values.get("customProperties") or {}
    found = dict(values)
    if properties.get(PROPERTY) == _MARK and values.get("value") == 0:
        found["value"] = math.nan
        found["customProperties"] = {
            name: value for name, value in properties.items() if name != PROPERTY
        }
    return found
