"""Who may read and write files: by the run, logged model or trace that their path names."""

from __future__ import annotations

import re
from typing import Any

from mlcore import errors
from mlcore.artifacts import safe_path
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
from mlcore.policies.access import Access, absent
from mlcore.policies.logged_models import on_models
from mlcore.policies.registry import may_read_version
from mlcore.policies.requests import Policy, inherited, on_runs
from mlcore.settings import workspaces_enabled

_FOLDERS = {"models": LOGGED_MODEL, "traces": TRACE}
EXPERIMENTS = re.compile(r"[0-9A-Z]{26}|[0-9]+")
RUN_FOLDERS = re.compile(r"[0-9A-Z]{26}|[0-9a-f]{32}")


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
        segments = [segment for segment in path.split("/") if segment]
        if segments[:1] == ["workspaces"]:
            segments = segments[2:]
        if not segments or not EXPERIMENTS.fullmatch(segments[0]):
            return bool(getattr(_general(access), f"can_{action}"))
        experiment_id, *rest = segments
        kinds = _kinds(rest, tree=tree)
        if not kinds:
            return access.allows(Requirement(EXPERIMENT, experiment_id, action))
        return access.allows(
            Requirement(EXPERIMENT, experiment_id, "read"),
            *(inherited(experiment_id, kind, action) for kind in kinds),
        )

    return policy


def _kinds(rest: list[str], *, tree: bool) -> tuple[str, ...]:
    """The types of things that a path below an experiment belongs to."""
    if not rest:
        return (RUN, TRACE, LOGGED_MODEL) if tree else ()
    if rest[0] in _FOLDERS:
        return (_FOLDERS[rest[0]],)
    if tree or rest[1:2] == ["artifacts"] or RUN_FOLDERS.fullmatch(rest[0]):
        return (RUN,)
    return ()


def _general(access: Access) -> Permission:
    """What holds for the root of all files, and for what lies there besides experiments."""
    if not workspaces_enabled():
        return absent(access.workspace)
    return access.grants().on(WORKSPACE, ANY) or absent(access.workspace)


def _path(message: Any) -> str:
    if hasattr(message, "parameters"):  # the request of a plain route
        return str(message.parameters.get("artifact_path", ""))
    return str(getattr(message, "artifact_path", "") or getattr(message, "path", ""))


def on_run_argument(action: str) -> Policy:
    """As :func:`mlcore.policies.runs.on_run`, of a plain route."""

    def policy(access: Access, message: Any) -> bool:
        arguments = message.arguments()
        run_id = arguments.get("run_id") or arguments.get("run_uuid")
        if not run_id:
            raise errors.InvalidParameterValue("Request must specify run_id or run_uuid parameter")
        return on_runs(access, [run_id], action)

    return policy


def upload_of_run_or_model(access: Access, message: Any) -> bool:
    if bool(message.run_id) == bool(message.model_id):
        raise errors.InvalidParameterValue("Exactly one of run_id and model_id must be provided.")
    if message.model_id:
        return on_models(access, [message.model_id], "update")
    return on_runs(access, [message.run_id], "update")


def file_of_model(access: Access, message: Any) -> bool:
    return on_models(access, [message.parameters["model_id"]], "read")


def file_of_version(access: Access, message: Any) -> bool:
    name = message.arguments().get("name")
    if not name:
        raise errors.InvalidParameterValue("Request must specify name parameter")
    return may_read_version(access, name)


read_proxied = proxied("read")
manage_proxied_tree = proxied("manage", tree=True)
update_proxied = proxied("update")
read_files_of_run = on_run_argument("read")
update_files_of_run = on_run_argument("update")
