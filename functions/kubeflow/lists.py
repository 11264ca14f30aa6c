"""Lists: what a request filters and orders by, and its page of what there is."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

from kubeflow.answers import Call
from mlcore.db import deadline
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.errors import RequestLimitExceeded, TemporarilyUnavailable
from mlcore.kubeflow import filters, pages
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.pages import Order
from mlcore.repos.kubeflow import listing
from mlcore.repos.kubeflow.listing import Place

SEEN_TOGETHER: Final = 300
"""Entities of MLflow's that get their numbers at a time, where a page needs all of them: as many as
the transactions that run side by side take."""
_RESERVED: Final = 5.0
"""Seconds of a request in which no further numbering is begun: the last ones may need as long, and
the page has to be read."""

Source = Callable[[int], Iterable[Entity]]
"""The entities whose ids are greater than a number, in the order of their ids."""


def page(call: Call, kind: str, entities: Iterable[Entity], order: Order | None = None) -> Any:
    """A page of the entities that the request's filter lets through, whatever order they are in."""
    order = order or pages.order_of(call.asked.arguments)
    chosen = filtered(call, kind, entities)
    return pages.page(order.sorted(chosen), order, call.api)


class Listed(NamedTuple):
    """Where a list of a workspace finds its entities. What it gives is what the caller may see."""

    kind: str
    """What global indexes call the list."""
    at: Callable[[Sequence[Place]], list[Entity]]
    """The entities at places, in order; without those that are gone."""
    unseen: str = ""
    """The kind of what MLflow makes and no list has shown yet."""
    see: Callable[[Sequence[Key]], list[Entity]] = lambda _: []
    """Gives numbers to what of that is at places, so that it has the last ones, and answers the
    entities."""
    named: Callable[[str], list[Entity]] | None = None
    """Those of a name, where a name finds them."""
    external: Callable[[str], list[Entity]] | None = None
    """Those of an external id."""


def page_of(call: Call, kind: str, listed: Listed) -> Any:
    """A page in any order, of which no more is read than it needs: a Query of the order's index,
    and what the entities take; nothing of it where the filter names one entity."""
    arguments = call.asked.arguments
    order = pages.order_of(arguments)
    pinned = filters.pinned(arguments.get("filterQuery", ""), kind)
    for name, find in (("name", listed.named), ("externalId", listed.external)):
        if find is not None and name in pinned:
            return page(call, kind, find(pinned[name]), order)
    positions: dict[int, tuple[int, int]] = {}
    in_turn = order.is_by_id and not order.descending
    placed = (_one_after_the_other if in_turn else _merged)(call, order, listed)

    def entities() -> Iterator[Entity]:
        for position, entity in placed:
            positions[entity.id] = position
            yield entity

    return pages.page(filtered(call, kind, entities()), order, call.api, positions)


Placed = tuple[tuple[int, int], Entity]
"""An entity behind its position in an order."""


def _one_after_the_other(call: Call, order: Order, listed: Listed) -> Iterator[Placed]:
    """What has a number; then what gets one now, as far as the page goes."""
    seen = set()
    for place in _read(call, order, listed, listing.places(call.workspace, listed.kind, order)):
        seen.add(place[1].id)
        yield place
    for entities in _see(
        listed, listing.unseen(call.workspace, listed.unseen), listing.READ_TOGETHER
    ):
        for entity in sorted(entities, key=order.position):
            if entity.id not in seen and order.comes(entity):
                yield order.position(entity), entity


def _merged(call: Call, order: Order, listed: Listed) -> Iterator[Placed]:
    """All of both, in order: an order by time has places for what has no number yet, too. The
    indexes of both are asked side by side."""
    places = listing.places(call.workspace, listed.kind, order)
    first: list[Place] = []
    unseen: list[Key] = []
    calls: list[Callable[[], None]] = [
        lambda: first.extend(islice(places, 1)),
        lambda: unseen.extend(listing.unseen(call.workspace, listed.unseen)),
    ]
    table.parallel(calls)
    late = {
        entity.id: (order.position(entity), entity)
        for entities in _see(listed, iter(unseen), SEEN_TOGETHER)
        for entity in entities
        if order.comes(entity)
    }
    found = _read(call, order, listed, chain(first, places))
    yield from heapq.merge(
        sorted(late.values(), key=itemgetter(0), reverse=order.descending),
        (place for place in found if place[1].id not in late),
        key=itemgetter(0),
        reverse=order.descending,
    )


def _read(call: Call, order: Order, listed: Listed, places: Iterator[Place]) -> Iterator[Placed]:
    """The entities at places, as many at a time as a page may need."""
    together = listing.READ_TOGETHER
    if order.size and not call.asked.arguments.get("filterQuery"):
        together = min(together, order.size + 1)
    while chunk := list(islice(places, together)):
        position_of = {place.number: place.position for place in chunk}
        for entity in listed.at(chunk):
            yield position_of[entity.id], entity


def _see(listed: Listed, unseen: Iterator[Key], together: int) -> Iterator[list[Entity]]:
    """Gives numbers to what no list has shown yet, some entities at a time, as long as the request
    has time for it. What has its number keeps it, so each repetition of a request has less to do.

    Raises:
        RequestLimitExceeded: there are more than this request has time for.
    """
    begun = False
    while chunk := list(dict.fromkeys(islice(unseen, together))):
        if begun and _seconds_left() < _RESERVED:
            raise _too_many()
        try:
            found = listed.see(chunk)
        except TemporarilyUnavailable as error:
            if _seconds_left() < _RESERVED:
                raise _too_many() from error
            raise
        begun = True
        yield found


def _seconds_left() -> float:
    return deadline.current() - time.monotonic()


def _too_many() -> RequestLimitExceeded:
    return RequestLimitExceeded(
        "This list has many entities that were made through MLflow and are numbered now, in more "
        "than one request. Repeat the request: it goes on from here."
    )


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
