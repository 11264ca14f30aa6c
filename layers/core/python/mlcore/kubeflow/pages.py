"""Pages of a list: what a request asks for, the order, and tokens that are the same text whenever
the same page is asked for."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mlcore.kubeflow.entity import Entity, response
from mlcore.kubeflow.errors import bad

_ORDERS: Final[dict[str, Callable[[Entity], int]]] = {
    "ID": lambda entity: entity.id,
    "CREATE_TIME": lambda entity: entity.create_time,
    "LAST_UPDATE_TIME": lambda entity: entity.update_time,
}
_MAX_TOKEN: Final = 1024
RESPONSE_BYTES: Final = 3_500_000
"""About as much JSON as a page may have: a Lambda response ends at 6 MB. A token leads on."""


class Order(NamedTuple):
    """``(value, id)`` of the entity that a page comes after; None for the first page."""

    by: str
    descending: bool
    after: tuple[int, int] | None
    size: int
    """0: all."""

    @property
    def is_by_id(self) -> bool:
        return self.by == "ID"

    def position(self, entity: Entity) -> tuple[int, int]:
        return _ORDERS[self.by](entity), entity.id

    def comes(self, entity: Entity) -> bool:
        """Whether an entity is behind the last page."""
        if self.after is None:
            return True
        position = self.position(entity)
        return position < self.after if self.descending else position > self.after

    def sorted(self, entities: Iterable[Entity]) -> list[Entity]:
        found = [entity for entity in entities if self.comes(entity)]
        return sorted(found, key=self.position, reverse=self.descending)


def order_of(arguments: Mapping[str, str]) -> Order:
    """Raises InvalidParameterValue."""
    by = arguments.get("orderBy", "").upper()
    return Order(
        by if by in _ORDERS else "ID",
        arguments.get("sortOrder", "").upper() == "DESC",
        _position(arguments.get("nextPageToken", "")),
        _size(arguments.get("pageSize", "")),
    )


def _size(text: str) -> int:
    if not text:
        return 0
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 10 or int(text) >= 2**31:
        raise bad(f"strconv.ParseInt: parsing {text[:50]!r}: invalid pageSize")
    return max(0, int(text))


def _position(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    if len(text) > _MAX_TOKEN:
        raise bad("invalid nextPageToken: too long")
    try:
        last, _, value = base64.b64decode(text, validate=True).decode("ascii").partition(":")
    except (binascii.Error, ValueError):
        raise bad("invalid nextPageToken: no Base64") from None
    if not (_is_number(last) and _is_number(value)):
        raise bad("invalid nextPageToken: invalid format")
    return int(value), int(last)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) <= 20


def page(
    ordered: Iterable[Entity],
    order: Order,
    api: str,
    positions: Mapping[int, tuple[int, int]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The JSON of a page: the first of the entities, which come in order.

    Args:
        positions: by id, where an index has an entity that was updated since.
    """
    entities = iter(ordered)
    items: list[dict[str, Any]] = []
    weight = 0
    last: Entity | None = None
    more = False
    for entity in entities if not order.size else islice(entities, order.size + 1):
        if items and (len(items) == order.size or weight > RESPONSE_BYTES):
            more = True
            break
        shown = response(entity, api)
        weight += len(json.dumps(shown))
        items.append(shown)
        last = entity
    return {
        "items": items,
        "nextPageToken": _token(last, order, positions) if more and last is not None else "",
        "pageSize": order.size,
        "size": len(items),
    }


def _token(entity: Entity, order: Order, positions: Mapping[int, tuple[int, int]]) -> str:
    value, number = positions.get(entity.id) or order.position(entity)
    return base64.b64encode(f"{number}:{value}".encode()).decode()
