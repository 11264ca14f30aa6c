"""Stores MLflow's issues (problems found in traces): an item in the experiment's partition, and an
item that maps the issue's id to the experiment."""

from __future__ import annotations

import json

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.entities.evaluation.issues import Issue
from mlcore.entities.experiments import Experiment
from mlcore.errors import ResourceAlreadyExists
from mlcore.ids import now_ms
from mlcore.models.evaluation import Issue as IssueItem
from mlcore.repos.evaluation import entities


def create(issue: Issue) -> None:
    """Creates an issue, and the item that maps its id to its experiment. Raises
    ResourceAlreadyExists if there is an issue with this id, perhaps in another experiment or
    workspace."""
    try:
        entities.create(_KIND, issue, chosen_id=True)
    except entities.EntityNameTaken:
        raise ResourceAlreadyExists("Issue ID already exists") from None


def find(issue_id: str, workspace: str) -> Issue | None:
    """Returns an issue; None if it does not exist or if it is in another workspace. At most two
    round trips."""
    return entities.find(_KIND, issue_id, workspace)


def of_experiment(experiment: Experiment) -> list[Issue]:
    """Returns all issues of an experiment; one consistent Query per MB."""
    return entities.of_experiment(_KIND, experiment.experiment_id)


def replace(issue: Issue) -> None:
    """Writes a changed issue. Raises WriteConflict if it was written or deleted since it was
    read."""
    entities.replace(_KIND, issue)


def _item(issue: Issue) -> IssueItem:
    key = keys.issue(issue.experiment_id, issue.issue_id)
    return IssueItem(
        PK=key.pk,
        SK=key.sk,
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
        later_seen_time=issue.later_seen_time,
        updated_by=issue.updated_by,
        metadata=json.dumps(dict(issue.metadata)) if issue.metadata else None,
    )


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
        later_seen_time=item.later_seen_time,
        updated_by=item.updated_by,
        metadata=json.loads(item.metadata or "{}"),
    )


_KIND: entities.StoredKind[Issue] = entities.StoredKind(
    entity_id=lambda issue: issue.issue_id,
    key_of=keys.issue,
    prefix=keys.issue_prefix,
    item=_item,
    entity=_issue,
    version=IssueItem.version,
)
