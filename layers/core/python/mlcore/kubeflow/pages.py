"""Pages of a list of Kubeflow's API: the requested order and size, and page tokens. The same page
always has the same token."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mlcore.kubeflow.entity import Entity, response
from mlcore.kubeflow.errors import invalid
from mlcore.wire.integer_text import parse_integer

_ORDERS: Final[dict[str, Callable[[Entity], int]]] = {
    "ID": lambda entity: entity.id,
    "CREATE_TIME": lambda entity: entity.create_time,
    "LAST_UPDATE_TIME": lambda entity: entity.update_time,
}
_MAX_TOKEN: Final = 1024
_END: Final = 2**63 - 1
"""Greater than all ids: a page begins at the id after the last one."""
_INT64: Final = range(-(2**63), 2**63)
"""The times that clients may give runs and points, including both ends."""
RESPONSE_BYTES: Final = 3_500_000
"""Approximate JSON size at which a page ends: a Lambda response is limited to 6 MB. The page token
then continues."""


class PageOrder(NamedTuple):
    """The order that a request for a list of Kubeflow entities wants, and which page of it:
    ``size`` entities after the position ``after``."""

    by: str
    descending: bool
    after: tuple[int, int] | None
    """``(value, id)`` of the last entity of the previous page; None for the first page."""
    size: int
    """Entities per page; 0: all."""

    @property
    def is_by_id(self) -> bool:
        return self.by == "ID"

    def position(self, entity: Entity) -> tuple[int, int]:
        return _ORDERS[self.by](entity), entity.id

    def is_after_page(self, entity: Entity) -> bool:
        """Whether a Kubeflow entity comes after the previous page of a list, in the list's order;
        true for the first page."""
        if self.after is None:
            return True
        position = self.position(entity)
        return position < self.after if self.descending else position > self.after

    def sorted(self, entities: Iterable[Entity]) -> list[Entity]:
        remaining = [entity for entity in entities if self.is_after_page(entity)]
        return sorted(remaining, key=self.position, reverse=self.descending)


def order_of(arguments: Mapping[str, str]) -> PageOrder:
    """Returns the order and page that a list request of Kubeflow's API asks for in its query
    string. The order is by id without ``orderBy`` or with an unknown one. Raises
    InvalidParameterValue for an invalid page size or page token."""
    by = arguments.get("orderBy", "").upper()
    return PageOrder(
        by if by in _ORDERS else "ID",
        arguments.get("sortOrder", "").upper() == "DESC",
        _position(arguments.get("nextPageToken", "")),
        _size(arguments.get("pageSize", "")),
    )


def _size(text: str) -> int:
    if not text:
        return 0
    size = parse_integer(text, digits=10)
    if size is None or size >= 2**31:
        raise invalid(f"strconv.ParseInt: parsing {text[:50]!r}: invalid pageSize")
    return max(0, size)


def _position(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    if len(text) > _MAX_TOKEN:
        raise invalid("invalid nextPageToken: too long")
    try:
        last, _, value = base64.b64decode(text, validate=True).decode("ascii").partition(":")
    except (binascii.Error, ValueError):
        raise invalid("invalid nextPageToken: not Base64") from None
    if not (_is_int64(last) and _is_int64(value) and abs(int(last)) < _END):
        raise invalid("invalid nextPageToken: invalid format")
    return int(value), int(last)


def _is_int64(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) <= 20 and int(text) in _INT64


def page(
    ordered: Iterable[Entity],
    order: PageOrder,
    api: str,
    positions: Mapping[int, tuple[int, int]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Returns the JSON of one page of a list of Kubeflow's API: the first ``order.size`` entities
    of ``ordered``, or fewer if they exceed RESPONSE_BYTES, and the token of the next page.

    Args:
        positions: by entity id, the ``(value, id)`` under which the index still lists an entity
            that has changed since. The page token contains this position.
    """
    entities = iter(ordered)
    items: list[dict[str, Any]] = []
    size_bytes = 0
    last: Entity | None = None
    more = False
    for entity in entities if not order.size else islice(entities, order.size + 1):
        if items and (len(items) == order.size or size_bytes > RESPONSE_BYTES):
            more = True
            break
        data = response(entity, api)
        size_bytes += len(json.dumps(data))
        items.append(data)
        last = entity
    return {
        "items": items,
        "nextPageToken": _token(last, order, positions) if more and last is not None else "",
        "pageSize": order.size,
        "size": len(items),
    }


def _token(entity: Entity, order: PageOrder, positions: Mapping[int, tuple[int, int]]) -> str:
    value, number = positions.get(entity.id) or order.position(entity)
    return base64.b64encode(f"{number}:{value}".encode()).decode()
