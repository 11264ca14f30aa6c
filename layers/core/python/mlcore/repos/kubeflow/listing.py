"""Reads Kubeflow's lists from the global indexes.

Items that have a number (Kubeflow's integer id) are ordered by number, time of creation or time of
the last update. Items that MLflow created have no number until a Kubeflow list shows them first;
they have a list of their own. The indexes may lag, so callers read the items themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.keys import Key
from mlcore.db.keys.pattern import UPPER_BOUND
from mlcore.db.table import key_of_item, table
from mlcore.kubeflow.pages import PageOrder
from mlcore.models.base import KEY
from mlcore.models.kubeflow import NumberedItem

READ_TOGETHER: Final = 100
"""How many items one BatchGetItem reads at most."""
_MOST_KEYS: Final = 1_000
"""Index entries that one Query reads."""


class ListEntry(NamedTuple):
    """An entry of the global index from which a Kubeflow list is read: the key of the listed item,
    and its position in the order of the list as (number or time, number)."""

    key: Key
    position: tuple[int, int]

    @property
    def number(self) -> int:
        return self.position[1]


def entries(workspace: str, kind: str, order: PageOrder) -> Iterator[ListEntry]:
    """Yields index entries of items that have a Kubeflow number, from the position where the page
    starts. Each request reads as many entries as a page needs.

    Args:
        kind: the kind of the entities, as :func:`mlcore.repos.kubeflow.entities.list_kind` names
            it.
        order: the order of the list, the page's size and the position after which it starts.
    """
    index, pk, sort_key = _INDEXES[order.by]
    limit = min(_MOST_KEYS, max(READ_TOGETHER, order.size + 1)) if order.size else _MOST_KEYS
    between = None
    if order.after is not None:
        value, number = order.after
        edge = sort_key(value, max(0, number - 1) if order.descending else number + 1)
        between = ("-", edge) if order.descending else (edge, UPPER_BOUND)
    attributes: list[ItemAttribute[Any]] = [*KEY, getattr(NumberedItem, f"{index.lower()}sk")]
    for item in table.query_all(
        pk(workspace, kind),
        index=index,
        between=between,
        descending=order.descending,
        limit=limit,
        attributes=attributes,
    ):
        entry = NumberedItem.of(item)
        text: str = getattr(entry, f"{index.lower()}sk") or ""
        position = (int(text), int(text)) if order.is_by_id else keys.time_and_number(text)
        yield ListEntry(key_of_item(item), position)


def unnumbered_keys(workspace: str, kind: str) -> Iterator[Key]:
    """Yields the keys of items that have no Kubeflow number yet, from an index that may lag. Yields
    nothing for a kind that MLflow does not create."""
    if not kind:
        return iter(())
    pk = keys.gsi2_unseen(workspace, kind, "0").pk
    return map(key_of_item, table.query_all(pk, index="GSI2", limit=_MOST_KEYS, attributes=KEY))


_INDEXES: Final[dict[str, tuple[str, Any, Any]]] = {
    "ID": (
        "GSI2",
        lambda workspace, kind: keys.gsi2_number(workspace, kind, 0).pk,
        lambda _value, number: keys.gsi2_number("", "", number).sk,
    ),
    "CREATE_TIME": (
        "GSI1",
        lambda workspace, kind: keys.gsi1_created(workspace, kind, 0, 0).pk,
        keys.gsi4_updated_sk,
    ),
    "LAST_UPDATE_TIME": (
        "GSI4",
        lambda workspace, kind: keys.gsi4_updated(workspace, kind, 0, 0).pk,
        keys.gsi4_updated_sk,
    ),
}
"""By order: the index, its partition key, and the sort key of a position."""
