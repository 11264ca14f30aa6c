"""Types (number, text, …) of Kubeflow's custom properties. MLflow stores such a property as a tag,
which is a text; the item's attribute ``property_types`` has the types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcore.db.expression import Update


def remove_types(
    update: Update,
    attribute: Any,
    types: Mapping[str, str] | None,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
) -> None:
    """Adds to an update of tags by MLflow the removal of those tags' types: a tag that MLflow sets
    or removes is an untyped string from then on.

    Args:
        attribute: the attribute ``property_types`` of the item's model.
        types: the value of ``property_types`` when the item was read.
        sets: texts to set, by map.
        removals: (map, key) pairs that are removed.
    """
    if types:
        for key in dict.fromkeys((*sets.get("tags", ()), *(key for _, key in removals))):
            if key in types:
                update.remove((attribute, key))
