"""Deleting a workspace: refused while something is in it, or everything goes with it, or moves to
the default one.

What takes longer than a request has goes on when the request is repeated, as clients do with 503:
meanwhile the workspace looks missing and nothing new comes to it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from typing import Any, Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.http import Request
from mlcore.ids import now_ms
from mlcore.limits import workspaces as limits
from mlcore.models.experiments import Experiment
from mlcore.repos import mcp_servers, webhooks
from mlcore.repos.evaluation import datasets as evaluation_datasets
from mlcore.repos.evaluation import records as evaluation_records
from mlcore.repos.experiments import experiments
from mlcore.repos.files import former_locations
from mlcore.repos.gateway import budgets
from mlcore.repos.gateway import configuration as gateway
from mlcore.repos.registry import registered_models
from mlcore.repos.removal import purging, remains
from mlcore.repos.removal.remains import OutOfTime
from mlcore.repos.settings import system_tables
from mlcore.repos.users import grants, roles, users
from mlcore.repos.workspaces import moving, workspaces
from mlcore.repos.workspaces.moving import NameTaken
from mlcore.settle import Conflict, settle
from workspaces import messages as m
from workspaces.service import check_enabled

MODES: Final = ("SET_DEFAULT", "CASCADE", "RESTRICT")
WORK_SECONDS: Final = 20.0


def index_lag_ms() -> int:
    """For so long after something was made the global indexes may not tell of it."""
    return int(os.environ.get("INDEX_LAG_MS", "5000"))


def delete_workspace(message: m.DeleteWorkspace, request: Request) -> dict[str, Any]:
    check_enabled("/<workspace_name>")
    name = message.workspace_name
    if name == DEFAULT_WORKSPACE:
        raise errors.InvalidParameterValue(
            f"The '{DEFAULT_WORKSPACE}' workspace is reserved and cannot be deleted"
        )
    limits.check_name(name)
    mode = message.mode if message.has("mode") else "RESTRICT"
    if mode not in MODES:
        raise errors.InvalidParameterValue(
            f"Invalid deletion mode '{mode}'. Must be one of: {', '.join(MODES)}"
        )
    deadline = time.monotonic() + WORK_SECONDS

    def attempt() -> dict[str, Any]:
        item = workspaces.find(name)
        if item is None:
            raise workspaces.missing(name)
        _wait_for_indexes(item)
        try:
            _empty(name, mode, deadline)
        except OutOfTime:
            raise _unfinished(name) from None
        if not workspaces.delete(item):
            raise Conflict
        return {}

    return settle("workspace", attempt)


def _empty(name: str, mode: str, deadline: float) -> None:
    if mode == "RESTRICT":
        _check_empty(name)
    else:
        if mode == "SET_DEFAULT":
            _check_conflicts(name)
        workspaces.leave(name, mode)
        (_move if mode == "SET_DEFAULT" else _purge)(name, deadline)
    _delete_grants(name)


def _wait_for_indexes(item: Raw) -> None:
    entered = workspaces.entered_at(item)
    time.sleep(max(0, min(index_lag_ms(), entered + index_lag_ms() - now_ms())) / 1000)


def _check_empty(name: str) -> None:
    known = gateway.read(name)
    for kind, found in (
        ("registered_models", _models(name)),
        ("experiments", _experiments(name)),
        ("webhooks", webhooks.of_workspace(name)),
        ("evaluation_datasets", evaluation_datasets.of_workspace(name)),
        ("mcp_servers", mcp_servers.of_workspace(name)),
        ("secrets", known.secrets),
        ("endpoints", known.endpoints),
        ("model_definitions", known.model_definitions),
        ("guardrails", known.guardrails),
        ("budget_policies", budgets.of_workspace(name)),
    ):
        count = len(found)
        if count:
            raise errors.InvalidState(
                f"Cannot delete workspace '{name}': table '{kind}' still contains {count} "
                "resource(s). Remove or reassign them before deleting the workspace."
            )


def _check_conflicts(name: str) -> None:
    taken = []
    for model, _ in _models(name):
        if registered_models.find(DEFAULT_WORKSPACE, model) is not None:
            taken.append(f"  - registered_models: {model!r}")
    for experiment in experiments.known(_experiments(name), name):
        if experiments.find_by_name(DEFAULT_WORKSPACE, experiment.name) is not None:
            taken.append(f"  - experiments: {experiment.name!r}")
    here = {webhook.name for webhook in webhooks.of_workspace(DEFAULT_WORKSPACE)}
    taken += [
        f"  - webhooks: {webhook.name!r}"
        for webhook in webhooks.of_workspace(name)
        if webhook.name in here
    ]
    taken += [
        f"  - mcp_servers: {server.name!r}"
        for server in mcp_servers.of_workspace(name)
        if mcp_servers.find(DEFAULT_WORKSPACE, server.name) is not None
    ]
    taken += [
        f"  - {kind}: {part!r}" for kind, part in gateway.names_taken(name, DEFAULT_WORKSPACE)
    ]
    if taken:
        raise _conflicts(name, taken)


def _move(name: str, deadline: float) -> None:
    try:
        for _, place in _models(name):
            moving.registered_model(place, DEFAULT_WORKSPACE)
            remains.check(deadline)
        for experiment_id in _experiments(name):
            moving.experiment(experiment_id, DEFAULT_WORKSPACE)
            remains.check(deadline)
    except NameTaken as taken:
        raise _conflicts(name, [f"  - {taken}"]) from taken
    for webhook in webhooks.of_workspace(name):
        moving.webhook(webhook, DEFAULT_WORKSPACE)
    for dataset in evaluation_datasets.of_workspace(name):
        evaluation_datasets.move(dataset, DEFAULT_WORKSPACE)
    for server in mcp_servers.of_workspace(name):
        mcp_servers.move(server, DEFAULT_WORKSPACE)
        remains.check(deadline)
    gateway.move(name, DEFAULT_WORKSPACE)
    for policy in budgets.of_workspace(name):
        budgets.write(policy._replace(workspace=DEFAULT_WORKSPACE))


def _purge(name: str, deadline: float) -> None:
    former_locations.enter(deadline)
    for _, place in _models(name):
        purging.registered_model(place, deadline)
        remains.check(deadline)
    for experiment_id in _experiments(name):
        purging.experiment(experiment_id, deadline)
        remains.check(deadline)
    for webhook in webhooks.of_workspace(name):
        webhooks.delete(webhook)
    for dataset in evaluation_datasets.of_workspace(name):
        evaluation_records.delete_all(dataset)
        evaluation_datasets.delete(dataset)
        remains.check(deadline)
    for server in mcp_servers.of_workspace(name):
        mcp_servers.delete(server)
        remains.check(deadline)
    gateway.clear(name)
    for policy in budgets.of_workspace(name):
        budgets.delete(policy)
    purging.workspace_files(name)


def _delete_grants(name: str) -> None:
    """Roles of the workspace, what users were granted in it, and who may read its rows in the
    system tables."""
    system_tables.forget_workspace(name)
    for role in roles.find_all():
        if role.workspace == name:
            with contextlib.suppress(errors.ResourceDoesNotExist):
                roles.delete(role.role_id)
    for profile in users.find_all():
        for held in profile.grants:
            if held.workspace == name:
                grants.delete(profile.user, name, held.grant.resource_type, held.grant[1])


def _experiments(name: str) -> list[str]:
    """Those that are there: the index may still tell of others."""
    ids = list(experiments.ids_of_workspace(name))
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in ids])
    return [
        experiment_id
        for experiment_id, item in zip(ids, items, strict=True)
        if item is not None and Experiment.of(item).workspace == name
    ]


def _models(name: str) -> list[tuple[str, Key]]:
    listed: Iterable[tuple[str, Key]] = registered_models.listed(name)
    found = list(listed)
    items = table.batch_get([place for _, place in found])
    return [pair for pair, item in zip(found, items, strict=True) if item is not None]


def _conflicts(name: str, names: list[str]) -> errors.InvalidState:
    details = "\n".join(names)
    return errors.InvalidState(
        f"Cannot reassign resources from workspace '{name}' to "
        f"'{DEFAULT_WORKSPACE}': the following names already exist in the "
        f"default workspace and would cause conflicts:\n{details}\n"
        "Rename or remove the conflicting resources before retrying."
    )


def _unfinished(name: str) -> errors.TemporarilyUnavailable:
    return errors.TemporarilyUnavailable(
        f"The workspace '{name}' is being deleted. Repeat the request until it is gone."
    )
