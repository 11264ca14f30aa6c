"""Issues, which keep their ids, from the server to the table."""

from __future__ import annotations

from typing import Any, Final

from mlcore.entities.evaluation.issues import Issue
from mlcore.entities.experiments import Experiment
from mlcore.repos.evaluation import issues
from mlcore.repos.experiments import experiments
from mlcore.settle import settle
from operate.transfer.item import Content, Item
from operate.transfer.rest import Json
from operate.transfer.source import API_3, Source, known

_PAGE: Final = 100


def listed(source: Source, experiment_id: str, target: Experiment) -> list[Item]:
    """Those of an experiment; none of a server that has no issues.

    Args:
        experiment_id: the server's.
        target: the experiment of the table that stands for it.
    """
    told = known(
        source.server.pages(
            "POST",
            f"{API_3}/issues/search",
            "issues",
            experiment_id=experiment_id,
            max_results=_PAGE,
        )
    )
    return [_item(_issue(one, target), target) for one in told]


def _item(issue: Issue, target: Experiment) -> Item:
    def have() -> Content | None:
        found = issues.find(issue.issue_id, target.workspace)
        return None if found is None else _content(found)

    def attempt() -> None:
        found = issues.find(issue.issue_id, target.workspace)
        if found is None:
            issues.create(issue)
        else:
            issues.replace(issue._replace(version=found.version))

    def write(_: Content, __: Content | None) -> None:
        experiments.get(target.experiment_id, target.workspace)
        settle("issue", attempt)

    return Item("issue", issue.issue_id, lambda: _content(issue), have, write)


def _issue(told: Json, target: Experiment) -> Issue:
    return Issue(
        issue_id=told["issue_id"],
        experiment_id=target.experiment_id,
        name=told["name"],
        description=told.get("description", ""),
        status=told["status"],
        severity=told.get("severity"),
        root_causes=tuple(told.get("root_causes", ())),
        categories=tuple(told.get("categories", ())),
        source_run_id=told.get("source_run_id"),
        created_by=told.get("created_by"),
        created_time=int(told["created_timestamp"]),
        last_update_time=int(told["last_updated_timestamp"]),
    )


def _content(issue: Issue) -> Content:
    fields: dict[str, Any] = issue._asdict()
    del fields["issue_id"], fields["version"]
    return fields
