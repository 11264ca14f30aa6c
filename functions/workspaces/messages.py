"""Requests of the workspace RPCs, in the field order of MLflow's service.proto."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Message, invalid_value, required, string
from mlcore.wire.checks import CheckFailed


def text(value: Any) -> None:
    """As ``string``, but here MLflow's server minds a null, too."""
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


class TraceArchivalConfig(Message):
    location: str
    retention: str


class ListWorkspaces(Message):
    """Takes no arguments."""


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


class ListConfig(Message):
    """Takes no arguments."""


class GetConfig(Message):
    key: str


class PutConfig(Message):
    key: str
    value: Any
    checks = {"value": (required,)}
