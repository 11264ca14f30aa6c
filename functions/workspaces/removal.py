"""Deletes a workspace. By mode, the request is refused while the workspace is not empty (RESTRICT),
deletes its content (CASCADE), or moves its content to the default workspace (SET_DEFAULT).

Work that takes longer than one request continues when the client repeats the request, as clients do
after 503. Meanwhile the workspace looks missing and accepts nothing new.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.http import Request
from mlcore.ids import now_ms
from mlcore.limits import workspaces as limits
from mlcore.models.experiments import Experiment
from mlcore.models.registry import RegisteredModel
from mlcore.models.workspaces import Workspace
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos import alerts, mcp_servers, saved_queries, skills, webhooks
from mlcore.repos.evaluation import dataset_records as evaluation_records
from mlcore.repos.evaluation import datasets as evaluation_datasets
from mlcore.repos.experiments import experiments
from mlcore.repos.gateway import budgets
from mlcore.repos.gateway import configuration as gateway
from mlcore.repos.kubeflow import serving
from mlcore.repos.kubeflow import workspace_removal as kubeflow_removal
from mlcore.repos.registry import homes, registered_models
from mlcore.repos.removal import former_root_locations, permanent_deletion, remains, workspace_moves
from mlcore.repos.removal.remains import OutOfTime
from mlcore.repos.removal.workspace_moves import NameTakenInTarget
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.users import grants, roles, users
from mlcore.repos.users.grants import GrantMissing
from mlcore.repos.workspaces import recent_entities, workspaces
from workspaces import messages as m
from workspaces.service import check_enabled

MODES: Final = ("SET_DEFAULT", "CASCADE", "RESTRICT")
WORK_SECONDS: Final = 20.0


def _index_lag_ms() -> int:
    """Returns the milliseconds for which a new item may still be missing in the global indexes."""
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
            _empty(item, mode, deadline)
        except OutOfTime:
            raise _unfinished(name) from None
        if not workspaces.delete(item):
            raise WriteConflict
        recent_entities.delete(name)
        return {}

    return retry_on_conflict("workspace", attempt)


def _empty(item: Raw, mode: str, deadline: float) -> None:
    """Prepares the deletion of a workspace: in mode RESTRICT checks that it is empty, in CASCADE
    deletes its content, in SET_DEFAULT moves the content to the default workspace. Then deletes its
    grants, which nobody needs any more, because nothing can be created in the workspace by then.
    Raises InvalidState, OutOfTime or WriteConflict.

    Args:
        item: the item of the workspace.
    """
    name = Workspace.of(item).name
    if mode == "RESTRICT":
        _check_empty(name)
        workspaces.start_deletion(name, mode, unchanged_since=item)
    else:
        if mode == "SET_DEFAULT":
            _check_conflicts(name)
        workspaces.start_deletion(name, mode)
        (_move if mode == "SET_DEFAULT" else _purge)(name, deadline)
    _delete_grants(name)


def _wait_for_indexes(item: Raw) -> None:
    """Sleeps, if something was created in the workspace just now, until the global indexes list
    it."""
    entered = workspaces.last_creation_time(item)
    time.sleep(max(0, min(_index_lag_ms(), entered + _index_lag_ms() - now_ms())) / 1000)


def _check_empty(name: str) -> None:
    gateway_resources = gateway.read(name)
    for kind, resources in (
        ("registered_models", _models(name)),
        ("experiments", _experiments(name)),
        ("webhooks", webhooks.of_workspace(name)),
        ("evaluation_datasets", evaluation_datasets.of_workspace(name)),
        ("mcp_servers", mcp_servers.of_workspace(name)),
        ("skills", skills.of_workspace(name)),
        ("saved_queries", saved_queries.of_workspace(name)),
        ("alerts", alerts.of_workspace(name)),
        ("secrets", gateway_resources.secrets),
        ("endpoints", gateway_resources.endpoints),
        ("model_definitions", gateway_resources.model_definitions),
        ("guardrails", gateway_resources.guardrails),
        ("budget_policies", budgets.of_workspace(name)),
        ("serving_environments", kubeflow_removal.environments_of(name)),
    ):
        _check_none(name, kind, len(resources))
    # Last: versions and runs may have many, which are gone with them.
    _check_none(name, "artifacts", len(kubeflow_removal.artifacts_of(name)))


def _check_none(name: str, kind: str, count: int) -> None:
    if count:
        raise errors.InvalidState(
            f"Cannot delete workspace '{name}': table '{kind}' still contains {count} "
            "resource(s). Remove or reassign them before deleting the workspace."
        )


def _check_conflicts(name: str) -> None:
    """Checks that the default workspace has no resource with the name of a resource of this
    workspace, so that the resources can be moved there. Raises InvalidState, which lists the
    conflicts."""
    # Checked twice: a repetition of the request may move a resource between the two reads.
    if _names_taken(name) and (conflicts := _names_taken(name)):
        raise _conflicts(name, conflicts)


def _names_taken(name: str) -> list[str]:
    """Returns the resources whose names the default workspace has, too, as lines of a message.
    Raises InvalidState if a resource cannot be moved."""
    skills_here = skills.of_workspace(name)
    if any(map(skills.has_uploads, skills_here)):
        raise errors.InvalidState(
            f"Cannot move workspace '{name}' to the default workspace: MLflow-backed "
            "skill versions would lose access to their artifact content. Remove or re-register "
            "those versions before retrying."
        )
    conflicts = []
    for model, _ in _models(name):
        if registered_models.find(DEFAULT_WORKSPACE, model) is not None:
            conflicts.append(f"  - registered_models: {model!r}")
    for experiment in experiments.find_existing(_experiments(name), name):
        if experiments.find_by_name(DEFAULT_WORKSPACE, experiment.name) is not None:
            conflicts.append(f"  - experiments: {experiment.name!r}")
    # What an interrupted move has already copied is no conflict.
    here = webhooks.of_workspace(name)
    own_ids = {webhook.webhook_id for webhook in here}
    default_names = {
        webhook.name
        for webhook in webhooks.of_workspace(DEFAULT_WORKSPACE)
        if webhook.webhook_id not in own_ids
    }
    conflicts += [
        f"  - webhooks: {webhook.name!r}" for webhook in here if webhook.name in default_names
    ]
    conflicts += [
        f"  - mcp_servers: {server.name!r}"
        for server in mcp_servers.of_workspace(name)
        if mcp_servers.is_taken(server, DEFAULT_WORKSPACE)
    ]
    conflicts += [
        f"  - skills: organization={skill.identity.organization!r}, name={skill.identity.name!r}"
        for skill in skills_here
        if skills.is_taken(skill, DEFAULT_WORKSPACE)
    ]
    conflicts += [
        f"  - saved_queries: {query.name!r}"
        for query in saved_queries.of_workspace(name)
        if saved_queries.find(DEFAULT_WORKSPACE, query.name) is not None
    ]
    conflicts += [
        f"  - serving_environments: {environment!r}"
        for environment in kubeflow_removal.environments_of(name)
        if serving.environment_named(DEFAULT_WORKSPACE, environment) is not None
    ]
    conflicts += [
        f"  - {kind}: {taken_name!r}"
        for kind, taken_name in gateway.names_taken(name, DEFAULT_WORKSPACE)
    ]
    return conflicts


def _move(name: str, deadline: float) -> None:
    try:
        for _, home in _models(name):
            workspace_moves.registered_model(home, DEFAULT_WORKSPACE)
            remains.check_deadline(deadline)
        for experiment_id in _experiments(name):
            workspace_moves.experiment(experiment_id, DEFAULT_WORKSPACE)
            remains.check_deadline(deadline)
    except NameTakenInTarget as taken:
        raise _conflicts(name, [f"  - {taken}"]) from taken
    for _ in kubeflow_removal.move(name, DEFAULT_WORKSPACE):
        remains.check_deadline(deadline)
    for webhook in webhooks.of_workspace(name):
        workspace_moves.webhook(webhook, DEFAULT_WORKSPACE)
    for dataset in evaluation_datasets.of_workspace(name):
        evaluation_datasets.move(dataset, DEFAULT_WORKSPACE)
    for server in mcp_servers.of_workspace(name):
        mcp_servers.move(server, DEFAULT_WORKSPACE)
        remains.check_deadline(deadline)
    for skill in skills.of_workspace(name):
        skills.move(skill, DEFAULT_WORKSPACE)
        remains.check_deadline(deadline)
    for query in saved_queries.of_workspace(name):
        saved_queries.move(query, DEFAULT_WORKSPACE)
    for alert in alerts.of_workspace(name):
        workspace_moves.alert(alert, DEFAULT_WORKSPACE)
    gateway.move(name, DEFAULT_WORKSPACE)
    for policy in budgets.of_workspace(name):
        budgets.write(policy._replace(workspace=DEFAULT_WORKSPACE))


def _purge(name: str, deadline: float) -> None:
    former_root_locations.enter_locations(deadline)
    for _, home in _models(name):
        permanent_deletion.registered_model(home, deadline)
        remains.check_deadline(deadline)
    for experiment_id in _experiments(name):
        permanent_deletion.experiment(experiment_id, deadline)
        remains.check_deadline(deadline)
    for _ in kubeflow_removal.delete(name):
        remains.check_deadline(deadline)
    for webhook in webhooks.of_workspace(name):
        webhooks.delete(webhook)
    for dataset in evaluation_datasets.of_workspace(name):
        evaluation_records.delete_with_dataset(dataset)
        remains.check_deadline(deadline)
    for server in mcp_servers.of_workspace(name):
        mcp_servers.delete(server)
        remains.check_deadline(deadline)
    for skill in skills.of_workspace(name):
        skills.delete(skill)
        remains.check_deadline(deadline)
    for query in saved_queries.of_workspace(name):
        saved_queries.delete(query)
    for alert in alerts.of_workspace(name):
        alerts.remove(alert)
    gateway.clear(name)
    for policy in budgets.of_workspace(name):
        budgets.delete(policy)
    permanent_deletion.workspace_files(name)


def _delete_grants(name: str) -> None:
    """Deletes the roles of the workspace, the grants of users in it, and the rights to read its
    rows in the system tables."""
    system_tables_readers.forget_workspace(name)
    for role in roles.find_all():
        if role.workspace == name:
            with contextlib.suppress(errors.ResourceDoesNotExist):
                roles.delete(role.role_id)
    for profile in users.find_all():
        for grant in profile.grants:
            if grant.workspace == name:
                # A repetition of the request may be under way at the same time.
                with contextlib.suppress(GrantMissing):
                    grants.delete(profile.user, name, grant.grant.resource_type, grant.grant[1])


def _experiments(name: str) -> list[str]:
    """Returns the ids of the workspace's experiments. The index may still list deleted ones, so
    each is read; it may lack new ones, which are found with strong consistency."""
    listed = experiments.ids_of_workspace(name)
    ids = list(dict.fromkeys([*listed, *recent_entities.experiment_ids(name)]))
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in ids])
    return [
        experiment_id
        for experiment_id, item in zip(ids, items, strict=True)
        if item is not None and Experiment.of(item).workspace == name
    ]


def _models(name: str) -> list[tuple[str, Key]]:
    """Returns the names and keys of the workspace's models. The index may still list deleted ones,
    so each is read; it may lack new and renamed ones, which are found with strong consistency."""
    entries: dict[Key, str] = {key: model for model, key in registered_models.listed(name)}
    for owner in homes.owners_of(recent_entities.model_homes(name)):
        listed = keys.model_at(owner.model_pk) in entries
        item = None if listed else homes.model_of(owner)
        if item is not None and RegisteredModel.of(item).workspace == name:
            entries[key_of_item(item)] = RegisteredModel.of(item).name
    items = table.batch_get(list(entries))
    return [
        (model, key)
        for (key, model), item in zip(entries.items(), items, strict=True)
        if item is not None
    ]


def _conflicts(name: str, names: list[str]) -> errors.InvalidState:
    details = "\n".join(names)
    return errors.InvalidState(
        f"Cannot reassign resources from workspace '{name}' to "
        f"'{DEFAULT_WORKSPACE}': the following resources already exist in the "
        f"default workspace and would cause conflicts:\n{details}\n"
        "Rename or remove the conflicting resources before retrying."
    )


def _unfinished(name: str) -> errors.TemporarilyUnavailable:
    return errors.TemporarilyUnavailable(
        f"The workspace '{name}' is being deleted. Repeat the request until it is gone."
    )
