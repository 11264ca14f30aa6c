"""Permission checks for requests about runs and their metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore.auth.permissions import RUN
from mlcore.limits.promptlab import experiment_of
from mlcore.policies.access import Access
from mlcore.policies.location_rights import may_use_outer_storages
from mlcore.policies.logged_models import on_models
from mlcore.policies.shared_rules import Policy, create_inside, on_runs, subject
from mlcore.repos.runs.core import runs


def create(access: Access, message: Any) -> bool:
    return access.allows(*create_inside(subject(message, "experiment_id"), RUN))


def create_with_files(access: Access, message: Any) -> bool:
    """Allows creating a run to callers who may create runs in the experiment and may also write
    into all other experiments' storage that will contain the run's files."""
    experiment_id = experiment_of(message)
    return access.allows(*create_inside(experiment_id, RUN)) and may_use_outer_storages(
        access, [experiment_id], "update"
    )


def on_run(action: str) -> Policy:
    """Returns the policy that requires the action on the run that a message names in ``run_id`` or
    ``run_uuid``."""

    def policy(access: Access, message: Any) -> bool:
        return on_runs(access, [_run_id(message)], action)

    return policy


def on_every_run(action: str) -> Policy:
    """Returns the policy that requires the action on each run that a message names in
    ``run_ids``."""

    def policy(access: Access, message: Any) -> bool:
        return on_runs(access, message.run_ids, action)

    return policy


def move_runs(access: Access, message: Any) -> bool:
    """Allows moving runs to another experiment to callers who may update each of the runs, the
    other storages in which the files of their experiments lie, and create runs in the target.
    Whoever may read the target experiment will be able to read the runs' files."""
    target = create_inside(subject(message, "experiment_id"), RUN)
    return (
        access.allows(*target)
        and on_runs(access, message.run_ids, "update")
        and may_use_outer_storages(
            access, filter(None, map(runs.locate, message.run_ids)), "update"
        )
    )


def log_metric(access: Access, message: Any) -> bool:
    return _updates_run_and_models(access, message, [message.model_id])


def log_batch(access: Access, message: Any) -> bool:
    return _updates_run_and_models(access, message, [metric.model_id for metric in message.metrics])


def log_models(access: Access, message: Any) -> bool:
    return _updates_run_and_models(access, message, [model.model_id for model in message.models])


def read_history_of_many(access: Access, message: Any) -> bool:
    return on_runs(access, message.run_id, "read")


def _updates_run_and_models(access: Access, message: Any, model_ids: Iterable[str]) -> bool:
    """Whether the caller may update the run and each of the logged models. A metric may belong to a
    logged model of another experiment, so the right on the run does not imply the right on the
    model."""
    return on_runs(access, [_run_id(message)], "update") and on_models(
        access, [model_id for model_id in model_ids if model_id], "update"
    )


def _run_id(message: Any) -> str:
    run_id: str = message.run_id
    return run_id or subject(message, "run_uuid", "run_id")


read_run = on_run("read")
update_run = on_run("update")
delete_run = on_run("delete")
read_intervals = on_every_run("read")
update_runs = on_every_run("update")
