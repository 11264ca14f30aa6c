"""Makes Arrow arrays of Python values, which DuckDB reads without a text in between."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Final

from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType
from nanoarrow import (
    Array,
    c_array,
    c_array_from_buffers,
    int64,
    large_string,
    list_,
    map_,
    struct,
)
from nanoarrow.c_array import CArray

from mltables.table_columns import Column

_PRIMITIVE: Final = {"string": large_string(), "long": int64()}


def joined(parts: Sequence[CArray]) -> Array:
    """Returns the rows of at least one part in a form that ``DuckDBPyConnection.register`` takes.
    All parts have the same columns."""
    return Array.from_chunks(parts)


def rows_of(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> CArray:
    """Returns rows as columns.

    Args:
        columns: the columns of texts, integers, maps, structs and lists of these.
        rows: the values of each row, in the order of ``columns``.
    """
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = {
        name: _array(kind, listed)
        for (name, _, kind, _), listed in zip(columns, values, strict=True)
    }
    return _struct(arrays, len(rows))


def _array(kind: Any, values: Sequence[Any]) -> CArray:
    """Returns the values of a column as an array.

    Args:
        kind: the column's type in Delta.
        values: texts or integers, each may be None; a dict for a map or a struct. The order of a
            map's keys stays.
    """
    if isinstance(kind, PrimitiveType):
        return c_array(values, _PRIMITIVE[kind.type])
    if isinstance(kind, StructType):
        fields = {
            field.name: _array(field.type, [value[field.name] for value in values])
            for field in kind.fields
        }
        return _struct(fields, len(values))
    ends = array("i", [0])
    ends.extend(accumulate(map(len, values)))
    if isinstance(kind, ArrayType):
        elements = _array(kind.element_type, _joined(values))
        return _nested(list_(elements.schema), ends, elements)
    if isinstance(kind, MapType):
        keys = _array(kind.key_type, _joined(values))
        contents = _array(kind.value_type, _joined(value.values() for value in values))
        entries = _struct({"key": keys, "value": contents}, ends[-1])
        return _nested(map_(keys.schema, contents.schema), ends, entries)
    raise TypeError(kind)


def _joined(values: Iterable[Iterable[Any]]) -> list[Any]:
    return list(chain.from_iterable(values))


def _struct(fields: Mapping[str, CArray], length: int) -> CArray:
    schema = struct({name: field.schema for name, field in fields.items()})
    return c_array_from_buffers(
        schema, length, [None], null_count=0, children=list(fields.values())
    )


def _nested(schema: Any, ends: array[int], elements: CArray) -> CArray:
    """Returns an array of lists or maps.

    Args:
        ends: zero, and after each value the number of elements so far.
    """
    return c_array_from_buffers(
        schema, len(ends) - 1, [None, ends], null_count=0, children=[elements]
    )
