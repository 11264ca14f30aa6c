"""Permission checks for reading and writing files, decided by what a path names: a run, logged
model, trace, experiment or skill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcore import errors
from mlcore.artifacts import safe_path
from mlcore.artifacts.paths import key_in_workspace
from mlcore.artifacts.skill_uploads import segments_below
from mlcore.auth.permissions import (
    ANY,
    EXPERIMENT,
    LOGGED_MODEL,
    RUN,
    TRACE,
    WORKSPACE,
    Permission,
)
from mlcore.auth.requirements import Requirement
from mlcore.environment import workspaces_enabled
from mlcore.limits.registry import version_number
from mlcore.models.logged_models import LoggedModel
from mlcore.policies import location_rights
from mlcore.policies.access import Access, permission_without_grant
from mlcore.policies.logged_models import on_models
from mlcore.policies.registry import may_read_version
from mlcore.policies.shared_rules import Policy, inherited, on_runs, subject
from mlcore.repos.logged_models import logged_models
from mlcore.repos.registry import model_versions
from mlcore.repos.runs.core import runs

_FOLDERS = {"models": LOGGED_MODEL, "traces": TRACE}


def proxied(action: str, *, tree: bool = False) -> Policy:
    """Returns the policy of a route of the artifact proxy. Its paths are
    ``<experiment>/<run>/artifacts/…``, ``<experiment>/models/…`` or ``<experiment>/traces/…``.

    Args:
        tree: whether the route also acts on everything below the path.
    """

    def policy(access: Access, message: Any) -> bool:
        try:
            path = safe_path(_path(message))
        except errors.MlflowError:
            return False
        if segments_below(path) is not None:
            return action != "read" or location_rights.may_on_skill_files(access, path, action)
        scopes = _containing_experiments(path, access.workspace, tree=tree)
        if not scopes:
            return bool(getattr(_permission_outside_experiments(access), f"can_{action}"))
        return all(
            _allows(access, experiment_id, segments, action, tree=tree)
            for experiment_id, segments in scopes
        )

    return policy


def _containing_experiments(
    path: str, workspace: str, *, tree: bool
) -> list[tuple[str, list[str]]]:
    """Returns each experiment whose storage contains a path, with the path's segments below that
    storage."""
    try:
        key = key_in_workspace(path, workspace)
    except errors.InvalidParameterValue:
        own_storage = location_rights.default_storage(
            path
        )  # a path of another workspace is refused later, by the route
        return (
            []
            if own_storage is None
            else [(own_storage.experiment_id, own_storage.segments_below(path))]
        )
    return [
        (storage.experiment_id, storage.segments_below(key))
        for storage in location_rights.storages_around(key, tree=tree)
    ]


def _allows(
    access: Access, experiment_id: str, segments: list[str], action: str, *, tree: bool
) -> bool:
    types = _resource_types(segments, tree=tree)
    if not types:
        return access.allows(Requirement(EXPERIMENT, experiment_id, action))
    return access.allows(
        Requirement(EXPERIMENT, experiment_id, "read"),
        *(inherited(experiment_id, resource_type, action) for resource_type in types),
    )


def _resource_types(segments: list[str], *, tree: bool) -> tuple[str, ...]:
    """Returns the resource types of the files at a path below an experiment; none if the path
    belongs to the experiment itself."""
    if not segments:
        return (RUN, TRACE, LOGGED_MODEL) if tree else ()
    if segments[0] in _FOLDERS:
        return (_FOLDERS[segments[0]],)
    if tree or segments[1:2] == ["artifacts"] or location_rights.RUN_FOLDERS.fullmatch(segments[0]):
        return (RUN,)
    return ()


def _permission_outside_experiments(access: Access) -> Permission:
    """Returns the permission on files that belong to no experiment, and on the root of the
    store."""
    if not workspaces_enabled():
        return permission_without_grant(access.workspace)
    return access.grants().on(WORKSPACE, ANY) or permission_without_grant(access.workspace)


def _path(message: Any) -> str:
    return str(getattr(message, "artifact_path", "") or getattr(message, "path", ""))


def read_file_of_run(access: Access, message: Any) -> bool:
    return _file_of_run(access, message.run_id or message.run_uuid, "read")


def update_file_of_run(access: Access, message: Any) -> bool:
    """Allows an upload if the caller may write the files of the run."""
    return _file_of_run(access, message.run_id, "update")


def _file_of_run(access: Access, run_id: str, action: str) -> bool:
    if not run_id:
        raise errors.InvalidParameterValue("Request must specify run_id or run_uuid parameter")
    return files_of_runs(access, [run_id], action)


def files_of_runs(access: Access, run_ids: Sequence[str], action: str) -> bool:
    """Whether the caller may act on the files of runs. The caller needs the right on the runs
    themselves (:func:`on_runs`), and on other experiments' storage in which the runs' files lie."""
    return on_runs(access, run_ids, action) and location_rights.may_use_outer_storages(
        access, filter(None, map(runs.locate, run_ids)), action
    )


def files_of_models(access: Access, model_ids: Sequence[str], action: str) -> bool:
    """Whether the caller may act on the files of logged models. The caller needs the right on the
    models themselves, and on other experiments' storage in which the models' files lie."""
    items = logged_models.find(model_ids, access.workspace)
    experiment_ids = [LoggedModel.of(item).experiment_id for item in items if item is not None]
    return on_models(access, model_ids, action) and location_rights.may_use_outer_storages(
        access, experiment_ids, action
    )


def files_of_run(action: str) -> Policy:
    """Returns a permission check: the caller must have the right to the action on the artifact
    files of the run that a request message names in ``run_id`` or ``run_uuid``."""

    def policy(access: Access, message: Any) -> bool:
        run_id = message.run_id or subject(message, "run_uuid", "run_id")
        return files_of_runs(access, [run_id], action)

    return policy


def directories_of_model(access: Access, message: Any) -> bool:
    return files_of_models(access, [message.model_id], "read")


def upload_of_run_or_model(access: Access, message: Any) -> bool:
    if bool(message.run_id) == bool(message.model_id):
        raise errors.InvalidParameterValue("Exactly one of run_id and model_id must be provided.")
    if message.model_id:
        return files_of_models(access, [message.model_id], "update")
    return files_of_runs(access, [message.run_id], "update")


def file_of_model(access: Access, message: Any) -> bool:
    return files_of_models(access, [message.model_id], "read")


def file_of_version(access: Access, message: Any) -> bool:
    name = message.name
    if not name:
        raise errors.InvalidParameterValue("Request must specify name parameter")
    if not may_read_version(access, name):
        return False
    try:
        number = version_number(message.version)
        stored = model_versions.get(access.workspace, name, number).version
    except errors.MlflowError:
        return True  # the route answers with the error
    return location_rights.may_read_source(access, stored.storage_location or stored.source)


read_proxied = proxied("read")
manage_proxied_tree = proxied("manage", tree=True)
update_proxied = proxied("update")
read_files_of_run = files_of_run("read")
