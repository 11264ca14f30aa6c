"""The rules of issues, which assessments of traces refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from evaluation import parents
from evaluation import review_messages as m
from mlcore import errors, ids, paging
from mlcore.entities.evaluation.issues import PENDING, Issue
from mlcore.entities.experiments import Experiment
from mlcore.http import Request
from mlcore.limits.evaluation.issues import check_severity, check_status
from mlcore.limits.text import check_max_results
from mlcore.repos.evaluation import issues
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.runs import runs
from mlcore.repos.traces import pages as trace_pages
from mlcore.repos.traces import traces
from mlcore.responses.evaluation import issues as responses
from mlcore.search import evaluation_fields, grammar
from mlcore.search.match import predicate
from mlcore.settle import settle

DEFAULT_MAX_RESULTS: Final = 100
_KIND: Final = "issue"


def create_issue(message: m.CreateIssue, request: Request) -> dict[str, Any]:
    status = check_status(message.status) if message.has("status") else PENDING
    severity = check_severity(message.severity) if message.has("severity") else None
    experiment = parents.not_deleted(message.experiment_id, request)
    if message.source_run_id:
        try:
            runs.load(message.source_run_id, request.workspace)
        except errors.ResourceDoesNotExist as missing:
            raise errors.BadRequest(missing.message) from None
    now = ids.now_ms()
    issue = Issue(
        issue_id=f"iss-{uuid4().hex}",
        experiment_id=experiment.experiment_id,
        name=message.name,
        description=message.description,
        status=status,
        severity=severity,
        root_causes=tuple(message.root_causes),
        categories=tuple(message.categories),
        source_run_id=message.source_run_id or None,
        created_by=message.created_by or None,
        created_time=now,
        last_update_time=now,
    )
    issues.create(issue)
    return {"issue": responses.issue(issue)}


def get_issue(message: m.GetIssue, request: Request) -> dict[str, Any]:
    return {"issue": responses.issue(_get(message.issue_id, request))}


def update_issue(message: m.UpdateIssue, request: Request) -> dict[str, Any]:
    """An empty name or description changes nothing."""
    sets: dict[str, Any] = {}
    if message.has("status"):
        sets["status"] = check_status(message.status)
    if message.has("severity"):
        sets["severity"] = check_severity(message.severity)
    if message.name:
        sets["name"] = message.name
    if message.description:
        sets["description"] = message.description

    def attempt() -> Issue:
        issue = _get(message.issue_id, request)
        wanted = issue._replace(last_update_time=ids.now_ms(), **sets)
        issues.replace(wanted)
        return wanted

    return {"issue": responses.issue(settle("issue", attempt))}


def search_issues(message: m.SearchIssues, request: Request) -> dict[str, Any]:
    """The worst first, then what most traces have if that is asked for, then the newest."""
    limit = message.max_results if message.has("max_results") else DEFAULT_MAX_RESULTS
    check_max_results(limit)
    entity = evaluation_fields.ISSUE
    matches = predicate(grammar.parse_filter(message.filter_string, entity), entity)
    counting = message.include_trace_count
    query = [request.workspace, message.experiment_id, message.filter_string, counting]
    after = paging.position_of(message.page_token, query)
    searched = _experiments(message.experiment_id, request)
    found = [
        issue
        for experiment in searched
        for issue in issues.of_experiment(experiment)
        if matches(issue)
    ]
    counts = _trace_counts(searched, request) if counting and found else Counter()
    # Ids descend: sorted twice, for a text cannot be negated.
    found.sort(key=lambda issue: issue.issue_id, reverse=True)
    found.sort(key=lambda issue: _rank(issue, counts))
    start = 0
    if after is not None:
        known = [[*_rank(issue, counts), issue.issue_id] for issue in found]
        start = known.index(after) + 1 if after in known else _start(known, after)
    rows = found[start : start + limit + 1]
    page = paging.fitting(rows[:limit], _weight)
    answer: dict[str, Any] = {"next_page_token": ""}
    if page:
        answer["issues"] = [
            responses.issue(issue, counts[issue.issue_id] if counting else None) for issue in page
        ]
    if len(page) < len(rows):
        last = page[-1]
        answer["next_page_token"] = paging.token([*_rank(last, counts), last.issue_id], query)
    return answer


def _rank(issue: Issue, counts: Counter[str]) -> tuple[int, int, int]:
    return -issue.rank, -counts[issue.issue_id], -issue.created_time


def _start(rows: list[list[Any]], after: list[Any]) -> int:
    """Where what comes behind a row begins that is no more."""
    if [type(part) for part in after] != [int, int, int, str]:
        raise errors.InvalidParameterValue("Invalid page token")
    place = after[:3]
    return sum(row[:3] < place or (row[:3] == place and row[3] >= after[3]) for row in rows)


def _experiments(experiment_id: str, request: Request) -> list[Experiment]:
    if not experiment_id:
        wanted = list(experiments.ids_of_workspace(request.workspace))
    else:
        wanted = canonical_ids([experiment_id])
    return experiments.known(wanted, request.workspace)


def _trace_counts(searched: Sequence[Experiment], request: Request) -> Counter[str]:
    """How many traces have an assessment that names an issue; reads all traces."""
    counts: Counter[str] = Counter()
    every = trace_pages.newest_first(
        [experiment.experiment_id for experiment in searched],
        request.workspace,
        trace_pages.Window(),
    )
    for stored in every:
        assessments = traces.entity(stored).assessments
        counts.update({one.name for one in assessments if one.kind == _KIND})
    return counts


def _get(issue_id: str, request: Request) -> Issue:
    issue = issues.find(issue_id, request.workspace)
    if issue is not None:
        return issue
    raise errors.ResourceDoesNotExist(f"Issue with ID '{issue_id}' not found")


def _weight(issue: Issue) -> int:
    texts = (issue.name, issue.description, *issue.root_causes, *issue.categories)
    return 600 + paging.weight_of(texts)
