"""Validates, normalizes, measures and compares attribute values in DynamoDB's JSON.

In normal form a number has no superfluous digits (``"1.50"`` is ``"1.5"``), binary content is
Base64, and a set is sorted, so that equal values are equal objects. Sizes are in bytes, by the
rules of DynamoDB's documentation ("Item sizes and formats").
"""

from __future__ import annotations

import base64
import binascii
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Subnormal
from typing import Any, Final

from local.store.errors import invalid, invalid_parameter

Raw = dict[str, Any]

ITEM_BYTES: Final = 400 * 1024
MAX_DEPTH: Final = 32
_DIGITS: Final = 38
_MAX_EXPONENT, _MIN_EXPONENT = 125, -130

_SETS: Final = {"SS": "string set ", "NS": "number set ", "BS": "binary set "}
_EXACT: Final = Context(
    prec=400,
    Emax=999_999,
    Emin=-999_999,
    traps=[InvalidOperation, Inexact, Overflow, Subnormal],
)
"""A decimal context that adds any two of DynamoDB's numbers without rounding: their digits lie
within 293 places."""

_TOO_LARGE: Final = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
_TOO_SMALL: Final = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
_TOO_LONG: Final = "Attempting to store more than 38 significant digits in a Number"
_SHORT_DIGITS: Final = 15
"""An integer of at most this many digits is in normal form if it has no leading zero."""


class ValueSize:
    """Validates and measures DynamoDB's attribute values. Afterwards ``is_normal`` says whether all
    had the form in which they are stored, such as ``1`` for ``1.0``."""

    __slots__ = ("is_normal",)

    def __init__(self) -> None:
        self.is_normal = True

    def of(self, value: Any, depth: int = 0) -> int:
        """Returns the size of a value in bytes.

        Raises:
            ClientError: ValidationException, if DynamoDB does not store such a value.
        """
        if type(value) is not dict or len(value) != 1:
            raise _not_one_type(value)
        ((kind, content),) = value.items()
        if kind == "S":
            is_plain = type(content) is str and content.isascii()
            return len(content) if is_plain else _text_bytes(content)
        if kind == "N":
            return self._number(content)
        if kind == "M":
            if depth >= MAX_DEPTH:
                raise invalid("Nesting Levels have exceeded supported limits")
            size = 3
            for name, inner in content.items():
                size += _text_bytes(name) + 1 + self.of(inner, depth + 1)
            return size
        if kind == "L":
            if depth >= MAX_DEPTH:
                raise invalid("Nesting Levels have exceeded supported limits")
            return 3 + sum([1 + self.of(inner, depth + 1) for inner in content])
        if kind == "B":
            return self._binary(content)
        if kind in ("BOOL", "NULL"):
            if kind == "NULL" and content is not True:
                raise invalid_parameter("Null attribute value types must have the value of true")
            return 1
        if kind in _SETS:
            return self._set(kind, content)
        raise _not_one_type(value)

    def _number(self, text: Any) -> int:
        if (
            isinstance(text, str)
            and len(text) <= _SHORT_DIGITS
            and text.isascii()
            and text.isdigit()
            and (text[0] != "0" or text == "0")
        ):
            return _number_bytes(text)
        normal = normal_number(text)
        if normal != text:
            self.is_normal = False
        return _number_bytes(normal)

    def _binary(self, content: Any) -> int:
        if isinstance(content, str):
            return len(decoded(content))
        self.is_normal = False
        return len(content)

    def _set(self, kind: str, content: Any) -> int:
        if not content:
            raise invalid_parameter(f"An {_SETS[kind]} may not be empty")
        size = 0
        members = []
        for member in content:
            size += self.of({kind[0]: member})
            members.append(normal_number(member) if kind == "NS" else binary_text(member))
        if len(set(members)) != len(members):
            shown = ", ".join(map(str, members))
            raise invalid_parameter(f"Input collection [{shown}] contains duplicates.")
        if sorted(members) != content:
            self.is_normal = False
        return size


def checked_item(item: Any) -> tuple[Raw, int]:
    """Validates a DynamoDB item. Returns it in normal form, and its size in bytes. An item that is
    in normal form is returned itself, not a copy.

    Raises:
        ClientError: a value is invalid, or the item is larger than 400 KB.
    """
    normal, size = checked_values(item)
    if size > ITEM_BYTES:
        raise invalid("Item size has exceeded the maximum allowed size")
    return normal, size


def checked_values(values: Any) -> tuple[Raw, int]:
    """Validates the attribute values of an item (DynamoDB JSON by name). Returns them in
    normal form, and the size in bytes of all names and values.

    Raises:
        ClientError: a value is invalid.
    """
    measure = ValueSize()
    size = 0
    for name, value in values.items():
        if type(value) is dict and len(value) == 1:
            # Most values are ASCII texts: measured here, because a call takes longer.
            text = value.get("S")
            if type(text) is str and text.isascii() and name.isascii():
                size += len(name) + len(text)
                continue
        size += _text_bytes(name) + measure.of(value)
    if measure.is_normal:
        return values, size
    return {name: normal_value(value) for name, value in values.items()}, size


def size_of(value: Raw) -> int:
    """Returns the bytes that DynamoDB counts for a valid attribute value."""
    text = value.get("S")
    if text is not None:
        return len(text) if text.isascii() else _text_bytes(text)
    number = value.get("N")
    return ValueSize().of(value) if number is None else _number_bytes(number)


def name_size(name: str) -> int:
    return _text_bytes(name)


def normal_value(value: Raw) -> Raw:
    """Returns a valid DynamoDB attribute value in normal form."""
    ((kind, content),) = value.items()
    if kind == "N":
        return {"N": normal_number(content)}
    if kind == "M":
        return {"M": {name: normal_value(inner) for name, inner in content.items()}}
    if kind == "L":
        return {"L": [normal_value(inner) for inner in content]}
    if kind == "NS":
        return {"NS": sorted(map(normal_number, content))}
    if kind == "B":
        return {"B": binary_text(content)}
    if kind in _SETS:
        return {kind: sorted(map(binary_text, content))}
    return value


def binary_text(content: Any) -> Any:
    """Returns binary content as Base64. A text is Base64 already and is returned unchanged."""
    return content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()


def decoded(text: str) -> bytes:
    """Decodes Base64.

    Raises:
        ClientError: the text is not Base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as failure:
        raise invalid_parameter("Invalid Base64 in a binary value") from failure


def decimal(text: str) -> Any:
    """Parses a number in normal form: an int for an integer, otherwise a Decimal."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def exact_sum(left: Any, right: Any, sign: int) -> Any:
    """Returns ``left + sign * right`` without rounding. Both numbers are results of
    :func:`decimal`.
    """
    if isinstance(left, int) and isinstance(right, int):
        return left + sign * right
    return _EXACT.add(Decimal(left), _EXACT.multiply(sign, Decimal(right)))


def normal_number(text: Any) -> str:
    """Returns the normal form of the text of a DynamoDB number, such as ``1.5`` for ``1.50``.

    Raises:
        ClientError: the text is not a number, has more than 38 significant digits, or is outside of
            DynamoDB's range.
    """
    try:
        number = _EXACT.create_decimal(text if isinstance(text, str) and text.isascii() else "")
    except InvalidOperation as failure:
        raise _not_a_number(text) from failure
    except Overflow as failure:
        raise invalid(_TOO_LARGE) from failure
    except Subnormal as failure:
        raise invalid(_TOO_SMALL) from failure
    except Inexact as failure:
        raise invalid(_TOO_LONG) from failure
    if not number.is_finite():
        raise _not_a_number(text)
    return normal_decimal(number)


def normal_decimal(number: Decimal | int) -> str:
    """Returns a finite number as text in normal form, without superfluous digits. Raises
    ClientError like :func:`normal_number`."""
    if not number:
        return "0"
    number = _EXACT.normalize(Decimal(number))
    _, digits, exponent = number.as_tuple()
    if len(digits) > _DIGITS:
        raise invalid(_TOO_LONG)
    magnitude = len(digits) + int(exponent) - 1
    if magnitude > _MAX_EXPONENT:
        raise invalid(_TOO_LARGE)
    if magnitude < _MIN_EXPONENT:
        raise invalid(_TOO_SMALL)
    return format(number, "f")


def _text_bytes(text: Any) -> int:
    try:
        return len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as failure:
        raise invalid_parameter("A string holds half of a surrogate pair") from failure
    except AttributeError as failure:
        raise _not_one_type(text) from failure


def _number_bytes(text: str) -> int:
    """Returns the size of a number in bytes: one for each two digits, counted from the decimal
    point without leading and trailing zeros, and one or two more.
    """
    if text == "0":
        return 1
    if text.isdigit():
        zeros = len(text) - len(text.rstrip("0"))
        return (len(text) + 1) // 2 - zeros // 2 + 1
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = "0" * (len(whole) % 2) + whole + fraction + "0" * (len(fraction) % 2)
    pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
    while pairs[0] == "00":
        del pairs[0]
    while pairs[-1] == "00":
        pairs.pop()
    return len(pairs) + 1 + (text[0] == "-")


def _not_a_number(text: Any) -> Exception:
    if text == "":
        return invalid("The parameter cannot be converted to a numeric value")
    return invalid(f"The parameter cannot be converted to a numeric value: {text}")


def _not_one_type(value: Any) -> Exception:
    if isinstance(value, dict) and len(value) > 1:
        return invalid(
            "Supplied AttributeValue has more than one datatypes set, must contain exactly one of "
            "the supported datatypes"
        )
    return invalid(
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
    )
