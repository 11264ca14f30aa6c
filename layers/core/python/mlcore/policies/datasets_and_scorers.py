"""Permission checks for requests about evaluation datasets and scorers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mlcore.auth.permissions import (
    ANY,
    EXPERIMENT,
    SCORER,
    SCORER_VERSION,
    scorer_pattern,
)
from mlcore.auth.requirements import NOT_DENIED, InheritedFrom, Requirement
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import Policy
from mlcore.repos.evaluation import datasets as evaluation_datasets


def on_experiments(access: Access, experiment_ids: Iterable[str], action: str) -> bool:
    """Whether the caller may do the action on each experiment; False if none is named."""
    distinct = list(dict.fromkeys(experiment_ids))
    return bool(distinct) and access.allows(
        *(Requirement(EXPERIMENT, experiment_id, action) for experiment_id in distinct)
    )


def on_named_experiments(action: str) -> Policy:
    """Returns the policy that requires the action on every experiment that a message names."""

    def policy(access: Access, message: Any) -> bool:
        return on_experiments(access, message.experiment_ids, action)

    return policy


def on_dataset(action: str) -> Policy:
    """Returns the policy that requires the action on every experiment of the request's evaluation
    dataset. A missing dataset, or one without experiments, is refused like one without a grant, so
    that ids cannot be probed."""

    def policy(access: Access, message: Any) -> bool:
        dataset = evaluation_datasets.find(access.workspace, message.dataset_id)
        return dataset is not None and on_experiments(access, dataset.experiment_ids, action)

    return policy


_read, _update = on_dataset("read"), on_dataset("update")


def add_to_experiments(access: Access, message: Any) -> bool:
    return _update(access, message) and on_experiments(access, message.experiment_ids, "update")


def register_scorer(access: Access, message: Any) -> bool:
    return access.allows(
        Requirement(EXPERIMENT, message.experiment_id, "update"),
        Requirement(SCORER, _pattern(message), NOT_DENIED),
        Requirement(SCORER_VERSION, ANY, NOT_DENIED),
    )


def on_scorer(action: str) -> Policy:
    def policy(access: Access, message: Any) -> bool:
        return access.allows(
            Requirement(SCORER, _pattern(message), action),
            Requirement(SCORER_VERSION, ANY, NOT_DENIED),
        )

    return policy


def delete_scorer(access: Access, message: Any) -> bool:
    """Requires the right to delete the scorer's versions; for a request that names one version also
    the right to read the scorer, for one that names none also the right to delete the scorer."""
    scorer = _pattern(message)
    return access.allows(
        Requirement(SCORER, scorer, "read" if message.has("version") else "delete"),
        Requirement(SCORER_VERSION, ANY, "delete", (InheritedFrom(SCORER, scorer, "delete"),)),
    )


def list_scorers(access: Access, message: Any) -> bool:
    """Allows listing an experiment's scorers if the caller may read the experiment. A request
    without an experiment is always allowed: its list contains only readable scorers."""
    return not message.experiment_id or access.allows(
        Requirement(EXPERIMENT, message.experiment_id, "read")
    )


def registered_scorer(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    access.grant_manage(SCORER, scorer_pattern(body["experiment_id"], body["name"]))


def _pattern(message: Any) -> str:
    return scorer_pattern(message.experiment_id, message.name)


update_named_experiments = on_named_experiments("update")
read_named_experiments = on_named_experiments("read")
read_dataset = on_dataset("read")
delete_dataset = on_dataset("delete")
update_dataset = on_dataset("update")
read_scorer = on_scorer("read")
update_scorer = on_scorer("update")
