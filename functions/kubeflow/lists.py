"""Lists: what a request filters and orders by, and its page of what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubeflow.answers import Call
from mlcore.kubeflow import filters, pages
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.pages import Order

Source = Callable[[int], Iterable[Entity]]
"""The entities whose ids are greater than a number, in the order of their ids."""


def page(call: Call, kind: str, entities: Iterable[Entity], order: Order | None = None) -> Any:
    """A page of the entities that the request's filter lets through, whatever order they are in."""
    order = order or pages.order_of(call.asked.arguments)
    chosen = filtered(call, kind, entities)
    return pages.page(order.sorted(chosen), order, call.api)


def page_by_number(call: Call, kind: str, source: Source) -> Any:
    """As :func:`page`, of entities that come by their ids: no more of them are read than needed."""
    order = pages.order_of(call.asked.arguments)
    if not order.is_by_id or order.descending:
        return page(call, kind, source(0), order)
    above = order.after[1] if order.after else 0
    chosen = filtered(call, kind, source(above))
    return pages.page((each for each in chosen if order.comes(each)), order, call.api)


def filtered(call: Call, kind: str, entities: Iterable[Entity]) -> Iterator[Entity]:
    """Those that meet the request's filterQuery. Raises InvalidParameterValue."""
    test = filters.test_of(call.asked.arguments.get("filterQuery", ""), kind)
    return (entity for entity in entities if test(entity))
