"""Views of raw items by the attributes that a model declares; owns no schema.

PynamoDB's own instances take 20 times as long to make as an item takes to be read by hand. A view
holds the raw item and converts an attribute when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pynamodb.constants import BOOLEAN, NULL, STRING

from mlcore.db.attributes import TextMapAttribute, texts_in
from mlcore.db.declarations import Attribute, Model

Raw = dict[str, Any]


class View:
    """A raw item. Subclasses, one for each model, have a property for each of its attributes."""

    __slots__ = ("raw",)

    def __init__(self, raw: Raw) -> None:
        self.raw = raw


def compile_view(model: type[Model]) -> type[View]:
    """The class of views of a model's items.

    Properties give what ``model.from_raw_data(item)`` gives: None for an attribute that may lack
    and does, or is NULL. One that must be there and is not raises KeyError, where PynamoDB gives
    None: such an item is not of this model.

    Raises:
        TypeError: the model has a default for loaded items, which a view would not set.
    """
    properties: dict[str, Any] = {"__slots__": ()}
    for name, attribute in model.get_attributes().items():
        if attribute.default is not None:
            raise TypeError(f"{model.__name__}.{name} has a default for loaded items")
        if isinstance(attribute, TextMapAttribute):
            properties[name] = property(_texts(attribute.attr_name, required=not attribute.null))
            continue
        as_it_is = (
            attribute.attr_type in {STRING, BOOLEAN}
            and type(attribute).deserialize is Attribute.deserialize
        )
        convert = None if as_it_is else attribute.deserialize
        make = _optional if attribute.null else _required
        properties[name] = property(make(attribute.attr_name, attribute.attr_type, convert))
    return type(f"{model.__name__}View", (View,), properties)


def _texts(name: str, *, required: bool) -> Callable[[View], Any]:
    if required:
        return lambda view: texts_in(view.raw[name])

    def read(view: View) -> Any:
        value = view.raw.get(name)
        return None if value is None or NULL in value else texts_in(value)

    return read


def _required(name: str, kind: str, convert: Callable[[Any], Any] | None) -> Callable[[View], Any]:
    if convert is None:
        return lambda view: view.raw[name][kind]
    return lambda view: convert(view.raw[name][kind])


def _optional(name: str, kind: str, convert: Callable[[Any], Any] | None) -> Callable[[View], Any]:
    def read(view: View) -> Any:
        value = view.raw.get(name)
        if value is None or kind not in value:
            return None
        return value[kind] if convert is None else convert(value[kind])

    return read
