"""Metrics with the value NaN in Kubeflow's API, where every metric must have a value in JSON.

Kubeflow's Python clients accept the literal ``NaN``, which their JSON parser reads. For all other
clients such a metric has the value 0 and the custom property ``is_nan``, as in MLflow's own tables.
Written back in that form, it becomes NaN again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.kubeflow.custom_properties import BOOL, Property

PROPERTY: Final = "is_nan"
_MARK: Final = Property(BOOL, True)
_PYTHON: Final = re.compile(r"OpenAPI-Generator/[^/]+/python")


def reads_nan(user_agent: str) -> bool:
    """Whether a client of Kubeflow's API can read ``NaN`` in JSON: generated Python clients can."""
    return _PYTHON.fullmatch(user_agent) is not None


def mark_nan(answer: Any) -> None:
    """Replaces the value NaN of metrics in an answer of Kubeflow's API (an entity or a page of
    entities) by 0 and the custom property ``is_nan``. Changes the dicts in place."""
    entities = answer.get("items", (answer,)) if isinstance(answer, dict) else ()
    for entity in entities:
        value = entity.get("value")
        if isinstance(value, float) and math.isnan(value):
            entity["value"] = 0.0
            properties = entity.get("customProperties", {})
            entity["customProperties"] = {**properties, PROPERTY: _MARK.json()}


def is_marked_nan(entity: Mapping[str, Any]) -> bool:
    """Whether the JSON of a Kubeflow metric, as a server returned it, marks NaN by ``is_nan``."""
    properties = entity.get("customProperties") or {}
    return entity.get("value") == 0 and properties.get(PROPERTY) == _MARK.json()


def unmark_nan(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the validated fields of a metric from a request to Kubeflow's API. If they mark NaN
    (by the value 0 and the custom property ``is_nan``), the value is NaN and the property is
    removed."""
    properties = values.get("customProperties") or {}
    fields = dict(values)
    if properties.get(PROPERTY) == _MARK and values.get("value") == 0:
        fields["value"] = math.nan
        fields["customProperties"] = {
            name: value for name, value in properties.items() if name != PROPERTY
        }
    return fields
