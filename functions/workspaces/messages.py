"""Requests of the workspace RPCs, in the field order of MLflow's service.proto."""

from __future__ import annotations

from typing import Any, Final

from mlcore.wire import Message, array, invalid_value, item_type_string, required, string
from mlcore.wire.checks import CheckFailed

MOST_OF_USERNAME: Final = 255
MOST_WORKSPACES: Final = 50


def text(value: Any) -> None:
    """Like ``string``, but null is refused too, as on MLflow's server."""
    string(value)


def archival(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, dict):
        raise CheckFailed
    for field in ("location", "retention"):
        if field in value and not isinstance(value[field], str):
            hint = f" Hint: Value was of type '{type(value[field]).__name__}'."
            raise CheckFailed(invalid_value(field, value[field], hint))


def username_length(value: Any) -> None:
    """Checks the length of a user's name; MLflow's limit."""
    if isinstance(value, str) and len(value) > MOST_OF_USERNAME:
        raise CheckFailed(f"A username has at most {MOST_OF_USERNAME} characters.")


def workspace_names(value: Any) -> None:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_WORKSPACES:
        raise CheckFailed(
            f"'workspaces' names 1 to {MOST_WORKSPACES} workspaces, or is [\"*\"] for all."
        )


class TraceArchivalConfig(Message):
    location: str
    retention: str


class ListWorkspaces(Message):
    """The request to list the workspaces; it takes no arguments."""


class CreateWorkspace(Message):
    name: str
    description: str
    default_artifact_root: str
    trace_archival_config: TraceArchivalConfig | None
    checks = {
        "name": (required, text),
        "description": (text,),
        "default_artifact_root": (text,),
        "trace_archival_config": (archival,),
    }


class GetWorkspace(Message):
    workspace_name: str


class UpdateWorkspace(Message):
    workspace_name: str
    description: str
    default_artifact_root: str
    trace_archival_config: TraceArchivalConfig | None
    checks = {
        "description": (text,),
        "default_artifact_root": (text,),
        "trace_archival_config": (archival,),
    }


class DeleteWorkspace(Message):
    workspace_name: str
    mode: str
    from_arguments = ("mode",)


class ListReaders(Message):
    """The request to list the readers of the system tables; it takes no arguments."""


class PutReader(Message):
    username: str
    workspaces: list[str]
    checks = {
        "username": (required, string, username_length),
        "workspaces": (required, array, item_type_string, workspace_names),
    }


class DeleteReader(Message):
    username: str
    checks = {"username": (required, string)}


class ListConfig(Message):
    """The request to list the deployment's settings; it takes no arguments."""


class GetConfig(Message):
    key: str


class PutConfig(Message):
    key: str
    value: Any
    checks = {"value": (required,)}
