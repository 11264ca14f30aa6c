"""Filters, orders and pages the lists of Kubeflow's API.

The entities come from an iterable that is read whole (:func:`page`), from one in the order of their
ids (:func:`page_by_number`), or from the table's global indexes (:func:`page_from_indexes`). Of the
index in the page's order, only the entries that the page needs are read.

The number of an entity is its id in Kubeflow's API. An entity that was made through MLflow gets its
number when a request of Kubeflow's API first needs it, for an order or a filter, for example.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from kubeflow.calls import KubeflowCall
from mlcore.db import deadline
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.errors import RequestLimitExceeded, TemporarilyUnavailable
from mlcore.kubeflow import filter_fields, pages
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import EntityKind
from mlcore.kubeflow.pages import PageOrder
from mlcore.repos.kubeflow import listing, transaction_steps
from mlcore.repos.kubeflow.listing import ListEntry

R = TypeVar("R")

NUMBERED_TOGETHER: Final = 300
"""Entities made by MLflow that get their numbers in one batch, if a page needs all of them: as many
as the transactions that run in parallel hold."""
_RESERVED: Final = 5.0
"""If the request has less than this many seconds left, no further batch gets its numbers: a batch
may take that long, and the page must still be read."""

EntitiesAbove = Callable[[int], Iterable[Entity]]
"""Returns the entities whose ids are greater than the given number, ordered by id."""


def page(
    call: KubeflowCall, kind: str, entities: Iterable[Entity], order: PageOrder | None = None
) -> Any:
    """Returns a page of those of the Kubeflow ``entities`` that match the request's filter. The
    given entities may be in any order: all are read, and the matching ones are sorted."""
    order = order or pages.order_of(call.parsed.arguments)
    matching = filtered(call, kind, entities)
    return pages.page(order.sorted(matching), order, call.api)


def page_by_number(call: KubeflowCall, kind: str, entities_above: EntitiesAbove) -> Any:
    """Like :func:`page` (a page of Kubeflow entities), for entities that can be read in the order
    of their ids. If the request asks for that order, only as many are read as the page needs.

    Args:
        entities_above: returns the entities whose ids are greater than a number.
    """
    order = pages.order_of(call.parsed.arguments)
    if not order.is_by_id or order.descending:
        return page(call, kind, entities_above(0), order)
    above = order.after[1] if order.after else 0
    matching = filtered(call, kind, entities_above(above))
    return pages.page(
        (entity for entity in matching if order.is_after_page(entity)), order, call.api
    )


def filtered(call: KubeflowCall, kind: str, entities: Iterable[Entity]) -> Iterator[Entity]:
    """Yields the Kubeflow entities that match the request's ``filterQuery``. Raises
    InvalidParameterValue."""
    matches = filter_fields.test_of(call.parsed.arguments.get("filterQuery", ""), kind)
    return (entity for entity in entities if matches(entity))


def named_in_query(call: KubeflowCall, entities: Iterable[Entity]) -> Iterator[Entity]:
    """Yields the Kubeflow entities with the ``name`` and the ``externalId`` of the URL's query; one
    that the URL omits selects all entities."""
    arguments = call.parsed.arguments
    name, external_id = arguments.get("name"), arguments.get("externalId")
    return (
        entity
        for entity in entities
        if name in (None, entity.name) and external_id in (None, entity.external_id)
    )


# ------------------------------------------------------------------ from the global indexes


class ListSource(NamedTuple):
    """How to read a list of a workspace's Kubeflow entities of one kind. Its functions return only
    entities that the caller may read."""

    kind: str
    """The name of the list in the keys of the global indexes."""
    load: Callable[[Sequence[ListEntry]], list[Entity]]
    """Reads the entities at index entries, in the same order; omits those that are deleted."""
    unnumbered_kind: str = ""
    """The kind of MLflow's entities that may not have a number yet; empty if MLflow has no such
    entities."""
    assign_numbers: Callable[[Sequence[Key]], list[Entity]] = lambda _: []
    """Gives the entities with these keys their numbers, which are greater than all numbers in use,
    and returns the entities."""
    find_by_name: Callable[[str], list[Entity]] | None = None
    """Finds the entity with a name; None if names are not unique in a workspace."""
    find_by_external_id: Callable[[str], list[Entity]] | None = None


def page_of_shared(
    call: KubeflowCall,
    kind: EntityKind,
    may_read: Callable[[R], bool],
    entity_of: Callable[[R], Entity],
    load: Callable[[Sequence[ListEntry], str], Sequence[R]],
    assign_numbers: Callable[[Sequence[Key], str], Sequence[R]],
    find: Callable[[int, str], R | None],
    find_by_name: Callable[[str, str], R | None] | None = None,
) -> Any:
    """Returns a page of a workspace's registered models or model versions, which MLflow and
    Kubeflow share.

    Args:
        may_read: whether the caller may read a record (MLflow's model or version as it is stored).
        entity_of: converts a record to Kubeflow's entity.
        load: reads the records at index entries of a workspace.
        assign_numbers: gives the records with these keys in a workspace their Kubeflow numbers.
        find: finds a record by its Kubeflow number and workspace.
        find_by_name: finds a record by workspace and name; None if names are not unique.
    """
    workspace = call.workspace

    def readable(records: Iterable[R | None]) -> list[Entity]:
        return [entity_of(record) for record in records if record is not None and may_read(record)]

    def named(name: str) -> list[Entity]:
        return readable([find_by_name(workspace, name)]) if find_by_name else []

    def by_external_id(external_id: str) -> list[Entity]:
        number = transaction_steps.find_external(workspace, kind, external_id)
        return readable([] if number is None else [find(number, workspace)])

    source = ListSource(
        kind.name,
        lambda index_entries: readable(load(index_entries, workspace)),
        kind.name,
        lambda keys: readable(assign_numbers(keys, workspace)),
        named if find_by_name else None,
        by_external_id,
    )
    return page_from_indexes(call, kind.name, source)


def page_from_indexes(call: KubeflowCall, kind: str, source: ListSource) -> Any:
    """Returns a page of a list of Kubeflow's API in the requested order. Reads the index in that
    order, the index of entities without a number, and the entities that the page needs. A filter
    that demands a unique name or external id reads neither index."""
    arguments = call.parsed.arguments
    order = pages.order_of(arguments)
    demanded = filter_fields.required_texts(arguments.get("filterQuery", ""), kind)
    finders = (("name", source.find_by_name), ("externalId", source.find_by_external_id))
    for field, find in finders:
        if find is not None and field in demanded:
            return page(call, kind, find(demanded[field]), order)
    positions: dict[int, tuple[int, int]] = {}
    ascending_ids = order.is_by_id and not order.descending
    positioned = (_numbered_then_new if ascending_ids else _merged)(call, order, source)

    def entities() -> Iterator[Entity]:
        for position, entity in positioned:
            positions[entity.id] = position
            yield entity

    return pages.page(filtered(call, kind, entities()), order, call.api, positions)


Positioned = tuple[tuple[int, int], Entity]
"""An entity after its position in the order: (number or time, number)."""


def _numbered_then_new(
    call: KubeflowCall, order: PageOrder, source: ListSource
) -> Iterator[Positioned]:
    """Yields the entities that have a number, then those that get one now: new numbers are the
    greatest. Assigns only as many as the page needs."""
    yielded = set()
    index_entries = listing.entries(call.workspace, source.kind, order)
    for positioned in _load(call, order, source, index_entries):
        yielded.add(positioned[1].id)
        yield positioned
    for entities in _assign_numbers(
        source,
        listing.unnumbered_keys(call.workspace, source.unnumbered_kind),
        listing.READ_TOGETHER,
    ):
        for entity in sorted(entities, key=order.position):
            if entity.id not in yielded and order.is_after_page(entity):
                yield order.position(entity), entity


def _merged(call: KubeflowCall, order: PageOrder, source: ListSource) -> Iterator[Positioned]:
    """Yields all entities in order. In an order by time, an entity without a number may come
    anywhere, so all of them get their numbers first. Both indexes are queried in parallel."""
    index_entries = listing.entries(call.workspace, source.kind, order)
    first_entries: list[ListEntry] = []
    unnumbered: list[Key] = []
    calls: list[Callable[[], None]] = [
        lambda: first_entries.extend(islice(index_entries, 1)),
        lambda: unnumbered.extend(listing.unnumbered_keys(call.workspace, source.unnumbered_kind)),
    ]
    table.parallel(calls)
    new = {
        entity.id: (order.position(entity), entity)
        for entities in _assign_numbers(source, iter(unnumbered), NUMBERED_TOGETHER)
        for entity in entities
        if order.is_after_page(entity)
    }
    loaded = _load(call, order, source, chain(first_entries, index_entries))
    yield from heapq.merge(
        sorted(new.values(), key=itemgetter(0), reverse=order.descending),
        (positioned for positioned in loaded if positioned[1].id not in new),
        key=itemgetter(0),
        reverse=order.descending,
    )


def _load(
    call: KubeflowCall, order: PageOrder, source: ListSource, index_entries: Iterator[ListEntry]
) -> Iterator[Positioned]:
    """Reads the entities at index entries, in batches no larger than a page may need."""
    batch_size = listing.READ_TOGETHER
    if order.size and not call.parsed.arguments.get("filterQuery"):
        batch_size = min(batch_size, order.size + 1)
    while batch := list(islice(index_entries, batch_size)):
        position_of = {position.number: position.position for position in batch}
        for entity in source.load(batch):
            yield position_of[entity.id], entity


def _assign_numbers(
    source: ListSource, unnumbered: Iterator[Key], batch_size: int
) -> Iterator[list[Entity]]:
    """Assigns numbers in batches while the request has time. Numbers are kept, so a repeated
    request continues where this one stopped.

    Raises:
        RequestLimitExceeded: more entities lack a number than this request has time for.
            TemporarilyUnavailable: numbers cannot be assigned now.
    """
    started = False
    while batch := list(dict.fromkeys(islice(unnumbered, batch_size))):
        if started and _seconds_left() < _RESERVED:
            raise _too_many()
        try:
            entities = source.assign_numbers(batch)
        except TemporarilyUnavailable as error:
            if _seconds_left() < _RESERVED:
                raise _too_many() from error
            raise
        started = True
        yield entities


def _seconds_left() -> float:
    return deadline.current() - time.monotonic()


def _too_many() -> RequestLimitExceeded:
    return RequestLimitExceeded(
        "Many entities in this list were made through MLflow and are getting their ids, which takes"
        " more than one request. Repeat the request: it continues from here."
    )
