"""Converts JSON values to protobuf's scalar types by the rules of protobuf's JSON parser."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, get_args

from mlcore.wire.json_text import check_storable

Int32 = Annotated[int, "int32"]

ArgumentInt = Annotated[int, "text of an int64"]
"""The type of an argument that is an ``Int32`` in MLflow's protobuf definition, but that its server
reads with Python's ``int`` from the query string."""

Convert = Callable[[Any], Any]
"""Converts a JSON value to a field's value; raises Stop."""


class Stop(Exception):
    """Raised to end the parsing of a request at a value that does not fit its field."""

    path: str = ""
    """The path of the field, the outermost message first."""
    value: Any = None
    """The JSON value that does not fit."""

    def within(self, key: str, value: Any) -> None:
        """Puts the name ``key`` of a request's field before ``path``. It is called for the field
        with the wrong ``value``, then for each field that encloses it, from the inside outwards."""
        if not self.path:
            self.path, self.value = key, value
        else:
            self.path = f"{key}.{self.path}"


class Enum:
    """The names of the values of a protobuf enum, by number."""

    __slots__ = ("by_number",)

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self.by_number: dict[Any, str] = {number: name for name, number in numbers.items()}


def enum(**numbers: int) -> Enum:
    """Makes the type of a field that holds the name of an enum value; None if unset. For example
    ``Annotated[str | None, enum(NAME=1, …)]``."""
    return Enum(numbers)


class Scalar(NamedTuple):
    convert: Convert
    default: Any


def scalar(hint: Any) -> Scalar:
    """Returns the function that converts a JSON value to the scalar type that an annotation names,
    and the type's default."""
    for extra in get_args(hint):
        if isinstance(extra, Enum):
            return Scalar(_enum_converter(extra), None)
    if hint == Int32:
        return Scalar(_int32, 0)
    if hint == ArgumentInt:
        return Scalar(_argument_int, 0)
    known: dict[Any, Scalar] = {
        str: Scalar(string, ""),
        int: Scalar(_int64, 0),
        float: Scalar(_double, 0.0),
        bool: Scalar(_bool, False),
        Any: Scalar(_anything, None),
    }
    return known[hint]


def string(value: Any) -> str:
    if value.__class__ is not str:
        raise Stop
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:  # unpaired surrogates
            raise Stop from None
    return value


def _anything(value: Any) -> Any:
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (list, dict)):
        try:
            check_storable(value)
        except ValueError:
            raise Stop from None
    return value


def _int64(value: Any) -> int:
    if value.__class__ is not int:
        value = _integer(value)
    if -9223372036854775808 <= value <= 9223372036854775807:
        return value  # type: ignore[no-any-return]
    raise Stop


def _int32(value: Any) -> int:
    if value.__class__ is not int:
        value = _integer(value)
    if -2147483648 <= value <= 2147483647:
        return value  # type: ignore[no-any-return]
    raise Stop


def _argument_int(value: Any) -> int:
    if not isinstance(value, str):  # of a body, which the server does not read
        return _int32(value)
    try:
        return _int64(int(string(value)))
    except ValueError:
        raise Stop from None


def _integer(value: Any) -> int:
    """Returns an integer from an integral float or a numeric string ("7", "7.0", "1e3"; no
    spaces)."""
    if isinstance(value, str) and " " not in value:
        try:
            return int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                raise Stop from None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise Stop


def _double(value: Any) -> float:
    """Returns a double from a number, a bool or a numeric string; a bare NaN or infinity must be
    quoted."""
    if value.__class__ is float:
        if math.isfinite(value):
            return value
        raise Stop
    if value == "nan" or isinstance(value, list | dict):
        raise Stop
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise Stop from None


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Stop


def _enum_converter(names: Enum) -> Convert:
    by_number = names.by_number
    known = frozenset(by_number.values())

    def convert(value: Any) -> str:
        """Returns the name of an enum value, from its name or its number."""
        if isinstance(value, list | dict):
            raise Stop
        if value in known:
            return value  # type: ignore[no-any-return]
        try:
            number = int(value)
        except (ValueError, OverflowError):
            raise Stop from None
        if number not in by_number:
            raise Stop
        return by_number[number]

    return convert
