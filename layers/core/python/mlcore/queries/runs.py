"""Searching runs: filter, order, pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mlcore import paging
from mlcore.auth.requirements import Reader
from mlcore.entities.runs import Run
from mlcore.entities.stages import VIEW_STAGES
from mlcore.limits.text import check_max_results
from mlcore.memory import Memory
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.runs import runs
from mlcore.repos.runs import search as run_search
from mlcore.repos.runs.runs import StoredRun
from mlcore.responses import runs as responses
from mlcore.search import fields, grammar, order
from mlcore.wire.encoding import Encoded


class Shown(NamedTuple):
    """A run in an answer."""

    run: Run
    """Its data may be missing, which are in ``data``."""
    weight: int
    """Bytes that its JSON may take, without its datasets."""
    data: responses.Json | Encoded


def as_objects(stored: StoredRun) -> Shown:
    """For answers that are looked into."""
    run = runs.outline(stored)
    return Shown(run, _weight(run), responses.data(run))


class _Seen(NamedTuple):
    write: tuple[int, int | None]
    """The version of the run, and when it was written."""
    shown: Shown


_seen: Memory[str, _Seen] = Memory(
    "run as searches show it", seconds=600.0, weigh=lambda seen: seen.shown.weight + 3_000
)


def as_text(stored: StoredRun) -> Shown:
    """For answers that are sent as they are. What a page showed is shown again and again, so the
    texts of a version are made once."""
    item = stored.item
    write = (item.version, item.updated_at)
    seen = _seen.get(item.run_id)
    if seen is not None and seen.write == write:
        # Whether an experiment is deleted is not in its runs' items.
        return seen.shown._replace(run=seen.shown.run._replace(lifecycle_stage=stored.stage))
    run = runs.outline(stored)
    bare = run._replace(metrics={}, params={}, tags={})
    shown = Shown(bare, _weight(run), responses.encoded_data(run))
    _seen.put(item.run_id, _Seen(write, shown))
    return shown


def search(
    workspace: str,
    experiment_texts: Sequence[str],
    filter_string: str,
    view: str,
    limit: int,
    order_by: Sequence[str],
    page_token: str,
    readable: Reader,
    show: Callable[[StoredRun], Shown] = as_objects,
) -> dict[str, Any]:
    """Two round trips for the newest runs; for others see :mod:`mlcore.repos.runs.search`."""
    check_max_results(limit)
    comparisons = grammar.parse_filter(filter_string, fields.RUN)
    ordering = grammar.parse_order_by(order_by, fields.RUN)
    query = [sorted(set(experiment_texts)), filter_string, view, list(order_by)]
    position = paging.position_of(page_token, query)
    after = None if position is None else order.restore_key(position, ordering, fields.RUN)

    rows = run_search.find(
        [one for one in canonical_ids(experiment_texts) if readable(one)],
        workspace,
        run_search.Query(comparisons, ordering, VIEW_STAGES[view], after, limit + 1),
    )
    found = [show(stored) for _, stored in rows[:limit]]
    whole = runs.with_datasets([one.run for one in found])
    found = [one._replace(run=run) for one, run in zip(found, whole, strict=True)]
    page = paging.fitting(found, lambda one: one.weight + _weight_of_datasets(one.run))
    answer: dict[str, Any] = {}
    if page:
        answer["runs"] = [responses.run(run, data) for run, _, data in page]
    if len(page) < len(rows):
        answer["next_page_token"] = paging.token(rows[len(page) - 1][0], query)
    return answer


def _weight(run: Run) -> int:
    texts = [*run.metrics, *run.params, *run.params.values(), *run.tags, *run.tags.values()]
    return 600 + 100 * len(run.metrics) + 30 * len(texts) + paging.weight_of(texts)


def _weight_of_datasets(run: Run) -> int:
    texts = [
        text
        for entry in run.dataset_inputs
        for text in (entry.dataset.source, entry.dataset.schema, entry.dataset.profile)
        if text
    ]
    return 300 * len(run.dataset_inputs) + 30 * len(texts) + paging.weight_of(texts)
