"""Creates and updates issues. An assessment of a trace may refer to an issue."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from evaluation import experiment_lookup
from evaluation import issue_messages as m
from mlcore import errors, ids
from mlcore.entities.evaluation.issues import PENDING, Issue
from mlcore.http import Request
from mlcore.limits.evaluation import issues as limits
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import issues
from mlcore.repos.runs.core import runs
from mlcore.responses.evaluation import issues as responses


def create_issue(message: m.CreateIssue, request: Request) -> dict[str, Any]:
    status = limits.check_status(message.status) if message.has("status") else PENDING
    severity = limits.check_severity(message.severity) if message.has("severity") else None
    created_by = request.username() or message.created_by or None
    limits.check_name(message.name)
    if message.has("issue_id"):
        limits.check_issue_id(message.issue_id)
    limits.check_actor(created_by, "created_by")
    limits.check_texts(message.categories, "categories")
    experiment = experiment_lookup.get_unless_deleted(message.experiment_id, request)
    if message.source_run_id:
        run = runs.load(message.source_run_id, request.workspace)
        if run.experiment.experiment_id != experiment.experiment_id:
            raise errors.InvalidParameterValue("Source run must belong to the Issue experiment")
    now = ids.now_ms()
    issue = Issue(
        issue_id=message.issue_id or f"iss-{uuid4().hex}",
        experiment_id=experiment.experiment_id,
        name=message.name,
        description=message.description,
        status=status,
        severity=severity,
        root_causes=tuple(message.root_causes),
        categories=tuple(message.categories),
        source_run_id=message.source_run_id or None,
        created_by=created_by,
        created_time=now,
        last_update_time=now,
        later_seen_time=(
            message.last_seen_timestamp if message.has("last_seen_timestamp") else None
        ),
        metadata=message.metadata,
    )
    issues.create(issue)
    return {"issue": responses.issue(issue)}


def get_issue(message: m.GetIssue, request: Request) -> dict[str, Any]:
    return {"issue": responses.issue(_get(message.issue_id, request))}


def update_issue(message: m.UpdateIssue, request: Request) -> dict[str, Any]:
    """Changes the fields of an issue that the request has. Categories are replaced, metadata are
    merged (``delete_metadata_keys`` are removed), and the time of the latest observation never goes
    back."""
    sets: dict[str, Any] = {}
    if message.has("status"):
        sets["status"] = limits.check_status(message.status)
    if message.has("severity"):
        sets["severity"] = limits.check_severity(message.severity)
    if message.has("name"):
        limits.check_name(message.name)
        sets["name"] = message.name
    if message.has("description"):
        sets["description"] = message.description
    if message.has("categories"):
        limits.check_texts(message.categories, "categories")
        sets["categories"] = tuple(dict.fromkeys(message.categories))
    actor = request.username() or message.last_updated_by
    if actor:
        limits.check_actor(actor, "last_updated_by")
        sets["updated_by"] = actor
    limits.check_metadata_changes(message.metadata, message.delete_metadata_keys)

    def attempt() -> Issue:
        issue = _get(message.issue_id, request)
        merged = {**issue.metadata, **message.metadata}
        for key in message.delete_metadata_keys:
            merged.pop(key, None)
        limits.check_metadata(merged)
        seen = issue.later_seen_time
        if message.has("last_seen_timestamp"):
            seen = max(issue.last_seen_time, message.last_seen_timestamp)
        wanted = issue._replace(
            last_update_time=ids.now_ms(), later_seen_time=seen, metadata=merged, **sets
        )
        issues.replace(wanted)
        return wanted

    return {"issue": responses.issue(retry_on_conflict("issue", attempt))}


def _get(issue_id: str, request: Request) -> Issue:
    issue = issues.find(issue_id, request.workspace)
    if issue is not None:
        return issue
    raise errors.ResourceDoesNotExist(f"Issue with ID '{issue_id}' not found")
