"""Reads the traces of one experiment in the order of an index, if that is the requested order or
its first field. Tests no conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from mlcore import reserved_tags
from mlcore.db import keys
from mlcore.db.table import key_of_item, table
from mlcore.entities.experiments import Experiment
from mlcore.errors import InvalidParameterValue
from mlcore.models.base import KEY
from mlcore.models.traces import Trace
from mlcore.repos.traces import traces
from mlcore.repos.traces import traces_by_time as trace_pages
from mlcore.repos.traces.traces import StoredTrace
from mlcore.repos.traces.traces_by_time import Through, TracePosition, Window, bounds_of
from mlcore.search import trace_match
from mlcore.search.grammar import OrderBy
from mlcore.search.sort_keys import PRESENT, Key, restore_text, value_field
from mlcore.search.trace_filter import ATTRIBUTE, TAG

STATES: Final = ("ERROR", "IN_PROGRESS", "OK", "STATE_UNSPECIFIED")
LONGEST_NAME: Final = 100
"""Maximum characters of a name by which the index orders traces exactly. Longer names are shortened
in the index, so their order is undefined."""


class Ordered(NamedTuple):
    """Traces of an experiment in the order of a search index, page by page, with all that follow
    the last trace of the page that the client has. The first ones may come before that trace."""

    name: str
    """The name of the order."""
    pages: Iterator[list[StoredTrace]]
    exact: bool
    """Whether the order is the requested one, or only its first field."""
    whole: bool = True
    """Whether the pages contain all traces; if not, the missing ones come last in the order."""


def ordered(
    experiment: Experiment,
    ordering: Sequence[OrderBy],
    after: Key | None,
    window: Window,
    through: Through,
    page: int,
) -> Ordered | None:
    """Returns the traces of an experiment in the requested order, or in the order of its first
    field; None if no index has either.

    Args:
        ordering: the requested order.
        after: the search's sort key (:mod:`mlcore.search.sort_keys`) of the last trace on the
            previous page; None for the first page.
        window: the range of request times.
        through: a time-ordered index that contains all wanted traces.
        page: how many traces to read at a time.
    """
    order = _Order(experiment, after, window, through, page)
    if trace_match.newest_first(ordering):
        return Ordered("newest", _newest(order, through, newest_place(after)), exact=True)
    first = ordering[0]
    if (first.kind, first.key) == (ATTRIBUTE, "timestamp_ms"):
        return Ordered("time", _by_time(order, ascending=first.ascending), exact=False)
    if (first.kind, first.key) == (
        TAG,
        reserved_tags.TRACE_NAME,
    ) and through == trace_pages.BY_TIME:
        return Ordered("name", _by_name(order, ascending=first.ascending), exact=False, whole=False)
    if (
        (first.kind, first.key) == (ATTRIBUTE, "status")
        and trace_match.newest_first(ordering[1:])
        and through == trace_pages.BY_TIME
    ):
        return Ordered("status", _by_state(order, ascending=first.ascending), exact=True)
    return None


def newest_place(after: Key | None) -> TracePosition | None:
    """Returns the position (request time and id) of a trace, from its sort key ``after`` in a
    search with the order "newest first, then smallest id"; None without a key."""
    if after is None:
        return None
    _, negated, _, trace_id = after
    return TracePosition(_time(negated, negated=True), str(trace_id))


class _Order(NamedTuple):
    experiment: Experiment
    after: Key | None
    window: Window
    through: Through
    page: int

    def pages(
        self, through: Through, bounds: tuple[str, str] | None, *, descending: bool
    ) -> Iterator[list[StoredTrace]]:
        if bounds is None:
            return
        start = None
        while True:
            entries = table.query(
                keys.experiment(self.experiment.experiment_id).pk,
                index=through.name,
                between=bounds,
                descending=descending,
                limit=self.page,
                start=start,
                attributes=KEY,
            )
            items = table.batch_get(list(map(key_of_item, entries.items)))
            yield [traces.of_item(item, self.experiment) for item in items if item is not None]
            start = entries.last_key
            if start is None:
                return


def _newest(
    order: _Order, through: Through, position: TracePosition | None
) -> Iterator[list[StoredTrace]]:
    bounds = bounds_of(through, order.window, position)
    return order.pages(through, bounds, descending=True)


def _by_time(order: _Order, *, ascending: bool) -> Iterator[list[StoredTrace]]:
    window = order.window
    if order.after is not None:
        last = _time(order.after[1], negated=not ascending)
        if ascending:
            window = window._replace(earliest=max(window.earliest, last))
        else:
            window = window._replace(latest=min(window.latest, last))
    return order.pages(order.through, bounds_of(order.through, window), descending=not ascending)


def _by_state(order: _Order, *, ascending: bool) -> Iterator[list[StoredTrace]]:
    """Yields traces by state, from LSI3, which has each state's traces newest first."""
    parts = []
    for state in STATES if ascending else reversed(STATES):
        field, position = value_field(state, ascending=ascending), None
        if order.after is not None:
            if field < order.after[:2]:
                continue
            if field == order.after[:2]:
                position = newest_place(order.after[2:])
        parts.append(partial(_newest, order, trace_pages.of_state(state), position))
    return chain.from_iterable(part() for part in parts)


def _by_name(order: _Order, *, ascending: bool) -> Iterator[list[StoredTrace]]:
    lowest, highest = keys.prefix_range(keys.lsi4_trace_prefix())
    if order.after is not None:
        if order.after[0] != PRESENT:
            return iter(())
        name = restore_text(order.after[1], ascending=ascending)
        if len(name) > LONGEST_NAME:
            return iter(())
        of_name = keys.lsi4_trace_name_prefix(name)
        if ascending:
            lowest = of_name
        else:
            highest = of_name + keys.UPPER_BOUND
    through = Through("LSI4", Trace.lsi4sk.attr_name, lambda _: "", lambda _, __: "")
    return order.pages(through, (lowest, highest), descending=not ascending)


def _time(value: object, *, negated: bool) -> int:
    """Returns the request time in a part of a sort key. It is negated there if the newest traces
    come first."""
    time = -value if negated and isinstance(value, int) else value
    if not isinstance(time, int) or not -(2**63) <= time < 2**63:
        raise InvalidParameterValue("Invalid page token")
    return time
