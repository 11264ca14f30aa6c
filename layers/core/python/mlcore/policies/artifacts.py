"""Who may read and write files: by the run, logged model or trace that their path names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcore import errors
from mlcore.artifacts import safe_path
from mlcore.artifacts.paths import scoped
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
from mlcore.policies import file_rights
from mlcore.policies.access import Access, absent
from mlcore.policies.logged_models import on_models
from mlcore.policies.registry import may_read_version
from mlcore.policies.requests import Policy, inherited, on_runs, subject
from mlcore.repos.logged_models import logged_models
from mlcore.repos.registry import model_versions
from mlcore.repos.runs import runs

_FOLDERS = {"models": LOGGED_MODEL, "traces": TRACE}


def proxied(action: str, *, tree: bool = False) -> Policy:
    """A path of the artifact proxy is ``<experiment>/<run>/artifacts/…``, and so on.

    Args:
        tree: whether all that is below the path is meant, too.
    """

    def policy(access: Access, message: Any) -> bool:
        try:
            path = safe_path(_path(message))
        except errors.MlflowError:
            return False
        found = _places(path, access.workspace, tree=tree)
        if not found:
            return bool(getattr(_general(access), f"can_{action}"))
        return all(
            _allows(access, experiment_id, rest, action, tree=tree) for experiment_id, rest in found
        )

    return policy


def _places(path: str, workspace: str, *, tree: bool) -> list[tuple[str, list[str]]]:
    """The experiments in whose places a path lies, each with the segments below its place."""
    try:
        key = scoped(path, workspace)
    except errors.InvalidParameterValue:
        own = file_rights.own_place(path)  # another workspace's, which is refused later
        return [] if own is None else [(own.experiment_id, own.rest(path))]
    return [(one.experiment_id, one.rest(key)) for one in file_rights.around(key, tree=tree)]


def _allows(
    access: Access, experiment_id: str, rest: list[str], action: str, *, tree: bool
) -> bool:
    kinds = _kinds(rest, tree=tree)
    if not kinds:
        return access.allows(Requirement(EXPERIMENT, experiment_id, action))
    return access.allows(
        Requirement(EXPERIMENT, experiment_id, "read"),
        *(inherited(experiment_id, kind, action) for kind in kinds),
    )


def _kinds(rest: list[str], *, tree: bool) -> tuple[str, ...]:
    """The types of things that a path below an experiment belongs to."""
    if not rest:
        return (RUN, TRACE, LOGGED_MODEL) if tree else ()
    if rest[0] in _FOLDERS:
        return (_FOLDERS[rest[0]],)
    if tree or rest[1:2] == ["artifacts"] or file_rights.RUN_FOLDERS.fullmatch(rest[0]):
        return (RUN,)
    return ()


def _general(access: Access) -> Permission:
    """What holds for the root of all files, and for what lies there besides experiments."""
    if not workspaces_enabled():
        return absent(access.workspace)
    return access.grants().on(WORKSPACE, ANY) or absent(access.workspace)


def _path(message: Any) -> str:
    return str(getattr(message, "artifact_path", "") or getattr(message, "path", ""))


def read_file_of_run(access: Access, message: Any) -> bool:
    return _file_of_run(access, message.run_id or message.run_uuid, "read")


def update_file_of_run(access: Access, message: Any) -> bool:
    """By the run that is written to. The route refuses a request that names none, but, as in
    MLflow, only after the caller's right on the run of ``run_id`` is checked."""
    return _file_of_run(access, message.run_id or message.other_run_id, "update")


def _file_of_run(access: Access, run_id: str, action: str) -> bool:
    if not run_id:
        raise errors.InvalidParameterValue("Request must specify run_id or run_uuid parameter")
    return files_of_runs(access, [run_id], action)


def files_of_runs(access: Access, run_ids: Sequence[str], action: str) -> bool:
    """As :func:`on_runs`, and by what the places allow that their experiments lie in."""
    return on_runs(access, run_ids, action) and file_rights.may_through(
        access, filter(None, map(runs.locate, run_ids)), action
    )


def files_of_models(access: Access, model_ids: Sequence[str], action: str) -> bool:
    """As :func:`files_of_runs`."""
    items = logged_models.find(model_ids, access.workspace)
    found = [LoggedModel.of(item).experiment_id for item in items if item is not None]
    return on_models(access, model_ids, action) and file_rights.may_through(access, found, action)


def files_of_run(action: str) -> Policy:
    """The run that a message names, by either of its two names."""

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
        return True  # the route says what is wrong
    return file_rights.may_read_source(access, stored.storage_location or stored.source)


read_proxied = proxied("read")
manage_proxied_tree = proxied("manage", tree=True)
update_proxied = proxied("update")
read_files_of_run = files_of_run("read")
