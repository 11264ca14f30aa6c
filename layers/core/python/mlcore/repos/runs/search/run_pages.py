"""Searches runs: from the filter text of a request to a page of JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mlcore import paging
from mlcore.auth.requirements import Reader
from mlcore.entities.lifecycle_stages import VIEW_STAGES
from mlcore.entities.runs import Run
from mlcore.limits.shared_checks import check_max_results
from mlcore.process_cache import ProcessCache
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.search import run_search
from mlcore.responses import runs as responses
from mlcore.search import fields, grammar, sort_keys
from mlcore.wire.encoding import Encoded, encode


class Shown(NamedTuple):
    """The form in which a search returns a run: the run, its JSON, and the estimated size of the
    JSON."""

    run: Run
    """The run; from :func:`as_text` without metrics, params and tags, which are in ``data``."""
    weight: int
    """Estimated bytes of its JSON, without its datasets."""
    data: responses.Json | Encoded
    """The metrics, params and tags of the run as the answer contains them."""
    whole: Encoded | None = None
    """The JSON of the run, if it has neither inputs nor outputs: nothing is added to it, and no
    right hides a part of it."""


def as_objects(stored: StoredRun) -> Shown:
    """Returns a run as JSON objects, for responses that are changed before they are sent."""
    run = runs.outline(stored)
    return Shown(run, _weight(run), responses.data(run))


class _Seen(NamedTuple):
    state: tuple[int, int | None, str]
    """The run's version, when it was written, and the stage, which its experiment can overrule."""
    shown: Shown


_seen: ProcessCache[str, _Seen] = ProcessCache(
    "run as searches show it", seconds=600.0, weigh=lambda seen: seen.shown.weight + 3_000
)


def as_text(stored: StoredRun) -> Shown:
    """Returns a run with its JSON text, which responses contain unchanged. The text is cached until
    the run changes, for ten minutes at most, because the same runs are shown again and again."""
    item = stored.item
    state = (item.version, item.updated_at, stored.stage)
    seen = _seen.get(item.run_id)
    if seen is not None and seen.state == state:
        return seen.shown
    run = runs.outline(stored)
    bare, data = run._replace(metrics={}, params={}, tags={}), responses.encoded_data(run)
    shown = Shown(bare, _weight(run), data)
    if not (run.dataset_inputs or run.model_inputs or run.model_outputs):
        shown = shown._replace(data=Encoded(""), whole=Encoded(encode(responses.run(bare, data))))
    _seen.put(item.run_id, _Seen(state, shown))
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
    """Returns a page of runs as MLflow's JSON. Two round trips for the newest runs, and one for
    their datasets that are not cached; for others see :mod:`mlcore.repos.runs.search.run_search`.

    Args:
        experiment_texts: the experiment ids as the request has them.
        view: which runs to search: active, deleted or all (MLflow's ``run_view_type``).
        limit: runs per page.
        readable: tells which experiments the caller may read.
        show: returns a run in the form in which the answer contains it.
    """
    check_max_results(limit)
    comparisons = grammar.parse_filter(filter_string, fields.RUN)
    ordering = grammar.parse_order_by(order_by, fields.RUN)
    query = [sorted(set(experiment_texts)), filter_string, view, list(order_by)]
    position = paging.position_of(page_token, query)
    after = None if position is None else sort_keys.restore_key(position, ordering, fields.RUN)

    rows = run_search.find(
        [
            canonical_id
            for canonical_id in canonical_ids(experiment_texts)
            if readable(canonical_id)
        ],
        workspace,
        run_search.RunQuery(comparisons, ordering, VIEW_STAGES[view], after, limit + 1),
    )
    shown_runs = _with_datasets([show(stored) for _, stored in rows[:limit]])
    page = paging.fitting(shown_runs, lambda shown: shown.weight + _weight_of_datasets(shown.run))
    answer: dict[str, Any] = {}
    if page:
        answer["runs"] = [shown.whole or responses.run(shown.run, shown.data) for shown in page]
    if len(page) < len(rows):
        answer["next_page_token"] = paging.token(rows[len(page) - 1][0], query)
    return answer


def _with_datasets(shown_runs: list[Shown]) -> list[Shown]:
    """Returns the runs with all fields of their datasets; one BatchGetItem for datasets not
    cached."""
    if not any(shown.run.dataset_inputs for shown in shown_runs):
        return shown_runs
    whole = runs.with_datasets([shown.run for shown in shown_runs])
    return [shown._replace(run=run) for shown, run in zip(shown_runs, whole, strict=True)]


def _weight(run: Run) -> int:
    texts = [*run.metrics, *run.params, *run.params.values(), *run.tags, *run.tags.values()]
    return 600 + 100 * len(run.metrics) + 30 * len(texts) + paging.weight_of(texts)


def _weight_of_datasets(run: Run) -> int:
    if not run.dataset_inputs:
        return 0
    texts = [
        text
        for entry in run.dataset_inputs
        for text in (entry.dataset.source, entry.dataset.schema, entry.dataset.profile)
        if text
    ]
    return 300 * len(run.dataset_inputs) + 30 * len(texts) + paging.weight_of(texts)
