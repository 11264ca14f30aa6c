"""The rules of searching runs: filter, order, pages. Every run of the experiments is looked at,
newest first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from mlcore import errors, paging
from mlcore.entities import VIEW_STAGES, Experiment, Run
from mlcore.http import Request
from mlcore.limits.experiments import experiment_id
from mlcore.repos import run_pages, runs
from mlcore.repos.run_pages import Start
from mlcore.repos.runs import Record
from mlcore.search import fields, grammar, order
from mlcore.search.match import Predicate, predicate
from runs import messages as m
from runs import responses

RESPONSE_WEIGHT = 3_500_000
"""About as many bytes of JSON as a page may have: a Lambda response ends at 6 MB. A token leads
on."""


def search_runs(message: m.SearchRuns, request: Request) -> dict[str, Any]:
    """Two round trips for the newest runs: the experiments, then one page of an index."""
    limit = message.max_results
    if limit < 1:
        raise errors.InvalidParameterValue(
            f"Invalid value {limit} for parameter 'max_results' supplied. "
            "It must be a positive integer"
        )
    view = message.run_view_type or "ACTIVE_ONLY"
    comparisons = grammar.parse_filter(message.filter, fields.RUN)
    ordering = grammar.parse_order_by(message.order_by, fields.RUN)
    query = [sorted(set(message.experiment_ids)), message.filter, view, list(message.order_by)]
    position = paging.position_of(message.page_token, query)
    after = None if position is None else order.restore_key(position, ordering, fields.RUN)
    searched = list(dict.fromkeys(map(experiment_id, message.experiment_ids)))

    def accepts(experiment: Experiment) -> bool:
        return experiment.workspace == request.workspace

    matches = predicate(comparisons, fields.RUN)
    key_of = order.sort_key(ordering, fields.RUN)
    if _is_newest_first(ordering):
        start = None if after is None else _start(after)
        page_items = run_pages.PAGE_ITEMS if comparisons else min(limit + 1, run_pages.PAGE_ITEMS)
        found = run_pages.newest_first(searched, accepts, VIEW_STAGES[view], start, page_items)
        if comparisons:
            found = (read for read in found if matches(runs.outline(read)))
        rows = list(islice(found, limit + 1))
    else:
        found = run_pages.newest_first(searched, accepts, VIEW_STAGES[view])
        keyed = _following(found, matches, key_of, after)
        rows = [read for _, read in heapq.nsmallest(limit + 1, keyed, key=itemgetter(0))]
    page = _fitting(runs.entities(rows[:limit], model_inputs=False))
    answer: dict[str, Any] = {}
    if page:
        answer["runs"] = [responses.run(run) for run in page]
    if len(page) < len(rows):
        answer["next_page_token"] = paging.token(key_of(page[-1]), query)
    return answer


def _following(
    found: Iterable[Record],
    matches: Predicate,
    key_of: order.SortKey,
    after: order.Key | None,
) -> Iterator[tuple[order.Key, Record]]:
    """The runs that match and come after a key, each with its own key."""
    for read in found:
        run = runs.outline(read)
        if matches(run):
            key = key_of(run)
            if after is None or key > after:
                yield key, read


def _is_newest_first(ordering: Sequence[grammar.OrderBy]) -> bool:
    if not ordering:
        return True
    first = ordering[0]
    return (
        len(ordering) == 1
        and first.kind == fields.ATTRIBUTE
        and first.key == "start_time"
        and not first.ascending
    )


def _start(key: order.Key) -> Start:
    """The place that a key of the order "start_time DESC, run_id ASC" stands for."""
    _, negated, _, run_id = key
    if not isinstance(negated, int) or not -(2**63) <= -negated < 2**63:
        raise errors.InvalidParameterValue("Invalid page token")
    return Start(-negated, str(run_id))


def _fitting(found: list[Run]) -> list[Run]:
    """As many of the first runs as fit a response, one at least."""
    weight = 0
    for count, run in enumerate(found):
        weight += _weight(run)
        if weight > RESPONSE_WEIGHT and count:
            return found[:count]
    return found


def _weight(run: Run) -> int:
    texts = [*run.params, *run.params.values(), *run.tags, *run.tags.values()]
    for entry in run.dataset_inputs:
        dataset = entry.dataset
        texts += [dataset.source, dataset.schema or "", dataset.profile or ""]
    return (
        600
        + 130 * len(run.metrics)
        + 30 * len(texts)
        + 300 * len(run.dataset_inputs)
        + sum(len(text) if text.isascii() else 6 * len(text) for text in texts)
    )
