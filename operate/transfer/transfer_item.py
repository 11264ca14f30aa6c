"""An object to transfer: functions to read it from the source server or the table, and write it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

Content = Mapping[str, Any]
"""The values to compare and write, by name."""


class TransferItem(NamedTuple):
    kind: str
    name: str
    want: Callable[[], Content]
    """Reads the content from the server; may raise SourceFailed."""
    have: Callable[[], Content | None]
    """Reads the content from the table; None if it is missing."""
    write: Callable[[Content, Content | None], None]
    """Writes the server's content to the table; takes both contents."""
    outline: Callable[[], Content] | None = None
    """Reads an outline from the server, which is cheaper than the content. An import takes the
    content as unchanged while the outline is."""
    exists: Callable[[], bool] = lambda: True
    """Whether the table has the item; called if the outline is unchanged."""
    identity: str = ""
    """The item's id in the table, if ``name`` contains more than the id."""

    @property
    def known_as(self) -> str:
        """The key under which the import's journal records this item."""
        return journal_key(self.kind, self.identity or self.name)


def journal_key(kind: str, identity: str) -> str:
    return f"{kind} {identity}"


class Difference(NamedTuple):
    kind: str
    name: str
    field: str
    source: Any
    target: Any

    def __str__(self) -> str:
        if self.field == "":
            return f"{self.kind} {self.name}: not in the target"
        return (
            f"{self.kind} {self.name}: {self.field}: {_short(self.source)} ≠ {_short(self.target)}"
        )


class Surplus(NamedTuple):
    """An entity that is in this product's table but not on the source server."""

    kind: str
    identity: str
    imported: bool
    """Whether an import has transferred it. If so, it was deleted on the source server since
    then."""

    def __str__(self) -> str:
        why = "deleted on the server" if self.imported else "only in the target"
        return f"{self.kind} {self.identity}: {why}"


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def differences(item: TransferItem, want: Content, have: Content | None) -> list[Difference]:
    if have is None:
        return [Difference(item.kind, item.name, "", None, None)]
    return [
        Difference(item.kind, item.name, field, wanted_value, other)
        for field, wanted_value, other in _unequal(want, have, "")
    ]


def digest(content: Content) -> str:
    return blake2b(text_of(content).encode(), digest_size=16).hexdigest()


def text_of(value: Any) -> str:
    """Returns a value as JSON with sorted keys, to compare it with others. NaN equals NaN."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=list)


def _unequal(want: Any, have: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(want, Mapping) and isinstance(have, Mapping):
        for key in sorted({*want, *have}, key=str):
            below = f"{path}.{key}" if path else str(key)
            yield from _unequal(want.get(key, ABSENT), have.get(key, ABSENT), below)
    elif ABSENT in (want, have) or text_of(want) != text_of(have):
        yield path, want, have


def _short(value: Any) -> str:
    text = repr(value) if value is ABSENT else text_of(value)
    return text if len(text) <= 120 else f"{text[:120]}…"
