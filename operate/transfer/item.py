"""One thing that is brought over: what the server has of it, what the table has, how it is
written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

Content = Mapping[str, Any]
"""Plain values by name."""


class Item(NamedTuple):
    kind: str
    name: str
    want: Callable[[], Content]
    """As the server has it; raises SourceFailed."""
    have: Callable[[], Content | None]
    """As the table has it; None if it is not there."""
    write: Callable[[Content, Content | None], None]
    """Makes the table's what the server's is; given both as they were read."""
    outline: Callable[[], Content] | None = None
    """What changes on the server whenever the content does, if that is cheaper to read."""
    there: Callable[[], bool] = lambda: True
    """Whether the table has it at all; asked when the outline has not changed."""
    identity: str = ""
    """What it is called in the table, if its name tells more."""

    @property
    def known_as(self) -> str:
        """In the journal."""
        return known_as(self.kind, self.identity or self.name)


def known_as(kind: str, identity: str) -> str:
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
    """What the table has and the server has not."""

    kind: str
    identity: str
    imported: bool
    """Whether an import brought it, so that the server has had it."""

    def __str__(self) -> str:
        why = "deleted on the server" if self.imported else "only in the target"
        return f"{self.kind} {self.identity}: {why}"


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def differences(item: Item, want: Content, have: Content | None) -> list[Difference]:
    if have is None:
        return [Difference(item.kind, item.name, "", None, None)]
    return [
        Difference(item.kind, item.name, field, one, other)
        for field, one, other in _unequal(want, have, "")
    ]


def digest(content: Content) -> str:
    return blake2b(text_of(content).encode(), digest_size=16).hexdigest()


def text_of(value: Any) -> str:
    """Equal for equal values; NaN equals itself here."""
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
