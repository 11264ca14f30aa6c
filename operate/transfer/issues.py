"""Transfers issues from an MLflow server to the product's table. The issues keep their ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from mlcore.entities.evaluation.issues import Issue
from mlcore.entities.experiments import Experiment
from mlcore.errors import ResourceAlreadyExists
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import issues
from mlcore.repos.experiments import experiments
from operate.transfer.mlflow_client import Json
from operate.transfer.source_reader import API_3, SourceReader, empty_if_unsupported
from operate.transfer.transfer_item import Content, TransferItem

_PAGE: Final = 100
T = TypeVar("T")


def listed(source: SourceReader, experiment_id: str, target: Experiment) -> list[TransferItem]:
    """Returns, for an import, one TransferItem per issue of an experiment; an empty list if the
    source server does not support issues.

    Args:
        experiment_id: the experiment's id on the source server.
        target: the corresponding experiment of the table.
    """
    listed_issues = empty_if_unsupported(
        source.server.pages(
            "POST",
            f"{API_3}/issues/search",
            "issues",
            experiment_id=experiment_id,
            max_results=_PAGE,
        )
    )
    return [_item(_issue(issue, target), target) for issue in listed_issues]


def _item(issue: Issue, target: Experiment) -> TransferItem:
    def have() -> Content | None:
        existing = issues.find(issue.issue_id, target.workspace)
        return None if existing is None else _content(existing)

    def attempt() -> None:
        existing = issues.find(issue.issue_id, target.workspace)
        if existing is None:
            issues.create(issue)
        elif existing.experiment_id != issue.experiment_id:
            raise ResourceAlreadyExists("Another experiment has an issue with this id.")
        else:
            issues.replace(issue._replace(version=existing.version))

    def write(_: Content, __: Content | None) -> None:
        experiments.get(target.experiment_id, target.workspace)
        retry_on_conflict("issue", attempt)

    return TransferItem("issue", issue.issue_id, lambda: _content(issue), have, write)


def _issue(fields: Json, target: Experiment) -> Issue:
    return Issue(
        issue_id=fields["issue_id"],
        experiment_id=target.experiment_id,
        name=fields["name"],
        description=fields.get("description", ""),
        status=fields["status"],
        severity=fields.get("severity"),
        root_causes=tuple(fields.get("root_causes", ())),
        categories=tuple(fields.get("categories", ())),
        source_run_id=fields.get("source_run_id"),
        created_by=fields.get("created_by"),
        created_time=int(fields["created_timestamp"]),
        last_update_time=int(fields["last_updated_timestamp"]),
        later_seen_time=_unless(
            fields.get("last_seen_timestamp"), fields["created_timestamp"], int
        ),
        updated_by=_unless(fields.get("last_updated_by"), fields.get("created_by"), str),
        metadata=dict(fields.get("metadata", {})),
    )


def _unless(value: Any, default: Any, convert: Callable[[Any], T]) -> T | None:
    """Returns the value; None if it is absent or equals the default."""
    return None if value is None or value == default else convert(value)


def _content(issue: Issue) -> Content:
    fields: dict[str, Any] = issue._asdict()
    del fields["issue_id"], fields["version"]
    return fields
