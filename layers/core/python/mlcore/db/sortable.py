"""Encodings of numbers and texts as strings that sort like the values or in the reverse order.

DynamoDB orders strings by their UTF-8 bytes, which is the order of code points and thus Python's
order of ``str``. Each encoding decodes to exactly the value that was encoded, except that all NaNs
become the same one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from math import isnan

_INT64_BIAS = 1 << 63
_INT64_END = 1 << 64
_DECIMAL_END = 10**19
_SIGN = 1 << 63
_ALL_BITS = (1 << 64) - 1
_NAN_BITS = 0x7FF8_0000_0000_0000
_NAN_TEXT = "f" * 16

_pack_double = struct.Struct(">d").pack
_unpack_double = struct.Struct(">d").unpack
_unpack_point = struct.Struct(">qqd").unpack


def integer(number: int) -> str:
    """Encodes an int64 as 20 characters that sort like the numbers. Natural numbers are padded with
    zeros. A negative number is ``-`` and its sum with 10^19: ``-1`` is ``-9999999999999999999``.
    Raises ValueError if the number is not an int64."""
    _check_int64(number)
    return f"{number:020d}" if number >= 0 else f"-{number + _DECIMAL_END:019d}"


def parse_integer(text: str) -> int:
    return int(text[1:]) - _DECIMAL_END if text[0] == "-" else int(text)


def int64_hex(number: int) -> str:
    """Encodes an int64 as 16 hexadecimal digits that sort like the numbers. Raises ValueError for
    other numbers."""
    _check_int64(number)
    return f"{number + _INT64_BIAS:016x}"


def double(value: float) -> str:
    """Encodes a double as 16 hexadecimal digits that sort -inf < … < -0.0 < 0.0 < … < inf < NaN.
    All NaNs have the same encoding."""
    if isnan(value):
        return _NAN_TEXT
    bits = int.from_bytes(_pack_double(value), "big")
    return f"{bits ^ _ALL_BITS if bits & _SIGN else bits | _SIGN:016x}"


def parse_double(text: str) -> float:
    bits = int(text, 16)
    return _double(
        _NAN_BITS if bits == _ALL_BITS else bits ^ (_SIGN if bits & _SIGN else _ALL_BITS)
    )


def parse_point(text: str) -> tuple[int, int, float]:
    """Decodes 48 hexadecimal digits to (timestamp, step, value), the position of a point in a
    metric's history: two int64 (:func:`int64_hex`) and a double other than NaN (:func:`double`)."""
    raw = bytearray.fromhex(text)
    raw[0] ^= 0x80
    raw[8] ^= 0x80
    if raw[16] & 0x80:
        raw[16] ^= 0x80
    else:
        raw[16:] = bytes(byte ^ 0xFF for byte in raw[16:])
    return _unpack_point(raw)


def parse_points(texts: Iterable[str]) -> Iterator[tuple[int, int, float]]:
    """Decodes the texts of many metric points as :func:`parse_point` decodes one, in their order,
    but faster."""
    raw = bytes.fromhex("".join(texts))
    count = len(raw) // 24
    words = struct.unpack(f">{3 * count}Q", raw)
    bits = [word ^ _SIGN if word & _SIGN else word ^ _ALL_BITS for word in words[2::3]]
    values = struct.unpack(f">{count}d", struct.pack(f">{count}Q", *bits))
    return zip(
        [word - _INT64_BIAS for word in words[::3]],
        [word - _INT64_BIAS for word in words[1::3]],
        values,
        strict=True,
    )


def inverted_double(value: float) -> str:
    """Encodes a double as 16 hexadecimal digits that sort inf < … < -inf < NaN: descending, but NaN
    is still last."""
    return f"{inverted_double_bits(value):016x}"


def parse_inverted_double(text: str) -> float:
    return double_of_inverted_bits(int(text, 16))


def inverted_double_bits(value: float) -> int:
    """Encodes a double as the 64-bit integer of :func:`inverted_double`: the greatest value has the
    least integer, NaN the greatest."""
    if isnan(value):
        return _ALL_BITS
    bits = int.from_bytes(_pack_double(value), "big")
    return bits if bits & _SIGN else bits ^ (_ALL_BITS ^ _SIGN)


def double_of_inverted_bits(bits: int) -> float:
    """Decodes an integer from :func:`inverted_double_bits` to the double."""
    if bits == _ALL_BITS:
        return _double(_NAN_BITS)
    return _double(bits if bits & _SIGN else bits ^ (_ALL_BITS ^ _SIGN))


# The bytes of ids from '"' to '}' stay; smaller bytes become '!' and two digits, greater ones '~'
# and two digits, which keeps the order. Then the range from ' ' to '~' is mirrored. No mirrored
# text contains '~', which sorts last, so '~' ends the text.
_MIRROR = {code: 0x9E - code for code in range(0x20, 0x7F)}
_ARMOUR = [
    f"!{byte:02X}" if byte < 0x22 else f"~{byte:02X}" if byte > 0x7D else chr(byte)
    for byte in range(256)
]
_ARMOURED = r"(?s)[!~](..)|(.)"  # compiled at first use, to keep the import cheap


def inverted_id(text: str) -> str:
    """Encodes a text so that the order is reversed: ``a < b`` exactly if ``inverted_id(a) >
    inverted_id(b)``."""
    return "".join([_ARMOUR[byte] for byte in text.encode()]).translate(_MIRROR) + "~"


def parse_inverted_id(text: str) -> str:
    armoured = text[:-1].translate(_MIRROR)
    return bytes(
        int(code, 16) if code else ord(character)
        for code, character in re.findall(_ARMOURED, armoured)
    ).decode()


_ESCAPES = {code: f"${code:02x}" for code in range(ord("$") + 1)}


def escape(text: str) -> str:
    """Returns the text without ``#``, the separator of a key's fields: ``#`` becomes ``$23``, ``$``
    becomes ``$24``.

    ``$`` follows ``#`` in ASCII, so escaped texts sort like the texts. With the separator after
    them they still do, except if one text is a prefix of the other and the other continues with a
    character below ``#`` (controls, space, ``!``, ``"``). Where that matters, use
    :func:`escape_ordered`.
    """
    return text.replace("$", "$24").replace("#", "$23")


def escape_ordered(text: str) -> str:
    """Escapes a field of a key like :func:`escape`, and also all characters below ``#``, so that
    escaped texts followed by ``#``, the separator of fields, always sort like the texts."""
    return text.translate(_ESCAPES)


def unescape(text: str) -> str:
    """Returns the text that :func:`escape` or :func:`escape_ordered` has escaped."""
    first, *escaped = text.split("$")
    return first + "".join([chr(int(part[:2], 16)) + part[2:] for part in escaped])


def _double(bits: int) -> float:
    value: float = _unpack_double(bits.to_bytes(8, "big"))[0]
    return value


def _check_int64(number: int) -> None:
    if not 0 <= number + _INT64_BIAS < _INT64_END:
        raise ValueError(f"{number} is not a 64-bit integer")
