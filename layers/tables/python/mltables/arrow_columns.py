"""Makes Arrow arrays from Python values, so that DuckDB reads them without parsing text."""

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
    """Joins Arrow arrays of rows to one array, which ``DuckDBPyConnection.register`` accepts. There
    is at least one array in ``parts``, and all have the same columns."""
    return Array.from_chunks(parts)


def rows_of(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> CArray:
    """Converts rows to an Arrow array of structs.

    Args:
        columns: the names and types of the fields: texts, integers, maps, structs and lists of
            these.
        rows: the values of each row, in the order of ``columns``.
    """
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = {
        name: _array(kind, listed)
        for (name, _, kind, _), listed in zip(columns, values, strict=True)
    }
    return _struct(arrays, len(rows))


def _array(kind: Any, values: Sequence[Any]) -> CArray:
    """Converts the values of a column to an Arrow array.

    Args:
        kind: the column's type in Delta.
        values: texts or integers (or None), lists, or dicts for maps and structs. Maps keep the
            order of their keys.
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
    """Returns an Arrow array of lists or maps.

    Args:
        ends: offsets into ``elements``: zero, then for each list or map the position after its last
            element.
    """
    return c_array_from_buffers(
        schema, len(ends) - 1, [None, ends], null_count=0, children=[elements]
    )
