"""Requests of the workspace RPCs, in the field order of MLflow's service.proto."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Message, required, string


class TraceArchivalConfig(Message):
    location: str
    retention: str
    checks = {"location": (string,), "retention": (string,)}


class ListWorkspaces(Message):
    """Takes no arguments."""


class CreateWorkspace(Message):
    name: str
    description: str
    default_artifact_root: str
    trace_archival_config: TraceArchivalConfig | None
    checks = {
        "name": (required, string),
        "description": (string,),
        "default_artifact_root": (string,),
    }


class GetWorkspace(Message):
    workspace_name: str


class UpdateWorkspace(Message):
    workspace_name: str
    description: str
    default_artifact_root: str
    trace_archival_config: TraceArchivalConfig | None
    checks = {"description": (string,), "default_artifact_root": (string,)}


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
