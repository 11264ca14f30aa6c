"""Searches issues by typed conditions and by a filter, in any order, page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from evaluation import issue_messages as m
from mlcore import errors, paging
from mlcore.entities.evaluation.issues import STATUSES, Issue
from mlcore.entities.experiments import Experiment
from mlcore.http import Request
from mlcore.limits.evaluation import issues as limits
from mlcore.limits.shared_checks import check_max_results
from mlcore.repos.evaluation import issues
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import traces
from mlcore.repos.traces import traces_by_time as trace_pages
from mlcore.responses.evaluation import issues as responses
from mlcore.search import evaluation_fields, grammar
from mlcore.search.match import predicate

DEFAULT_MAX_RESULTS: Final = 100
_KIND: Final = "issue"
_VALUES: Final[dict[str, Callable[[Issue], int | str]]] = {
    "name": lambda issue: issue.name.lower(),
    "status": lambda issue: STATUSES.index(issue.status),
    "severity": lambda issue: issue.rank,
    "created_timestamp": lambda issue: issue.created_time,
    "last_updated_timestamp": lambda issue: issue.last_update_time,
    "last_seen_timestamp": lambda issue: issue.last_seen_time,
}
"""The fields that issues can be ordered by: for each a function that returns its value from an
issue."""
Key = tuple[Callable[[Issue], int | str], bool]
"""One field of the order: reads its value from an issue; and whether the greatest comes first."""


def search_issues(message: m.SearchIssues, request: Request) -> dict[str, Any]:
    """Returns issues in the order of the request, or by severity, worst first, then by number of
    traces if the request asks for trace counts, then newest first. The page token holds the values
    of the last row, so rows before it may come and go."""
    limit = message.max_results if message.has("max_results") else DEFAULT_MAX_RESULTS
    check_max_results(limit)
    matches = _conditions(message)
    query = _query(message, request)
    after = _position(message.page_token, query)
    entity = evaluation_fields.ISSUE
    in_filter = predicate(grammar.parse_filter(message.filter_string, entity), entity)
    keys = _keys(message.order_by)
    searched = _experiments(message.experiment_id, request)
    chosen = [
        issue
        for experiment in searched
        for issue in issues.of_experiment(experiment)
        if matches(issue) and in_filter(issue)
    ]
    counting = message.include_trace_count
    counts = _trace_counts(searched, request) if counting and chosen else Counter()
    if not keys:
        keys = [
            (lambda issue: issue.rank, True),
            (lambda issue: counts[issue.issue_id], True),
            (lambda issue: issue.created_time, True),
        ]
    keys.append((lambda issue: issue.issue_id, True))
    for value, descending in reversed(keys):  # Python's sort is stable
        chosen.sort(key=value, reverse=descending)
    start = 0 if after is None else sum(not _follows(issue, after, keys) for issue in chosen)
    rows = chosen[start : start + limit + 1]
    page = paging.fitting(rows[:limit], _weight)
    answer: dict[str, Any] = {"next_page_token": ""}
    if page:
        basic = message.view == "basic"
        answer["issues"] = [
            responses.issue(issue, counts[issue.issue_id] if counting else None, basic=basic)
            for issue in page
        ]
    if len(page) < len(rows):
        answer["next_page_token"] = paging.token([value(page[-1]) for value, _ in keys], query)
    if message.include_total_count:
        answer["total_count"] = len(chosen)
    return answer


def _conditions(message: m.SearchIssues) -> Callable[[Issue], bool]:
    """Checks the typed conditions and returns a function that tests an issue against them."""
    limits.check_searched_name(message.name)
    for field in ("statuses", "severities", "order_by"):
        limits.check_condition(getattr(message, field), field)
    limits.check_texts(message.categories, "categories")
    statuses = {limits.check_status(status) for status in message.statuses}
    severities = {limits.check_severity(severity) for severity in message.severities}
    categories = set(map(_folded, message.categories))
    if message.has("view"):
        limits.check_view(message.view)
    name = message.name.lower()

    def matches(issue: Issue) -> bool:
        return (
            name in issue.name.lower()
            and (not statuses or issue.status in statuses)
            and (not severities or issue.severity in severities)
            and (not categories or not categories.isdisjoint(map(_folded, issue.categories)))
        )

    return matches


def _query(message: m.SearchIssues, request: Request) -> list[object]:
    """Returns the values that a page token is bound to: the workspace and the request's fields,
    except page size and token."""
    return [
        request.workspace,
        message.experiment_id,
        message.filter_string,
        message.include_trace_count,
        message.name,
        sorted(set(message.statuses)),
        sorted(set(message.severities)),
        sorted(set(map(_folded, message.categories))),
        list(message.order_by),
        message.include_total_count,
        message.view,
    ]


def _position(token: str, query: list[object]) -> list[object] | None:
    try:
        return paging.position_of(token, query)
    except errors.InvalidParameterValue:
        raise errors.InvalidParameterValue(
            "Invalid page token or token does not match the issue query"
        ) from None


def _keys(orders: Sequence[str]) -> list[Key]:
    keys: list[Key] = []
    for order in orders:
        field, *direction = order.split() or [""]
        word = direction[0].upper() if direction else "ASC"
        if field not in _VALUES or len(direction) > 1 or word not in ("ASC", "DESC"):
            raise errors.InvalidParameterValue(f"Invalid issue order_by: {order!r}")
        keys.append((_VALUES[field], word == "DESC"))
    return keys


def _follows(issue: Issue, after: Sequence[object], keys: Sequence[Key]) -> bool:
    """Whether an issue comes after the row that a page token names. Raises InvalidParameterValue if
    the token is forged."""
    values = [value(issue) for value, _ in keys]
    if list(map(type, values)) != list(map(type, after)):
        raise errors.InvalidParameterValue("Invalid issue page token")
    for (_, descending), own, other in zip(keys, values, after, strict=True):
        if own != other:
            is_greater: bool = own > other  # type: ignore[operator] # of one type
            return is_greater is not descending
    return False


def _folded(category: str) -> str:
    return category.strip().lower()


def _experiments(experiment_id: str, request: Request) -> list[Experiment]:
    if not experiment_id:
        wanted = list(experiments.ids_of_workspace(request.workspace))
    else:
        wanted = canonical_ids([experiment_id])
    return experiments.find_existing(wanted, request.workspace)


def _trace_counts(searched: Sequence[Experiment], request: Request) -> Counter[str]:
    """Returns the number of traces that have an assessment naming an issue, by the issue's id.
    Reads all traces of the experiments."""
    counts: Counter[str] = Counter()
    stored_traces = trace_pages.newest_first(
        [experiment.experiment_id for experiment in searched],
        request.workspace,
        trace_pages.Window(),
    )
    for stored in stored_traces:
        assessments = traces.entity(stored).assessments
        counts.update({each.name for each in assessments if each.kind == _KIND})
    return counts


def _weight(issue: Issue) -> int:
    texts = (issue.name, issue.description, *issue.root_causes, *issue.categories)
    metadata = (text for entry in issue.metadata.items() for text in entry)
    return 600 + paging.weight_of((*texts, *metadata))
