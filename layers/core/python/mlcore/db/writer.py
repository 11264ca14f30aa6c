"""Raw items from the values of a model's attributes; owns no schema.

What PynamoDB does to make and to serialise an instance takes ten times as long, and was a quarter
of the indexer's time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcore.db.declarations import Attribute, AttributeNullError, Model
from mlcore.db.reader import Raw

Writer = Callable[[Mapping[str, Any]], Raw]


def compile_writer(model: type[Model]) -> Writer:
    """From values by the attributes' names to what ``model(**values).serialize()`` gives.

    The writer raises what PynamoDB raises: ValueError for a value that the model has no attribute
    for, AttributeNullError where one lacks that must be there.

    Raises:
        TypeError: the model has a default, which a writer would not set.
    """
    columns: dict[str, tuple[str, str, Callable[[Any], Any] | None]] = {}
    required = set()
    for name, attribute in model.get_attributes().items():
        if attribute.default is not None or attribute.default_for_new is not None:
            raise TypeError(f"{model.__name__}.{name} has a default")
        as_it_is = type(attribute).serialize is Attribute.serialize
        convert = None if as_it_is else attribute.serialize
        columns[name] = attribute.attr_name, attribute.attr_type, convert
        if not attribute.null:
            required.add(name)

    def write(values: Mapping[str, Any]) -> Raw:
        item: Raw = {}
        missing = len(required)
        for name, value in values.items():
            if name not in columns:
                raise ValueError(f"{model.__name__} has no attribute {name}")
            if value is None:
                continue
            stored, kind, convert = columns[name]
            item[stored] = {kind: value if convert is None else convert(value)}
            missing -= name in required
        if missing:
            lacking = (name for name in columns if name in required and values.get(name) is None)
            raise AttributeNullError(next(lacking))
        return item

    return write
