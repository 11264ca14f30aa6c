"""Finds out whether a logged model, trace or issue refers to a run. Such a run is not moved to
another experiment, because what refers to it also names its experiment."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.table import QueryRange, table
from mlcore.models.evaluation import Issue
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.traces import search as trace_search
from mlcore.repos.traces.search import TraceQuery
from mlcore.search.trace_filter import TraceFilter

LOGGED_MODEL: Final = "a logged model"
TRACE: Final = "a trace"
ISSUE: Final = "an issue"


def find(runs: list[StoredRun]) -> tuple[str, str] | None:
    """Returns (run id, kind of the reference) of the first run to which a logged model, trace or
    issue refers; None if there is no such run. The queries run in parallel."""
    experiment_ids = sorted({run.experiment.experiment_id for run in runs})
    of_issues = table.parallel([partial(_runs_of_issues, each) for each in experiment_ids])
    named_by_issues = set().union(*of_issues)
    named_by = table.parallel([partial(_names, run) for run in runs])
    for run, name in zip(runs, named_by, strict=True):
        if name is not None:
            return run.run_id, name
        if run.run_id in named_by_issues:
            return run.run_id, ISSUE
    return None


def _names(run: StoredRun) -> str | None:
    pk, run_id = keys.experiment(run.experiment.experiment_id).pk, run.run_id
    if _any(pk, index="LSI5", prefix=keys.lsi5_logged_model_prefix(run_id)):
        return LOGGED_MODEL
    # A linked trace need not exist yet.
    if _any(keys.run_ref(run_id).pk, prefix=keys.trace_link_prefix()):
        return TRACE
    made_here = TraceQuery(TraceFilter(runs=(run_id,)), (), None, 1)
    experiment = run.experiment
    if trace_search.find([experiment.experiment_id], experiment.workspace, made_here):
        return TRACE
    return None


def _any(pk: str, **query: Any) -> bool:
    parameters: QueryRange = {**query, "limit": 1}  # type: ignore[typeddict-item]
    return bool(table.query(pk, **parameters).items)


def _runs_of_issues(experiment_id: str) -> set[str]:
    issues = table.query_all(
        keys.experiment(experiment_id).pk,
        prefix=keys.issue_prefix(),
        attributes=[Issue.source_run_id],
    )
    return {run_id for run_id in (Issue.of(each).source_run_id for each in issues) if run_id}
