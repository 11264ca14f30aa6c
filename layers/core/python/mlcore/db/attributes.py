"""The attribute types of models, based on PynamoDB's. Their Python types express whether an item
may lack the attribute (``null=True``)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import partial
from math import inf, isnan
from typing import Any, Final, Literal, TypeVar, overload

from pynamodb.constants import BINARY, BOOLEAN, MAP, NUMBER, STRING

from mlcore.db.declarations import Attribute

V = TypeVar("V")


class ItemAttribute(Attribute[V]):
    """An attribute of an item; ``V`` includes None if ``null=True``."""

    def raw(self, value: Any) -> dict[str, Any]:
        """Returns a value in DynamoDB's JSON, such as ``{"N": "1"}``."""
        return {self.attr_type: self.serialize(value)}


class TextAttribute(ItemAttribute[V]):
    """An attribute that holds a text."""

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
    """An attribute that is true or false."""

    attr_type = BOOLEAN

    @overload
    def __init__(self: FlagAttribute[bool], *, null: Literal[False] = False) -> None: ...
    @overload
    def __init__(self: FlagAttribute[bool | None], *, null: Literal[True]) -> None: ...
    def __init__(self, *, null: bool = False) -> None:
        super().__init__(null=null)


class IntAttribute(ItemAttribute[V]):
    """An integer of at most 38 digits. (PynamoDB's ``NumberAttribute`` is one of floats.)"""

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
    """A double as text, because DynamoDB's numbers have no NaN, no infinity and no 1e300."""

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
    query, ``lr=0.01&opt=adam``, which is faster to read. A missing attribute is an empty map.
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
        """Returns the map in a raw item."""
        return texts_in(item.get(self.attr_name, _EMPTY))

    def reader(self, item: Mapping[str, Any]) -> Callable[[str], str | None]:
        """Returns a function from a key to its text in the raw item; None for an unknown key."""
        value = item.get(self.attr_name, _EMPTY)
        if STRING in value:
            return partial(_text_at, "&" + value[STRING])
        entries: dict[str, Any] = value[MAP]

        def read(key: str) -> str | None:
            text = entries.get(key)
            return None if text is None else text[STRING]

        return read

    def is_text(self, item: Mapping[str, Any]) -> bool:
        """Whether the raw item has the form of one text (or no attribute), so that an expression
        cannot name its entries."""
        return MAP not in item.get(self.attr_name, ())

    def text(self, value: Mapping[str, str]) -> str:
        """Returns the map encoded as one text."""
        return _as_text(value)

    def like(self, item: Mapping[str, Any], value: Mapping[str, str]) -> dict[str, Any]:
        """Returns the attribute value for ``value``, in the form that the raw item uses."""
        return {STRING: _as_text(value)} if self.is_text(item) else self.raw(value)

    def serialize(self, value: Mapping[str, str]) -> dict[str, Any]:
        return {key: {STRING: text} for key, text in value.items()}

    def deserialize(self, value: dict[str, Any]) -> dict[str, str]:
        return {key: text[STRING] for key, text in value.items()}

    def get_value(self, value: dict[str, Any]) -> Any:
        """Returns the value that PynamoDB passes to :meth:`deserialize`; accepts both forms."""
        return self.serialize(texts_in(value)) if STRING in value else super().get_value(value)


_EMPTY: Final[Mapping[str, Any]] = {MAP: {}}


def texts_in(value: Mapping[str, Any]) -> dict[str, str]:
    """Returns the map in an attribute value (DynamoDB JSON) of a :class:`TextMapAttribute`, either
    form."""
    if STRING in value:
        return _texts_of(value[STRING])
    return {key: text[STRING] for key, text in value[MAP].items()}


def _as_text(texts: Mapping[str, str]) -> str:
    """``key=value`` pairs joined by ``&``, with ``%``, ``&`` and ``=`` percent-encoded.

    An empty map gives an empty text. JSON would need four quotation marks for each entry, which the
    request's JSON would have to escape.
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
    """Returns the text of a key in a map that is encoded as one text behind ``&``; None without
    it."""
    if "%" in key or "&" in key or "=" in key:
        key = key.translate(_IN_KEY)
    begin = text.find(f"&{key}=")
    if begin < 0:
        return None
    begin += len(key) + 2
    end = text.find("&", begin)
    found = text[begin:] if end < 0 else text[begin:end]
    return _plain(found) if "%" in found else found


_IN_VALUE: Final = {ord("%"): "%25", ord("&"): "%26"}
_IN_KEY: Final = {**_IN_VALUE, ord("="): "%3D"}


def _plain(text: str) -> str:
    return text.replace("%3D", "=").replace("%26", "&").replace("%25", "%")


class FlagMapAttribute(ItemAttribute[V]):
    """A map from any text to true or false."""

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


class BytesAttribute(ItemAttribute[V]):
    """Bytes. Requests take them as bytes; responses hold them as Base64 text."""

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
