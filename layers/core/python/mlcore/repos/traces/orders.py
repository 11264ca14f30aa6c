"""Traces of one experiment in the order of an index, for orders that an index has or begins with;
tests nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.table import key_in, table
from mlcore.entities.experiments import Experiment
from mlcore.errors import InvalidParameterValue
from mlcore.models.base import KEY
from mlcore.models.traces import Trace
from mlcore.repos.traces import pages as trace_pages
from mlcore.repos.traces import traces
from mlcore.repos.traces.pages import Place, Through, Window, bounds_of
from mlcore.repos.traces.traces import StoredTrace
from mlcore.search import trace_match
from mlcore.search.grammar import OrderBy
from mlcore.search.order import PRESENT, Key, restored, value_field
from mlcore.search.trace_filter import ATTRIBUTE, NAME_TAG, TAG

STATES: Final = ("ERROR", "IN_PROGRESS", "OK", "STATE_UNSPECIFIED")
LONGEST_NAME: Final = 100
"""Characters; the index has longer names cut, in no order that is theirs."""


class Ordered(NamedTuple):
    """Traces page by page, not before the place where the page before ended."""

    name: str
    """Of the order."""
    pages: Iterator[list[StoredTrace]]
    exact: bool
    """Whether the order is all of the one that is asked for, or only its first field."""
    whole: bool = True
    """Whether all traces are there; if not, the others come last."""


def ordered(
    experiment: Experiment,
    ordering: Sequence[OrderBy],
    after: Key | None,
    window: Window,
    through: Through,
    page: int,
) -> Ordered | None:
    """None if no index has the order."""
    one = _Order(experiment, after, window, through, page)
    if trace_match.newest_first(ordering):
        return Ordered("newest", _newest(one, through, newest_place(after)), exact=True)
    first = ordering[0]
    if (first.kind, first.key) == (ATTRIBUTE, "timestamp_ms"):
        return Ordered("time", _by_time(one, ascending=first.ascending), exact=False)
    if (first.kind, first.key) == (TAG, NAME_TAG) and through == trace_pages.BY_TIME:
        return Ordered("name", _by_name(one, ascending=first.ascending), exact=False, whole=False)
    if (
        (first.kind, first.key) == (ATTRIBUTE, "status")
        and trace_match.newest_first(ordering[1:])
        and through == trace_pages.BY_TIME
    ):
        return Ordered("status", _by_state(one, ascending=first.ascending), exact=True)
    return None


def newest_place(after: Key | None) -> Place | None:
    """The place that a key stands for of the order "newest first"."""
    if after is None:
        return None
    _, negated, _, trace_id = after
    return Place(-_time(negated), str(trace_id))


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
            found = table.query(
                keys.experiment(self.experiment.experiment_id).pk,
                index=through.name,
                between=bounds,
                descending=descending,
                limit=self.page,
                start=start,
                attributes=KEY,
            )
            items = table.batch_get(list(map(key_in, found.items)))
            yield [traces.of_item(item, self.experiment) for item in items if item is not None]
            start = found.last_key
            if start is None:
                return


def _newest(one: _Order, through: Through, place: Place | None) -> Iterator[list[StoredTrace]]:
    bounds = bounds_of(through, one.window, place)
    return one.pages(through, bounds, descending=True)


def _by_time(one: _Order, *, ascending: bool) -> Iterator[list[StoredTrace]]:
    window = one.window
    if one.after is not None:
        last = _time(one.after[1] if ascending else -_time(one.after[1]))
        if ascending:
            window = window._replace(earliest=max(window.earliest, last))
        else:
            window = window._replace(latest=min(window.latest, last))
    return one.pages(one.through, bounds_of(one.through, window), descending=not ascending)


def _by_state(one: _Order, *, ascending: bool) -> Iterator[list[StoredTrace]]:
    """LSI3 has each state's traces newest first."""
    parts = []
    for state in STATES if ascending else reversed(STATES):
        field, place = value_field(state, ascending=ascending), None
        if one.after is not None:
            if field < one.after[:2]:
                continue
            if field == one.after[:2]:
                place = newest_place(one.after[2:])
        parts.append(partial(_newest, one, trace_pages.of_state(state), place))
    return chain.from_iterable(part() for part in parts)


def _by_name(one: _Order, *, ascending: bool) -> Iterator[list[StoredTrace]]:
    lowest, highest = keys.sort_keys_with(keys.lsi4_trace_prefix())
    if one.after is not None:
        if one.after[0] != PRESENT:
            return iter(())
        name = restored(one.after[1], ascending=ascending)
        if len(name) > LONGEST_NAME:
            return iter(())
        of_name = keys.lsi4_trace_name_prefix(name)
        if ascending:
            lowest = of_name
        else:
            highest = of_name + keys.LAST
    through = Through("LSI4", Trace.lsi4sk.attr_name, lambda _: "", lambda _, __: "")
    return one.pages(through, (lowest, highest), descending=not ascending)


def _time(value: object) -> int:
    if not isinstance(value, int) or not -(2**63) < value < 2**63:
        raise InvalidParameterValue("Invalid page token")
    return value
