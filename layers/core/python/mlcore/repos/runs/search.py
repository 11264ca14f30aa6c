"""Finds the first runs of an order that match a filter, by the cheapest way that is exact.

For each experiment, whichever comes first:

1. it is small: all its runs;
2. a condition's index entries fit a page: the runs that they name, and that those of every other
   condition that fits name as well;
3. the order is one that an index has (newest first, a metric): runs in that order until enough
   match;
4. the index entries of all conditions and the list of all runs are read side by side until none
   can cost less than what has ended.

Whatever names the runs, they are read strongly consistently and tested against the whole filter.
What the indexer writes may be late; the runs that it may be wrong about are marked, which is read
before it, and those runs are always among the ones looked at.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.keys import Key
from mlcore.db.sortable import value_at
from mlcore.db.table import BATCH_GET_KEYS, table
from mlcore.entities.experiments import Experiment
from mlcore.errors import InvalidParameterValue
from mlcore.memory import Memory
from mlcore.repos import text_lists
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import index as run_index
from mlcore.repos.runs import pages as run_pages
from mlcore.repos.runs import runs
from mlcore.repos.runs.index import Candidates, Entries, Marks
from mlcore.repos.runs.pages import Start
from mlcore.repos.runs.ranked_order import InOrder, Moved
from mlcore.repos.runs.ranks import MetricCandidates, Ranks
from mlcore.repos.runs.runs import StoredRun
from mlcore.repos.runs.searched import SearchedRun
from mlcore.repos.text_lists import Foreseen
from mlcore.search import fields, order, plan
from mlcore.search.grammar import Comparison, OrderBy
from mlcore.search.match import predicate

_logger = logging.getLogger("mlcore.search")

SMALL_RUNS = 300
"""Up to this size an experiment is read whole: two round trips, whatever is asked."""
STREAMED_RUNS = 3_000
"""So many runs are read in an index's order before a filter counts as too selective for it."""
READ_TOGETHER = 1_000
FURTHER_RANKS = 25
"""A few more entries than rows are wanted, so that most often the last row's value ends among
them."""

_runs: Memory[tuple[str, ...], int] = Memory("how many runs of some stages are in an experiment")
"""Where more were found once than are read whole, they are not looked for again: an index answers
as exactly. By experiment and stages; there may be more."""

Row = tuple[order.Key, StoredRun]


class Query(NamedTuple):
    comparisons: Sequence[Comparison]
    ordering: Sequence[OrderBy]
    stages: Sequence[str]
    after: order.Key | None
    """Only runs whose key in the order is greater."""
    rows: int
    """How many are wanted."""


class Late(NamedTuple):
    """What is known of what the indexer writes of an experiment, before it is read."""

    marked: set[Key]
    """The runs that it has not followed."""
    ranks: Ranks
    foreseen: Foreseen


class _Compiled(NamedTuple):
    query: Query
    matches: Callable[[SearchedRun], bool]
    key_of: order.SortKey

    def row(self, stored: StoredRun) -> Row | None:
        """The run's row if it belongs to the answer."""
        if stored.stage not in self.query.stages:
            return None
        run = SearchedRun(stored)
        if not self.matches(run):
            return None
        key = self.key_of(run)
        after = self.query.after
        return (key, stored) if after is None or key > after else None


def find(experiment_ids: Sequence[str], workspace: str, query: Query) -> list[Row]:
    """The first runs of the answer over all the experiments, in order, with their keys.

    Args:
        workspace: experiments of another one count as if they did not exist.
    """
    compiled = _Compiled(
        query,
        predicate(query.comparisons, fields.RUN),
        order.sort_key(query.ordering, fields.RUN),
    )
    return _found(experiment_ids, workspace, compiled)


def _found(experiment_ids: Sequence[str], workspace: str, compiled: _Compiled) -> list[Row]:
    query = compiled.query
    if plan.newest_first(query.ordering) and not plan.accesses(query.comparisons):
        return _stream(experiment_ids, workspace, compiled)
    listings = {
        experiment_id: run_index.runs_of_stages(experiment_id, query.stages)
        for experiment_id in experiment_ids
    }
    small = _small(query)
    found: list[Experiment] = []
    marks: dict[str, Marks] = {}
    calls: list[Callable[[], object]] = [
        lambda: found.extend(experiments.known(experiment_ids, workspace)),
        *(
            partial(listing.read, small + 1)
            for experiment_id, listing in listings.items()
            if _known_runs(experiment_id, query) <= small
        ),
    ]
    foreseen = Foreseen(experiment_ids, plan.accesses(query.comparisons), run_index.RUN)
    calls += foreseen.calls
    metrics = plan.metrics(query.comparisons, query.ordering)
    ranks = {experiment_id: Ranks(experiment_id, metrics) for experiment_id in experiment_ids}
    if len(experiment_ids) <= run_pages.PAGES_AHEAD:  # most of many are small
        calls += [read for one in ranks.values() for read in one.reads()]
    if _asks_late_entries(query):
        marks = {experiment_id: Marks(experiment_id) for experiment_id in experiment_ids}
        calls += [read for one in marks.values() for read in one.reads()]
    table.parallel(calls)
    rows: list[Row] = []
    for experiment in found:
        listing = listings[experiment.experiment_id]
        if experiment.epoch and len(query.stages) == 1:
            # The index has each run's own stage, which the experiment's overrules.
            listing = run_index.runs_of_stages(experiment.experiment_id, ())
            if _known_runs(experiment.experiment_id, query) <= small:
                listing.read(small + 1)
        if listing.seen > _known_runs(experiment.experiment_id, query):
            _runs.put((experiment.experiment_id, *query.stages), listing.seen)
        known = marks.get(experiment.experiment_id)
        late = Late(known.runs() if known else set(), ranks[experiment.experiment_id], foreseen)
        rows += _of_one(experiment, listing, late, compiled)
    return _first(rows, query.rows)


def _known_runs(experiment_id: str, query: Query) -> int:
    """How many runs of the stages there are at least, as far as this process knows."""
    return _runs.get((experiment_id, *query.stages)) or 0


def _stream(experiment_ids: Sequence[str], workspace: str, compiled: _Compiled) -> list[Row]:
    """Newest first without a condition that an index knows: pages until enough match."""
    query = compiled.query
    page = READ_TOGETHER if query.comparisons else min(query.rows, READ_TOGETHER)
    found = run_pages.newest_first(
        experiment_ids, workspace, query.stages, _start(query.after), page
    )
    rows = list(islice(filter(None, map(compiled.row, found)), query.rows))
    for experiment_id in experiment_ids:
        _explain("newest", experiment_id, len(rows), len(rows))
    return rows


def _of_one(experiment: Experiment, listing: Entries, late: Late, compiled: _Compiled) -> list[Row]:
    """The first rows of one experiment, in no order. Beside the runs that an index names, those
    that are marked are looked at, and none twice: however many they are, that is no more than to
    look at all."""
    query = compiled.query
    if listing.done:
        return _looked_at("all", experiment, listing.places(), compiled)
    late.ranks.begin()
    competitors = [
        candidate
        for access in plan.accesses(query.comparisons)
        for candidate in _candidates(experiment, access, late)
    ]
    run_index.begin(competitors)
    if not any(competitor.done for competitor in competitors):
        rows = _in_index_order(experiment, late, compiled)
        if rows is not None:
            return rows
    everything = Candidates("all", listing)
    if not listing.seen:
        everything.beside = SMALL_RUNS  # at least
    cheapest, *others = run_index.race([*competitors, everything])
    named = cheapest.places()
    for other in others:
        # Each of them names every run of the answer, but perhaps for marked ones.
        known = other.places()
        if other.late:
            known.update(dict.fromkeys(late.marked))
        named = {key: None for key in named if key in known}
    if cheapest.late:
        named.update(dict.fromkeys(late.marked))
    return _looked_at(
        cheapest.access, experiment, list(named), compiled, sum(one.seen for one in competitors)
    )


def _candidates(experiment: Experiment, access: plan.Access, late: Late) -> list[Candidates]:
    experiment_id = experiment.experiment_id
    found: list[Candidates]
    if isinstance(access, plan.Text):
        indexed = experiment.indexed
        found = text_lists.candidates(experiment_id, access, indexed, run_index.RUN, late.foreseen)
    elif isinstance(access, plan.MetricRange):
        found = [MetricCandidates(late.ranks, access)]
    else:
        found = run_index.candidates(experiment_id, access)
    if run_index.is_asynchronous(access):
        for each in found:
            each.late, each.beside = True, len(late.marked)
    return found


def _small(query: Query) -> int:
    """Up to how many runs an experiment is read whole."""
    if plan.metric_order(query.ordering) and not query.comparisons:
        # An index has all the answer, and to ask it costs one round trip more.
        return min(SMALL_RUNS, query.rows)
    return SMALL_RUNS


def _asks_late_entries(query: Query) -> bool:
    """Whether entries that the indexer writes may be used."""
    accesses = plan.accesses(query.comparisons)
    return bool(plan.metric_order(query.ordering) or any(map(run_index.is_asynchronous, accesses)))


def _in_index_order(experiment: Experiment, late: Late, compiled: _Compiled) -> list[Row] | None:
    """Runs in the order of an index until enough match; None if it has none or they do not soon."""
    query = compiled.query
    if query.rows > STREAMED_RUNS:
        return None
    if plan.newest_first(query.ordering):
        found = run_pages.newest_first(
            [experiment.experiment_id],
            experiment.workspace,
            query.stages,
            _start(query.after),
        )
        matching = filter(None, map(compiled.row, islice(found, STREAMED_RUNS)))
        rows = list(islice(matching, query.rows))
        if len(rows) < query.rows:
            return None
        _explain("newest", experiment.experiment_id, len(rows), len(rows))
        return rows
    metric = plan.metric_order(query.ordering)
    return None if metric is None else _by_metric(experiment, metric, late, compiled)


def _by_metric(
    experiment: Experiment, metric: plan.MetricOrder, late: Late, compiled: _Compiled
) -> list[Row] | None:
    """Runs by the ranks of a metric; complete as soon as enough rows come before the last value
    read, because runs of one value are ordered by something else."""
    query = compiled.query
    begin = None
    if query.after is not None:
        rank, value = query.after[0], query.after[1]
        if rank == order.MISSING:
            return None
        if rank == order.NAN:
            begin = math.nan
        else:
            begin = float(value) if metric.ascending else -float(value)
    waiting = list(late.marked)
    calls: list[Callable[[], list[Row]]] = [
        partial(_rows, waiting[at : at + BATCH_GET_KEYS], experiment, compiled)
        for at in range(0, len(waiting), BATCH_GET_KEYS)
    ]
    rows: list[Row] = []
    while not late.ranks.are_lost:
        ranked = InOrder(late.ranks, metric, begin)
        first = ranked.reads(query.rows + FURTHER_RANKS)
        for found in table.parallel([*first, *calls]):
            rows += found or []
        calls = []
        with contextlib.suppress(Moved):
            return _first_of_order(ranked, rows, experiment, metric, late.marked, compiled)
    return None


def _first_of_order(
    ranked: InOrder,
    rows: list[Row],
    experiment: Experiment,
    metric: plan.MetricOrder,
    marked: set[Key],
    compiled: _Compiled,
) -> list[Row] | None:
    """The first rows of all, in order; None if the ranks do not tell them.

    Args:
        rows: those of the marked runs, in no order.

    Raises:
        Moved: what was read is no more.
    """
    query = compiled.query
    looked_at, seen = set(marked), 0
    first = _first(rows, query.rows)
    for added in ranked.chunks(query.rows, FURTHER_RANKS):
        seen += len(added)
        named = dict.fromkeys(keys.run(experiment.experiment_id, one.run_id) for one in added)
        found = _rows([key for key in named if key not in looked_at], experiment, compiled)
        looked_at.update(named)
        first = _first([*first, *found], query.rows)
        if len(first) == query.rows:
            last = value_at(added[-1].place)
            if first[-1][0][:2] < order.metric_field(last, ascending=metric.ascending):
                break
        if seen > STREAMED_RUNS:
            return None
    # Runs that lack the metric come last, and no entry names them but the marks.
    if len(first) < query.rows or first[-1][0][0] == order.MISSING:
        return None
    _explain("MetricOrder", experiment.experiment_id, seen, len(first), seen)
    return first


def _first(rows: Iterable[Row], count: int) -> list[Row]:
    """The first rows in their order. All rows of one key are of one run."""
    return heapq.nsmallest(count, rows, key=itemgetter(0))


def _looked_at(
    how: str,
    experiment: Experiment,
    named: Sequence[Key],
    compiled: _Compiled,
    entries: int = 0,
) -> list[Row]:
    rows = _first(_each_row(named, experiment, compiled), compiled.query.rows)
    _explain(how, experiment.experiment_id, len(named), len(rows), entries)
    return rows


def _start(after: order.Key | None) -> Start | None:
    """The place that a key of the order "start_time DESC, run_id ASC" stands for."""
    if after is None:
        return None
    _, negated, _, run_id = after
    if not isinstance(negated, int) or not -(2**63) <= -negated < 2**63:
        raise InvalidParameterValue("Invalid page token")
    return Start(-negated, str(run_id))


def _rows(named: Sequence[Key], experiment: Experiment, compiled: _Compiled) -> list[Row]:
    return list(_each_row(named, experiment, compiled))


def _each_row(named: Sequence[Key], experiment: Experiment, compiled: _Compiled) -> Iterator[Row]:
    for at in range(0, len(named), READ_TOGETHER):
        for item in table.batch_get(named[at : at + READ_TOGETHER]):
            row = None if item is None else compiled.row(runs.of_item(item, experiment))
            if row is not None:
                yield row


def _explain(how: str, experiment_id: str, read: int, rows: int, entries: int = 0) -> None:
    """Says which way the answer came ("all", "newest", or the name of a plan's access or order),
    and what was read for it: index entries of conditions, then runs."""
    _logger.debug(
        "search by %s in experiment %s: %d runs read, %d rows, %d entries read",
        how,
        experiment_id,
        read,
        rows,
        entries,
    )
