"""Builds and parses keys by patterns such as ``R#<run_id>#TAG#<key>``.

A pattern consists of segments, joined by ``#``. The name and position of a field decide how it is
encoded:

* numbers and doubles as in :mod:`mlcore.db.sortable`, with a fixed length; inverted ids as there;
* ids, and texts that are not the last segment, escaped: they contain no ``#``, so the prefix
  ``…<key>#`` matches this key only; those by which an index is ordered (``run_name``,
  ``trace_name``, ``value``) also sort like the texts;
* a text at the end of a key unchanged, so that it can be queried without knowledge of the escapes.

DynamoDB allows partition keys of 2,048 bytes and sort keys of 1,024. The texts of a pattern share
the remaining room evenly. A longer text is cut and extended with ``~`` and a hash of the whole
text. The result is longer than any uncut text, so the two cannot be confused. Keys only locate
items: the full names are in the items' attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from hashlib import blake2b
from typing import Any, NamedTuple

from mlcore.db import sortable

PARTITION_KEY_BYTES = 2048
SORT_KEY_BYTES = 1024

_HASH_BYTES = 16
_TAIL = 1 + 2 * _HASH_BYTES
_ID_BYTES = 64

UPPER_BOUND = "\U0010ffff"
"""Appended to a prefix, it gives an upper bound of the texts with this prefix."""


def index_keys(index: str | None) -> tuple[str, str]:
    """Returns the names of the partition key and sort key of an index (``LSI1`` … ``GSI5``), or of
    the table for None."""
    if index is None:
        return "PK", "SK"
    if index.startswith("LSI"):
        return "PK", f"lsi{index[3:]}sk"
    return f"gsi{index[3:]}pk", f"gsi{index[3:]}sk"


def prefix_range(prefix: str) -> tuple[str, str]:
    """Returns inclusive bounds of all sort keys that begin with ``prefix``.

    A Query with these bounds is equivalent to one with begins_with(). DynamoDB is equally fast for
    both, but the embedded store of a local server compares every key of the partition for
    begins_with(): 80 ms in an experiment with 3,000 runs.
    """
    room = SORT_KEY_BYTES - len(prefix.encode())
    return prefix, prefix + room // len(UPPER_BOUND.encode()) * UPPER_BOUND


class Key(NamedTuple):
    """The primary key of an item."""

    pk: str
    sk: str


class IndexKey(NamedTuple):
    """The key of an item in a global secondary index."""

    pk: str
    sk: str


def _fitted(room: int, text: str) -> str:
    """Returns the text if it has at most ``room`` bytes; else its beginning, ``~`` and a hash of
    the whole text."""
    if len(text) <= room and text.isascii():
        return text
    whole = text.encode()
    if len(whole) <= room:
        return text
    cut = whole[:room].decode(errors="ignore")
    escape = cut.rfind("$", len(cut) - 2)  # escapes have three characters; do not cut inside one
    if escape >= 0:
        cut = cut[:escape]
    return f"{cut}~{blake2b(whole, digest_size=_HASH_BYTES).hexdigest()}"


def _escaped(room: int, text: str) -> str:
    if len(text) <= room and text.isascii() and text.isalnum():  # as most ids are
        return text
    return _fitted(room, sortable.escape(text))


def _ordered(room: int, text: str) -> str:
    return _fitted(room, sortable.escape_ordered(text))


def _inverted_id(text: str) -> str:
    return sortable.inverted_id(_fitted(_ID_BYTES, text))


def _same(text: str) -> str:
    return text


class _Kind(NamedTuple):
    encode: Callable[[Any], str]
    decode: Callable[[str], Any]
    size: int


_INTEGER = _Kind(sortable.integer, sortable.parse_integer, 20)
_DOUBLE = _Kind(sortable.double, sortable.parse_double, 16)
_INVERTED_DOUBLE = _Kind(sortable.inverted_double, sortable.parse_inverted_double, 16)
_ID = _Kind(partial(_escaped, _ID_BYTES), sortable.unescape, _ID_BYTES + _TAIL)
_INVERTED_ID = _Kind(_inverted_id, sortable.parse_inverted_id, 3 * (_ID_BYTES + _TAIL) + 1)

_FIXED = {
    "step": _INTEGER,
    "ts": _INTEGER,
    "time": _INTEGER,
    "version": _INTEGER,
    "number": _INTEGER,
    "double": _DOUBLE,
    "span": _ID,
    "first": _ID,
    "last": _ID,
    "inv_value": _INVERTED_DOUBLE,
    "inv_run_id": _INVERTED_ID,
    "inv_trace_id": _INVERTED_ID,
    "inv_model_id": _INVERTED_ID,
    "experiment_id": _ID,
    "run_id": _ID,
    "trace_id": _ID,
    "model_id": _ID,
    "dataset_hash": _ID,
    "batch_id": _ID,
    "file_id": _ID,
    "rows_id": _ID,
    "segment_id": _ID,
    "suffix": _ID,
    "stage": _ID,
    "status": _ID,
    "level": _ID,
    "entity_type": _ID,
    "write_id": _ID,
    "incarnation": _ID,
}
"""Fields of bounded size; all other fields are texts."""

_ORDERED = {"run_name", "trace_name", "value"}
"""Text fields whose encoding must keep the exact order, because an index is ordered by them."""

_NEVER_OPEN = _ORDERED.union(_FIXED) - {"inv_run_id", "inv_trace_id", "inv_model_id"}
"""Fields that contain no ``#`` even at the end of a key."""


class KeyTemplate:
    """The template of a partition key or sort key, such as ``EXP#<experiment_id>``, ``E#META`` or
    ``<experiment_name>``. It builds and parses keys."""

    __slots__ = ("_decoders", "_encoders", "_formats", "_open", "_segments", "fields", "text")

    def __init__(self, text: str, limit: int) -> None:
        self.text = text
        self._segments = text.split("#")
        self.fields = tuple([name[1:-1] for name in self._segments if name[0] == "<"])
        fixed = [_FIXED[name].size for name in self.fields if name in _FIXED]
        literals = len(text) - sum([len(name) + 2 for name in self.fields])
        texts = len(self.fields) - len(fixed)
        room = (limit - literals - sum(fixed)) // texts - _TAIL if texts else 0
        self._open = text[-1] == ">" and self.fields[-1] not in _NEVER_OPEN
        self._encoders: list[Callable[[Any], str]] = []
        self._decoders: list[Callable[[str], Any] | None] = []
        self._formats: list[str] = []
        """Format strings with the first 0, 1, … fields; the last one is the whole text."""
        beginning = ""
        for position, segment in enumerate(self._segments):
            separator = "#" if position else ""
            if segment[0] != "<":
                self._decoders.append(None)
                beginning += separator + segment
                continue
            self._formats.append(beginning + separator)
            beginning += separator + "%s"
            name = segment[1:-1]
            if name in _FIXED:
                encode, decode = _FIXED[name].encode, _FIXED[name].decode
            elif name in _ORDERED:
                encode, decode = partial(_ordered, room), sortable.unescape
            elif self._open and position == len(self._segments) - 1:
                encode, decode = partial(_fitted, room), _same
            else:
                encode, decode = partial(_escaped, room), sortable.unescape
            self._encoders.append(encode)
            self._decoders.append(decode)
        self._formats.append(beginning)

    def build(self, *values: Any) -> str:
        if len(values) == 1 == len(self._encoders):  # most keys of a search, made by the hundred
            return self._formats[1] % self._encoders[0](values[0])
        return self._formats[-1] % tuple(
            [encode(value) for encode, value in zip(self._encoders, values, strict=True)]
        )

    def prefix(self, *values: Any) -> str:
        """Returns the prefix shared by all keys of this template whose first fields have these
        values."""
        return self._formats[len(values)] % tuple(
            [encode(value) for encode, value in zip(self._encoders, values, strict=False)]
        )

    def parse(self, text: str) -> dict[str, Any] | None:
        """Returns the fields in a DynamoDB key, as values by field name; None if the key does not
        follow this template. Texts that were shortened in the key stay shortened."""
        parts = text.split("#", len(self._segments) - 1) if self._open else text.split("#")
        if len(parts) != len(self._segments):
            return None
        values = []
        for part, segment, decode in zip(parts, self._segments, self._decoders, strict=True):
            if decode is not None:
                values.append(decode(part))
            elif part != segment:
                return None
        return dict(zip(self.fields, values, strict=True))


_template = cache(KeyTemplate)


def remembering(build: Callable[[str], str]) -> Callable[[str], str]:
    """Returns a function like ``build``, which makes a key's text, that remembers its last result:
    most keys that a request needs are in one partition. Callable from many threads."""
    last = "", build("")

    def build_or_recall(text: str) -> str:
        nonlocal last
        known, built = last
        if text != known:
            built = build(text)
            last = text, built
        return built

    return build_or_recall


class Pattern:
    """The key of one kind of item: its partition key and sort key, in the table or (``index`` is
    not empty) in a secondary index.

    ``name`` is, in the table, also the value of the items' ``type`` attribute. ``writer`` is
    ``api``, ``indexer``, or ``overflow``: the indexer, and the API if the parent item is full.
    """

    __slots__ = ("index", "meaning", "name", "pk", "sk", "writer")

    def __init__(
        self, name: str, pk: str, sk: str, meaning: str, writer: str = "api", index: str = ""
    ) -> None:
        self.name = name
        self.index = index
        self.meaning = meaning
        self.writer = writer
        self.pk = _template(pk, PARTITION_KEY_BYTES)
        self.sk = _template(sk, SORT_KEY_BYTES)

    def __repr__(self) -> str:
        return f"Pattern({self.name}: {self.pk.text} / {self.sk.text})"

    def parse(self, pk: str, sk: str) -> dict[str, Any] | None:
        """Returns the fields of the partition key and the sort key by name; None if one does not
        match."""
        halves, right = self.pk.parse(pk), self.sk.parse(sk)
        return None if halves is None or right is None else {**halves, **right}


class ParsedKey(NamedTuple):
    pattern: Pattern
    fields: dict[str, Any]
    """By the names in the pattern: int for numbers, float for doubles, else str."""
