"""Compiles orderings into functions that make sort keys, which page tokens can hold.

A key is a flat tuple of strings, ints and floats: ``key < other`` means "comes before", equal keys
mean the same entity, and ``tuple(json.loads(json.dumps(key))) == key``. Each field contributes two
elements, (rank, value). Ranks put present values first, then metrics that are NaN, then missing
values, in both directions. In a descending field the value is inverted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from mlcore.errors import InvalidParameterValue
from mlcore.search.fields import ATTRIBUTE, IDENTIFIER, METRIC, NUMBER, PARAM, SearchableEntity
from mlcore.search.grammar import OrderBy

Key = tuple[str | int | float, ...]
SortKey = Callable[[Any], Key]

PRESENT, NAN, MISSING = 0, 1, 2
# The order of UTF-8 bytes is that of code points and of SQLite, so inverting bytes inverts the
# order of texts. The last character is greater than any other: of two texts the longer comes first.
_INVERTED = bytes(255 - byte for byte in range(256))
_END = "\u0100"


def metric_field(value: float, *, ascending: bool) -> Key:
    """Returns the two elements (rank, value) that a metric's value contributes to the key by which
    a search sorts what it found (no DynamoDB key)."""
    return (PRESENT, value if ascending else -value) if value == value else _NOT_A_NUMBER  # noqa: PLR0124 - NaN


def value_field(value: str | float | None, *, ascending: bool) -> Key:
    """Returns the two elements (rank, value) that a text or number other than a metric contributes
    to the key by which a search sorts entities. None stands for a missing value, which sorts last.
    """
    if value is None:
        return _LAST
    if ascending:
        return (PRESENT, value)
    return (PRESENT, inverted_text(value) if isinstance(value, str) else -value)


def inverted_text(text: str) -> str:
    """Returns an encoding of the text that sorts in the opposite order."""
    return text.encode("utf-8", "surrogatepass").translate(_INVERTED).decode("latin-1") + _END


def sortable_experiment_id(experiment_id: str) -> str:
    """Returns an encoding that sorts as MLflow's column of experiment ids does: numbers by their
    size.

    Ids that are not numbers sort after 0, the id of the first experiment, and before all other
    numbers; among themselves they sort as texts.
    """
    if not (experiment_id.isascii() and experiment_id.isdecimal()):
        return f"1{experiment_id}"
    digits = experiment_id.lstrip("0")
    return f"2{len(digits):04d}{digits}" if digits else "0"


def restore_text(value: object, *, ascending: bool) -> str:
    """Returns the text from which :func:`value_field` made this value, which a page token holds.

    Raises InvalidParameterValue if value_field cannot have made the value.
    """
    if not isinstance(value, str):
        raise InvalidParameterValue("Invalid page token")
    if ascending:
        return value
    try:
        return value[:-1].encode("latin-1").translate(_INVERTED).decode("utf-8", "surrogatepass")
    except UnicodeError:
        raise InvalidParameterValue("Invalid page token") from None


def sort_key(order_by: Sequence[OrderBy], entity: SearchableEntity) -> SortKey:
    """Returns a function that makes the key by which a search sorts its results (such as runs): for
    the requested order, or for the default order of ``entity`` if none is requested.

    The tie-break of ``entity`` is appended to the order, so no two results have the same key.
    """
    fields = [_field(order, entity) for order in _total(order_by, entity)]
    if len(fields) == 1:
        return fields[0]
    if len(fields) == 2:
        first, second = fields
        return lambda item: first(item) + second(item)
    if len(fields) == 3:
        field_of_order, two, three = fields
        return lambda item: field_of_order(item) + two(item) + three(item)

    def key(item: Any) -> Key:
        elements: list[str | int | float] = []
        for field in fields:
            elements += field(item)
        return tuple(elements)

    return key


def restore_key(values: object, order_by: Sequence[OrderBy], entity: SearchableEntity) -> Key:
    """Checks that a page token's values are an entity's sort key in this search order, and returns
    the key. Raises InvalidParameterValue otherwise."""
    total = _total(order_by, entity)
    if not isinstance(values, list | tuple) or len(values) != 2 * len(total):
        raise InvalidParameterValue("Invalid page token")
    for order, rank, value in zip(total, values[::2], values[1::2], strict=True):
        expected = str if rank == PRESENT and not _is_number(order, entity) else (int, float)
        if rank not in (PRESENT, NAN, MISSING) or not isinstance(value, expected):
            raise InvalidParameterValue("Invalid page token")
    return tuple(values)


def _total(order_by: Sequence[OrderBy], entity: SearchableEntity) -> list[OrderBy]:
    total = list(order_by)
    named = {order.key for order in total if order.kind == ATTRIBUTE}
    added = entity.tie_break if total else entity.default_order
    total += [OrderBy(ATTRIBUTE, key, ascending) for key, ascending in added if key not in named]
    return total


def _is_number(order: OrderBy, entity: SearchableEntity) -> bool:
    if order.kind == ATTRIBUTE:
        return entity.sortable[order.key].type == NUMBER
    return order.kind == METRIC


def _field(order: OrderBy, entity: SearchableEntity) -> SortKey:
    if order.kind == METRIC:
        return _metric(order.key, order.ascending)
    if order.kind == ATTRIBUTE and entity.sortable[order.key].type == IDENTIFIER:
        return _identifier(order.key, order.ascending)
    if order.kind == ATTRIBUTE:
        return _attribute(order.key, order.ascending, _is_number(order, entity))
    return _entry("params" if order.kind == PARAM else "tags", order.key, order.ascending)


_LAST: Key = (MISSING, 0)
_NOT_A_NUMBER: Key = (NAN, 0)


def _metric(key: str, ascending: bool) -> SortKey:
    sign = 1.0 if ascending else -1.0

    def metric_key(item: Any) -> Key:
        metric = item.metrics.get(key)
        if metric is None:
            return _LAST
        value = metric.value
        return (PRESENT, sign * value) if value == value else _NOT_A_NUMBER  # noqa: PLR0124 - NaN

    return metric_key


def _attribute(name: str, ascending: bool, number: bool) -> SortKey:
    get = operator.attrgetter(name)
    if ascending:
        return lambda item: (PRESENT, value) if (value := get(item)) is not None else _LAST
    if number:
        return lambda item: (PRESENT, -value) if (value := get(item)) is not None else _LAST
    return lambda item: (
        (PRESENT, inverted_text(value)) if (value := get(item)) is not None else _LAST
    )


def _identifier(name: str, ascending: bool) -> SortKey:
    get = operator.attrgetter(name)
    return lambda item: value_field(sortable_experiment_id(get(item)), ascending=ascending)


def _entry(container: str, key: str, ascending: bool) -> SortKey:
    entries = operator.attrgetter(container)
    if ascending:
        return lambda item: (
            (PRESENT, value) if (value := entries(item).get(key)) is not None else _LAST
        )
    return lambda item: (
        (PRESENT, inverted_text(value)) if (value := entries(item).get(key)) is not None else _LAST
    )
