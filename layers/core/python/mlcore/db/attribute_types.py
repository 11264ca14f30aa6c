"""The attribute types with which models (:mod:`mlcore.models`) declare their items, based on
PynamoDB's. The Python type of an attribute that an item may lack (``null=True``) includes None.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf, isnan
from typing import Any, Final, Literal, TypeVar, overload

from pynamodb.constants import BINARY, BOOLEAN, MAP, NUMBER, STRING, STRING_SET

from mlcore.db.pynamodb_classes import Attribute

V = TypeVar("V")


class ItemAttribute(Attribute[V]):
    """Base of all attributes of items; ``V`` is the Python type of its values, with None if
    ``null=True``."""

    def raw(self, value: Any) -> dict[str, Any]:
        """Returns a value as DynamoDB JSON, such as ``{"N": "1"}``."""
        return {self.attr_type: self.serialize(value)}


class TextAttribute(ItemAttribute[V]):
    """An attribute of an item that holds a text (DynamoDB's type S)."""

    attr_type = STRING

    @overload
    def __init__(
        self: TextAttribute[str],
        *,
        hash_key: bool = False,
        range_key: bool = False,
        null: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(self: TextAttribute[str | None], *, null: Literal[True]) -> None: ...
    def __init__(
        self, *, hash_key: bool = False, range_key: bool = False, null: bool = False
    ) -> None:
        super().__init__(hash_key=hash_key, range_key=range_key, null=null)


class FlagAttribute(ItemAttribute[V]):
    """A boolean attribute of an item in the table."""

    attr_type = BOOLEAN

    @overload
    def __init__(self: FlagAttribute[bool], *, null: Literal[False] = False) -> None: ...
    @overload
    def __init__(self: FlagAttribute[bool | None], *, null: Literal[True]) -> None: ...
    def __init__(self, *, null: bool = False) -> None:
        super().__init__(null=null)


class IntAttribute(ItemAttribute[V]):
    """An attribute that holds an integer of at most 38 digits. (PynamoDB's ``NumberAttribute``
    holds floats.)"""

    attr_type = NUMBER

    @overload
    def __init__(self: IntAttribute[int], *, null: Literal[False] = False) -> None: ...
    @overload
    def __init__(self: IntAttribute[int | None], *, null: Literal[True]) -> None: ...
    def __init__(self, *, null: bool = False) -> None:
        super().__init__(null=null)

    def serialize(self, value: int) -> str:
        return str(value)

    def deserialize(self, value: str) -> int:
        return int(value)


class DoubleAttribute(ItemAttribute[float]):
    """An attribute that holds a double, stored as text because DynamoDB's numbers have no NaN, no
    infinity and no 1e300."""

    attr_type = STRING

    def serialize(self, value: float) -> str:
        if isnan(value):
            return "NaN"
        if value in {inf, -inf}:
            return "Infinity" if value > 0 else "-Infinity"
        return repr(float(value))

    def deserialize(self, value: str) -> float:
        return float(value)


class TextMapAttribute(ItemAttribute[V]):
    """A map from text to text, stored in one of two forms.

    Either as a DynamoDB *map*, whose entries an expression can name, or as *one text* like a URL
    query, ``lr=0.01&opt=adam``, which is faster to read. For :meth:`of` and :meth:`reader`, a
    missing attribute is an empty map; a view returns None for it if ``null=True``.
    """

    attr_type = MAP

    @overload
    def __init__(
        self: TextMapAttribute[Mapping[str, str]], *, null: Literal[False] = False
    ) -> None: ...
    @overload
    def __init__(
        self: TextMapAttribute[Mapping[str, str] | None], *, null: Literal[True]
    ) -> None: ...
    def __init__(self, *, null: bool = False) -> None:
        super().__init__(null=null)

    def of(self, item: Mapping[str, Any]) -> dict[str, str]:
        """Returns this attribute's map in a raw item; an empty one if the item lacks the
        attribute."""
        return texts_in(item.get(self.attr_name, _EMPTY))

    def reader(self, item: Mapping[str, Any]) -> Callable[[str], str | None]:
        """Returns a function that looks up one key in this attribute of a raw item. The function
        returns the text, or None for an unknown key."""
        value = item.get(self.attr_name, _EMPTY)
        if STRING in value:
            return partial(_text_at, "&" + value[STRING])
        entries: dict[str, Any] = value[MAP]

        def read(key: str) -> str | None:
            text = entries.get(key)
            return None if text is None else text[STRING]

        return read

    def is_text(self, item: Mapping[str, Any]) -> bool:
        """Returns whether the raw item stores this map as one text or not at all, so that an
        expression cannot name the map's entries."""
        return MAP not in item.get(self.attr_name, ())

    def text(self, value: Mapping[str, str]) -> str:
        """Returns the map encoded as one text, such as ``lr=0.01&opt=adam``."""
        return _as_text(value)

    def like(self, item: Mapping[str, Any], value: Mapping[str, str]) -> dict[str, Any]:
        """Returns ``value`` as DynamoDB JSON, in the form (DynamoDB map or one text) in which the
        raw item stores this attribute; one text if the item lacks it."""
        return {STRING: _as_text(value)} if self.is_text(item) else self.raw(value)

    def serialize(self, value: Mapping[str, str]) -> dict[str, Any]:
        return {key: {STRING: text} for key, text in value.items()}

    def deserialize(self, value: dict[str, Any]) -> dict[str, str]:
        return {key: text[STRING] for key, text in value.items()}

    def get_value(self, value: dict[str, Any]) -> Any:
        """Returns the value that PynamoDB passes to :meth:`deserialize`, from a map that is stored
        as a DynamoDB map or as one text."""
        return self.serialize(texts_in(value)) if STRING in value else super().get_value(value)


_EMPTY: Final[Mapping[str, Any]] = {MAP: {}}


def texts_in(value: Mapping[str, Any]) -> dict[str, str]:
    """Returns the map in a stored value (DynamoDB JSON) of a :class:`TextMapAttribute`, which is
    stored as a DynamoDB map or as one text."""
    if STRING in value:
        return _texts_of(value[STRING])
    return {key: text[STRING] for key, text in value[MAP].items()}


def _as_text(texts: Mapping[str, str]) -> str:
    """Encodes a map as one text: ``key=value`` pairs joined by ``&``. ``%`` and ``&``, and ``=``
    in keys, are percent-encoded. An empty map gives an empty text.

    JSON would need four quotation marks for each entry, which the request's JSON would have to
    escape.
    """
    plain = "&".join([f"{key}={text}" for key, text in texts.items()])
    if plain.count("&") == len(texts) - 1 and plain.count("=") == len(texts) and "%" not in plain:
        return plain
    return "&".join(
        [f"{key.translate(_IN_KEY)}={text.translate(_IN_VALUE)}" for key, text in texts.items()]
    )


def _texts_of(text: str) -> dict[str, str]:
    if not text:
        return {}
    entries = dict([entry.split("=", 1) for entry in text.split("&")])
    if "%" not in text:
        return entries
    return {_plain(key): _plain(value) for key, value in entries.items()}


def _text_at(text: str, key: str) -> str | None:
    """Returns the value of a key in a map; None if the map lacks the key.

    Args:
        text: ``&`` and the map encoded by :func:`_as_text`, such as ``&lr=0.01&opt=adam``.
    """
    if "%" in key or "&" in key or "=" in key:
        key = key.translate(_IN_KEY)
    begin = text.find(f"&{key}=")
    if begin < 0:
        return None
    begin += len(key) + 2
    end = text.find("&", begin)
    part = text[begin:] if end < 0 else text[begin:end]
    return _plain(part) if "%" in part else part


_IN_VALUE: Final = {ord("%"): "%25", ord("&"): "%26"}
_IN_KEY: Final = {**_IN_VALUE, ord("="): "%3D"}


def _plain(text: str) -> str:
    return text.replace("%3D", "=").replace("%26", "&").replace("%25", "%")


class FlagMapAttribute(ItemAttribute[V]):
    """An attribute that maps texts to true or false."""

    attr_type = MAP

    @overload
    def __init__(
        self: FlagMapAttribute[Mapping[str, bool]], *, null: Literal[False] = False
    ) -> None: ...
    @overload
    def __init__(
        self: FlagMapAttribute[Mapping[str, bool] | None], *, null: Literal[True]
    ) -> None: ...
    def __init__(self, *, null: bool = False) -> None:
        super().__init__(null=null)

    def serialize(self, value: Mapping[str, bool]) -> dict[str, Any]:
        return {key: {BOOLEAN: flag} for key, flag in value.items()}

    def deserialize(self, value: dict[str, Any]) -> dict[str, bool]:
        return {key: flag[BOOLEAN] for key, flag in value.items()}


class TextSetAttribute(ItemAttribute[frozenset[str] | None]):
    """An attribute that holds a set of texts; None if the item lacks it. DynamoDB stores no empty
    set: an item from whose set the last text was removed lacks the attribute."""

    attr_type = STRING_SET

    def __init__(self) -> None:
        super().__init__(null=True)

    def serialize(self, value: Iterable[str]) -> list[str]:
        return sorted(value)

    def deserialize(self, value: list[str]) -> frozenset[str]:
        return frozenset(value)


class BytesAttribute(ItemAttribute[V]):
    """An attribute that holds bytes. Items that are sent to DynamoDB hold bytes; items from its
    responses hold Base64 text."""

    attr_type = BINARY

    @overload
    def __init__(self: BytesAttribute[bytes], *, null: Literal[False] = False) -> None: ...
    @overload
    def __init__(self: BytesAttribute[bytes | None], *, null: Literal[True]) -> None: ...
    def __init__(self, *, null: bool = False) -> None:
        super().__init__(null=null)

    def serialize(self, value: bytes) -> bytes:
        return value

    def deserialize(self, value: bytes | str) -> bytes:
        return base64.b64decode(value) if isinstance(value, str) else bytes(value)


def text_of(item: Mapping[str, Any], attribute: str) -> str | None:
    """Returns a text attribute of a raw item; None if the item lacks it."""
    return item[attribute]["S"] if attribute in item else None
