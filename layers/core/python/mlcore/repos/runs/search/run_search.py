"""Finds the first runs, in a requested order, that match a filter, by the cheapest exact way.

Newest first, without a condition that an index can answer, runs are read in that order until enough
match. Otherwise, for each experiment, the first of these that applies:

1. The experiment is small: all its runs are read.
2. Some conditions' index entries fit one page: the runs to which all of them refer are read.
3. An index has the order (newest first, a metric): runs are read in it until enough match.
4. All conditions' index entries and the list of all runs are read in parallel, until none can be
   cheaper than the cheapest complete one.

All runs are read strongly consistently and tested against the whole filter. Runs that the indexer
has not processed yet have a mark; marks are read first, and these runs are always tested.
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
from mlcore.db.sortable import double_of_inverted_bits
from mlcore.db.table import BATCH_GET_KEYS, table
from mlcore.entities.experiments import Experiment
from mlcore.errors import InvalidParameterValue
from mlcore.process_cache import ProcessCache
from mlcore.repos import index_candidates, text_candidates
from mlcore.repos.experiments import experiments
from mlcore.repos.index_candidates import Candidates, Entries
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.marked_runs import MarkedRuns
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.ranks.metric_ranks import MetricCandidates, Ranks
from mlcore.repos.runs.ranks.ranked_order import InOrder, Moved
from mlcore.repos.runs.search import run_candidates, runs_by_start
from mlcore.repos.runs.search.runs_by_start import StartPosition
from mlcore.repos.runs.search.searched_run import SearchedRun
from mlcore.repos.text_candidates import Foreseen
from mlcore.search import fields, run_plan, sort_keys
from mlcore.search.grammar import Comparison, OrderBy
from mlcore.search.match import predicate

_logger = logging.getLogger("mlcore.search")

SMALL_RUNS = 300
"""Experiments with up to this many runs are read whole: two round trips for any search."""
STREAMED_RUNS = 3_000
"""Runs read in an index's order before the filter counts as too selective for it."""
READ_TOGETHER = 1_000
FURTHER_RANKS = 25
"""How many ranked values to read beyond the wanted rows, so that usually all runs with the last
row's value are among them."""

_runs: ProcessCache[tuple[str, ...], int] = ProcessCache(
    "how many runs of some stages are in an experiment"
)
"""Number of runs by experiment and stages, if more were found than are read whole; then a search
does not check again. There may be more by now."""

Row = tuple[sort_keys.Key, StoredRun]


class RunQuery(NamedTuple):
    comparisons: Sequence[Comparison]
    ordering: Sequence[OrderBy]
    stages: Sequence[str]
    after: sort_keys.Key | None
    """Only runs whose key in the order is greater."""
    rows: int
    """Number of rows wanted."""


class Late(NamedTuple):
    """What a search of runs needs of an experiment to use the indexer's entries, which may lag: its
    unprocessed runs, the index of metric values, and full-text lists that were read ahead."""

    marked: set[Key]
    """Runs that the indexer has not processed."""
    ranks: Ranks
    foreseen: Foreseen


class _Compiled(NamedTuple):
    query: RunQuery
    matches: Callable[[SearchedRun], bool]
    key_of: sort_keys.SortKey

    def row(self, stored: StoredRun) -> Row | None:
        """Returns the run with its sort key; None if it does not match or comes before the page."""
        if stored.stage not in self.query.stages:
            return None
        run = SearchedRun(stored)
        if not self.matches(run):
            return None
        key = self.key_of(run)
        after = self.query.after
        return (key, stored) if after is None or key > after else None


def find(experiment_ids: Sequence[str], workspace: str, query: RunQuery) -> list[Row]:
    """Returns the first runs of the experiments that match the search ``query``, in the query's
    order, each with its sort key (:mod:`mlcore.search.sort_keys`).

    Args:
        workspace: experiments of another workspace are ignored.
    """
    compiled = _Compiled(
        query,
        predicate(query.comparisons, fields.RUN),
        sort_keys.sort_key(query.ordering, fields.RUN),
    )
    return _first_rows(experiment_ids, workspace, compiled)


def _first_rows(experiment_ids: Sequence[str], workspace: str, compiled: _Compiled) -> list[Row]:
    query = compiled.query
    if run_plan.newest_first(query.ordering) and not run_plan.accesses(query.comparisons):
        return _stream(experiment_ids, workspace, compiled)
    listings = {
        experiment_id: run_candidates.runs_of_stages(experiment_id, query.stages)
        for experiment_id in experiment_ids
    }
    small = _small(query)
    experiments_found: list[Experiment] = []
    marked: dict[str, MarkedRuns] = {}
    calls: list[Callable[[], object]] = [
        lambda: experiments_found.extend(experiments.find_existing(experiment_ids, workspace)),
        *(
            partial(listing.read, small + 1)
            for experiment_id, listing in listings.items()
            if _known_runs(experiment_id, query) <= small
        ),
    ]
    foreseen = Foreseen(experiment_ids, run_plan.accesses(query.comparisons), index_candidates.RUN)
    calls += foreseen.calls
    metrics = run_plan.ranked_metrics(query.comparisons, query.ordering)
    ranks = {experiment_id: Ranks(experiment_id, metrics) for experiment_id in experiment_ids}
    if len(experiment_ids) <= runs_by_start.PAGES_AHEAD:  # most of many are small
        calls += [read for rank in ranks.values() for read in rank.reads()]
    if _asks_late_entries(query):
        marked = {experiment_id: MarkedRuns(experiment_id) for experiment_id in experiment_ids}
        calls += [read for known in marked.values() for read in known.reads()]
    table.parallel(calls)
    rows: list[Row] = []
    for experiment in experiments_found:
        listing = listings[experiment.experiment_id]
        if experiment.epoch and len(query.stages) == 1:
            # The index has each run's own stage, which the experiment's overrules.
            listing = run_candidates.runs_of_stages(experiment.experiment_id, ())
            if _known_runs(experiment.experiment_id, query) <= small:
                listing.read(small + 1)
        if listing.seen > _known_runs(experiment.experiment_id, query):
            _runs.put((experiment.experiment_id, *query.stages), listing.seen)
        known = marked.get(experiment.experiment_id)
        late = Late(known.runs() if known else set(), ranks[experiment.experiment_id], foreseen)
        rows += _of_one(experiment, listing, late, compiled)
    return _first(rows, query.rows)


def _known_runs(experiment_id: str, query: RunQuery) -> int:
    """Returns how many runs an earlier search of the same stages listed; 0 if none is cached."""
    return _runs.get((experiment_id, *query.stages)) or 0


def _stream(experiment_ids: Sequence[str], workspace: str, compiled: _Compiled) -> list[Row]:
    """Reads pages of the newest runs until enough match; for filters without a condition that an
    index can answer."""
    query = compiled.query
    page = READ_TOGETHER if query.comparisons else min(query.rows, READ_TOGETHER)
    runs = runs_by_start.newest_first(
        experiment_ids, workspace, query.stages, _start(query.after), page
    )
    rows = list(islice(filter(None, map(compiled.row, runs)), query.rows))
    for experiment_id in experiment_ids:
        _explain("newest", experiment_id, len(rows), len(rows))
    return rows


def _of_one(experiment: Experiment, listing: Entries, late: Late, compiled: _Compiled) -> list[Row]:
    """Returns the first rows of one experiment, unordered. Tests runs with a mark beside those to
    which an index refers, none twice unless an index's order was given up."""
    query = compiled.query
    if listing.done:
        return _matching_rows("all", experiment, listing.candidate_keys(), compiled)
    late.ranks.begin()
    competitors = [
        candidate
        for access in run_plan.accesses(query.comparisons)
        for candidate in _candidates(experiment, access, late)
    ]
    index_candidates.read_first_pages(competitors)
    if not any(competitor.done for competitor in competitors):
        rows = _in_index_order(experiment, late, compiled)
        if rows is not None:
            return rows
    everything = Candidates("all", listing)
    if not listing.seen:
        everything.beside = SMALL_RUNS  # at least
    cheapest, *others = index_candidates.race(competitors, everything)
    candidate_keys = cheapest.sort_keys()
    marked = {key.sk: None for key in late.marked}
    for other in others:
        # Each of them names every run of the answer, except perhaps marked ones.
        known = other.sort_keys()
        if other.late:
            known.update(marked)
        candidate_keys = {sk: None for sk in candidate_keys if sk in known}
    if cheapest.late:
        candidate_keys.update(marked)
    pk = keys.experiment(experiment.experiment_id).pk
    named = [Key(pk, sk) for sk in candidate_keys]
    seen = sum(competitor.seen for competitor in competitors)
    return _matching_rows(cheapest.access, experiment, named, compiled, seen)


def _candidates(experiment: Experiment, access: run_plan.Access, late: Late) -> list[Candidates]:
    experiment_id = experiment.experiment_id
    candidates: list[Candidates]
    if isinstance(access, run_plan.TextLookups):
        indexed = experiment.indexed
        candidates = text_candidates.candidates(
            experiment_id, access, indexed, index_candidates.RUN, late.foreseen
        )
    elif isinstance(access, run_plan.MetricRange):
        candidates = [MetricCandidates(late.ranks, access)]
    else:
        candidates = run_candidates.candidates(experiment_id, access)
    if run_candidates.is_asynchronous(access):
        for each in candidates:
            each.late, each.beside = True, len(late.marked)
    return candidates


def _small(query: RunQuery) -> int:
    """Returns how many runs an experiment may have so that all of them are read."""
    if run_plan.metric_order(query.ordering) and not query.comparisons:
        # An index has the whole answer, and reading it costs one more round trip.
        return min(SMALL_RUNS, query.rows)
    return SMALL_RUNS


def _asks_late_entries(query: RunQuery) -> bool:
    """Whether the search may use index entries of the indexer, which may lag."""
    accesses = run_plan.accesses(query.comparisons)
    return bool(
        run_plan.metric_order(query.ordering) or any(map(run_candidates.is_asynchronous, accesses))
    )


def _in_index_order(experiment: Experiment, late: Late, compiled: _Compiled) -> list[Row] | None:
    """Returns rows read in the order of an index; None if no index has it, or too few match."""
    query = compiled.query
    if query.rows > STREAMED_RUNS:
        return None
    if run_plan.newest_first(query.ordering):
        runs = runs_by_start.newest_first(
            [experiment.experiment_id],
            experiment.workspace,
            query.stages,
            _start(query.after),
        )
        matching = filter(None, map(compiled.row, islice(runs, STREAMED_RUNS)))
        rows = list(islice(matching, query.rows))
        if len(rows) < query.rows:
            return None
        _explain("newest", experiment.experiment_id, len(rows), len(rows))
        return rows
    metric = run_plan.metric_order(query.ordering)
    return None if metric is None else _by_metric(experiment, metric, late, compiled)


def _by_metric(
    experiment: Experiment, metric: run_plan.MetricOrder, late: Late, compiled: _Compiled
) -> list[Row] | None:
    """Returns rows read by the ranks of a metric; complete once enough rows sort before the last
    value read, because runs with equal values are ordered by other keys."""
    query = compiled.query
    begin = None
    if query.after is not None:
        rank, value = query.after[0], query.after[1]
        if rank == sort_keys.MISSING:
            return None
        if rank == sort_keys.NAN:
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
        for keys_of_call in table.parallel([*first, *calls]):
            rows += keys_of_call or []
        calls = []
        with contextlib.suppress(Moved):
            return _first_of_order(ranked, rows, experiment, metric, late.marked, compiled)
    return None


def _first_of_order(
    ranked: InOrder,
    rows: list[Row],
    experiment: Experiment,
    metric: run_plan.MetricOrder,
    marked: set[Key],
    compiled: _Compiled,
) -> list[Row] | None:
    """Returns the first rows in order; None if they cannot be determined from the ranks.

    Args:
        rows: rows of the runs that the indexer has not processed (``marked``), unordered.

    Raises:
        Moved: the segments changed; begin again.
    """
    query = compiled.query
    looked_at, seen = set(marked), 0
    first = _first(rows, query.rows)
    for added in ranked.chunks(query.rows, FURTHER_RANKS):
        seen += len(added)
        named = dict.fromkeys(keys.run(experiment.experiment_id, entry.run_id) for entry in added)
        added_rows = _rows([key for key in named if key not in looked_at], experiment, compiled)
        looked_at.update(named)
        first = _first([*first, *added_rows], query.rows)
        if len(first) == query.rows:
            last = double_of_inverted_bits(added[-1].inverted_bits)
            if first[-1][0][:2] < sort_keys.metric_field(last, ascending=metric.ascending):
                break
        if seen > STREAMED_RUNS:
            return None
    # Runs that lack the metric come last, and no entry except marks names them.
    if len(first) < query.rows or first[-1][0][0] == sort_keys.MISSING:
        return None
    _explain("MetricOrder", experiment.experiment_id, seen, len(first), seen)
    return first


def _first(rows: Iterable[Row], count: int) -> list[Row]:
    """Returns the first rows in order. All rows with one key are of one run."""
    return heapq.nsmallest(count, rows, key=itemgetter(0))


def _matching_rows(
    how: str,
    experiment: Experiment,
    named: Sequence[Key],
    compiled: _Compiled,
    entries: int = 0,
) -> list[Row]:
    rows = _first(_each_row(named, experiment, compiled), compiled.query.rows)
    _explain(how, experiment.experiment_id, len(named), len(rows), entries)
    return rows


def _start(after: sort_keys.Key | None) -> StartPosition | None:
    """Returns the position of the key ``after`` in the order "start_time DESC, run_id ASC"."""
    if after is None:
        return None
    _, negated, _, run_id = after
    if not isinstance(negated, int) or not -(2**63) <= -negated < 2**63:
        raise InvalidParameterValue("Invalid page token")
    return StartPosition(-negated, str(run_id))


def _rows(named: Sequence[Key], experiment: Experiment, compiled: _Compiled) -> list[Row]:
    return list(_each_row(named, experiment, compiled))


def _each_row(named: Sequence[Key], experiment: Experiment, compiled: _Compiled) -> Iterator[Row]:
    for at in range(0, len(named), READ_TOGETHER):
        for item in table.batch_get(named[at : at + READ_TOGETHER]):
            row = None if item is None else compiled.row(runs.of_item(item, experiment))
            if row is not None:
                yield row


def _explain(how: str, experiment_id: str, read: int, rows: int, entries: int = 0) -> None:
    """Logs how the answer was found ("all", "newest", or the name of a plan's access or order), and
    how many index entries and runs were read."""
    _logger.debug(
        "search by %s in experiment %s: %d runs read, %d rows, %d entries read",
        how,
        experiment_id,
        read,
        rows,
        entries,
    )
