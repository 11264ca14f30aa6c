"""Issues: one item each in the partition of their experiment."""

from __future__ import annotations

import json

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Put, table
from mlcore.entities.evaluation.issues import Issue
from mlcore.ids import new_ulid, now_ms
from mlcore.models.evaluation import Issue as IssueItem
from mlcore.repos.evaluation import entity_refs
from mlcore.settle import Conflict


def create(issue: Issue) -> None:
    """One transaction: the issue, whose id is new, and its place."""
    place = entity_refs.put(issue.issue_id, issue.experiment_id)
    table.transact([Put(_item(issue)), place], new_ulid())


def find(issue_id: str) -> Issue | None:
    """Two consistent GetItem."""
    experiment_id = entity_refs.experiment_of(issue_id)
    if experiment_id is None:
        return None
    item = table.get(keys.issue(experiment_id, issue_id))
    return None if item is None else _issue(item)


def of_experiment(experiment_id: str) -> list[Issue]:
    """One consistent Query for each MB."""
    pk = keys.experiment(experiment_id).pk
    return [_issue(item) for item in table.query_all(pk, prefix=keys.issue_prefix())]


def replace(issue: Issue) -> None:
    """Writes an issue that was read and then changed. Raises Conflict."""
    unchanged = Condition()
    unchanged.require_equal(IssueItem.version, issue.version)
    try:
        table.put(_item(issue), unchanged)
    except ConditionFailed as failed:
        raise Conflict from failed


def _item(issue: Issue) -> Raw:
    place = keys.issue(issue.experiment_id, issue.issue_id)
    item = IssueItem(
        PK=place.pk,
        SK=place.sk,
        entity_id=issue.issue_id,
        experiment_id=issue.experiment_id,
        name=issue.name,
        description=issue.description,
        status=issue.status,
        severity=issue.severity,
        root_causes=json.dumps(issue.root_causes) if issue.root_causes else None,
        categories=json.dumps(issue.categories) if issue.categories else None,
        source_run_id=issue.source_run_id,
        created_by=issue.created_by,
        created_time=issue.created_time,
        last_update_time=issue.last_update_time,
        version=issue.version + 1,
        updated_at=now_ms(),
    )
    return dict(item.serialize())


def _issue(raw: Raw) -> Issue:
    item = IssueItem.of(raw)
    return Issue(
        issue_id=item.entity_id,
        experiment_id=item.experiment_id,
        name=item.name,
        description=item.description,
        status=item.status,
        severity=item.severity,
        root_causes=tuple(json.loads(item.root_causes or "[]")),
        categories=tuple(json.loads(item.categories or "[]")),
        source_run_id=item.source_run_id,
        created_by=item.created_by,
        created_time=item.created_time,
        last_update_time=item.last_update_time,
        version=item.version,
    )
