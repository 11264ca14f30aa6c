"""Reads raw items with what a PynamoDB model declares, without its instances; owns no schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute
from pynamodb.models import Model

Raw = dict[str, Any]


def compile_reader(model: type[Model]) -> Callable[[Raw], dict[str, Any]]:
    """A function from a raw item to its values by Python name.

    The result equals ``model.from_raw_data(item).attribute_values``: absent and NULL attributes,
    and those that the model does not declare, are left out.

    Raises:
        TypeError: the model has a default for loaded items, which a reader would not set.
    """
    plan: dict[str, tuple[str, str, Callable[[Any], Any] | None]] = {}
    for name, attribute in model.get_attributes().items():
        if attribute.default is not None:
            raise TypeError(f"{model.__name__}.{name} has a default for loaded items")
        as_it_is = isinstance(attribute, UnicodeAttribute | BooleanAttribute)
        convert = None if as_it_is else attribute.deserialize
        plan[attribute.attr_name] = (name, attribute.attr_type, convert)
    entry_of = plan.get

    def read(item: Raw) -> dict[str, Any]:
        values = {}
        for attribute_name, raw in item.items():
            entry = entry_of(attribute_name)
            if entry is None or "NULL" in raw:
                continue
            name, kind, convert = entry
            values[name] = raw[kind] if convert is None else convert(raw[kind])
        return values

    return read
