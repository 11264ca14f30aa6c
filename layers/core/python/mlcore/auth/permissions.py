"""Levels of permission, the types of resources they are granted on, and which grants are valid.

The rules and messages are those of MLflow's basic-auth app (``mlflow.server.auth.permissions``).
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from mlcore.errors import InvalidParameterValue


class Permission(NamedTuple):
    """What a level allows."""

    name: str
    can_read: bool = False
    can_use: bool = False
    can_update: bool = False
    can_delete: bool = False
    can_manage: bool = False


READ: Final = Permission("READ", can_read=True)
USE: Final = Permission("USE", can_read=True, can_use=True)
EDIT: Final = Permission("EDIT", can_read=True, can_use=True, can_update=True)
MANAGE: Final = Permission("MANAGE", True, True, True, True, True)
DENY: Final = Permission("DENY")
"""A veto: it wins over every other grant of its own resource."""
NO_PERMISSIONS: Final = Permission("NO_PERMISSIONS")

PERMISSIONS: Final = {p.name: p for p in (READ, USE, EDIT, MANAGE, NO_PERMISSIONS, DENY)}

_PRIORITY: Final = {"DENY": -1, "NO_PERMISSIONS": 0, "READ": 1, "USE": 2, "EDIT": 3, "MANAGE": 4}

EXPERIMENT: Final = "experiment"
REGISTERED_MODEL: Final = "registered_model"
PROMPT: Final = "prompt"
SCORER: Final = "scorer"
SCORER_VERSION: Final = "scorer_version"
RUN: Final = "run"
TRACE: Final = "trace"
ASSESSMENT: Final = "assessment"
LOGGED_MODEL: Final = "logged_model"
REGISTERED_MODEL_VERSION: Final = "registered_model_version"
PROMPT_VERSION: Final = "prompt_version"
MCP_SERVER: Final = "mcp_server"
MCP_SERVER_VERSION: Final = "mcp_server_version"
GATEWAY_SECRET: Final = "gateway_secret"  # noqa: S105 -- a type of resources
GATEWAY_ENDPOINT: Final = "gateway_endpoint"
GATEWAY_MODEL_DEFINITION: Final = "gateway_model_definition"
WORKSPACE: Final = "workspace"

ANY: Final = "*"
"""The pattern of a grant on all resources of its type."""

WITH_ID: Final = frozenset(
    {
        EXPERIMENT,
        REGISTERED_MODEL,
        PROMPT,
        SCORER,
        GATEWAY_SECRET,
        GATEWAY_ENDPOINT,
        GATEWAY_MODEL_DEFINITION,
        MCP_SERVER,
    }
)
"""Types that are granted one by one, or all with ``*``."""

RESOURCE_TYPES: Final = WITH_ID | {
    WORKSPACE,
    RUN,
    TRACE,
    ASSESSMENT,
    LOGGED_MODEL,
    "review_queue",
    REGISTERED_MODEL_VERSION,
    PROMPT_VERSION,
    SCORER_VERSION,
    MCP_SERVER_VERSION,
}
"""The others are granted with ``*`` alone."""

_WORKSPACE_LEVELS: Final = frozenset({"USE", "MANAGE"})
_RESOURCE_LEVELS: Final = frozenset({"READ", "USE", "EDIT", "MANAGE", "DENY"})


class Grant(NamedTuple):
    """A level on the resources of a type that a pattern names."""

    resource_type: str
    resource_pattern: str
    permission: str

    def matches(self, resource_type: str, resource_id: str) -> bool:
        return self.resource_type == resource_type and (
            self.resource_pattern == ANY
            or (resource_type in WITH_ID and self.resource_pattern == resource_id)
        )


def scorer_pattern(experiment_id: str, name: str) -> str:
    """What a grant on a scorer names."""
    return f"{experiment_named(experiment_id)}/{quote(name, safe='')}"


def scorer_of(pattern: str) -> tuple[str, str]:
    """The experiment's id and the scorer's name in what :func:`scorer_pattern` made."""
    experiment_id, _, name = pattern.partition("/")
    return experiment_id, unquote(name)


def experiment_named(text: str) -> str:
    """The id that a request means by a text: ``07`` and ``+7`` are experiment 7, as what holds
    for it holds for whoever writes its number so."""
    try:
        return str(int(text))
    except ValueError:
        return text


def higher(one: str, other: str) -> str:
    """The name of the higher of two levels."""
    return one if _PRIORITY.get(one, 0) >= _PRIORITY.get(other, 0) else other


def check_resource_type(resource_type: str) -> None:
    """Raises InvalidParameterValue: there is no such type of resource."""
    if resource_type not in RESOURCE_TYPES:
        raise InvalidParameterValue(
            f"Invalid resource type '{resource_type}'. "
            f"Valid resource types are: {tuple(sorted(RESOURCE_TYPES))}"
        )


def check_permission(permission: str) -> None:
    """Raises InvalidParameterValue: there is no such level."""
    if permission not in PERMISSIONS:
        raise InvalidParameterValue(
            f"Invalid permission '{permission}'. Valid permissions are: {tuple(PERMISSIONS)}"
        )


def check_level(permission: str, resource_type: str) -> None:
    """Raises InvalidParameterValue: the level cannot be granted on this type."""
    check_permission(permission)
    check_resource_type(resource_type)
    if resource_type == WORKSPACE:
        if permission not in _WORKSPACE_LEVELS:
            raise InvalidParameterValue(
                f"Invalid permission '{permission}' for resource_type='workspace'. "
                f"Workspace-wide grants accept only: {tuple(sorted(_WORKSPACE_LEVELS))}."
            )
    elif permission not in _RESOURCE_LEVELS:
        raise InvalidParameterValue(
            f"Invalid permission '{permission}' for resource_type='{resource_type}'. "
            f"Resource-level grants accept only: {tuple(sorted(_RESOURCE_LEVELS))}."
        )


def check_pattern(resource_pattern: str, resource_type: str) -> None:
    """Raises InvalidParameterValue: resources of this type are not granted one by one."""
    check_resource_type(resource_type)
    if resource_pattern != ANY and resource_type not in WITH_ID:
        raise InvalidParameterValue(
            f"Invalid resource_pattern '{resource_pattern}' for resource_type='{resource_type}'. "
            "This resource type supports only wildcard ('*') grants."
        )


def is_grantable(resource_type: str, resource_id: str) -> bool:
    """Whether the permission of one user on one resource can be asked for, and given by those who
    manage the resource. A prompt is no such resource, as with MLflow: administrators alone grant on
    it."""
    if resource_type == SCORER:
        return "/" in resource_id
    return resource_type in WITH_ID and resource_type != PROMPT


def check_grantable(resource_type: str, resource_id: str) -> None:
    """Raises InvalidParameterValue: not :func:`is_grantable`."""
    if is_grantable(resource_type, resource_id):
        return
    if resource_type == SCORER:
        raise InvalidParameterValue(
            "Invalid scorer resource_id. Expected '<experiment_id>/<scorer_name>'."
        )
    raise InvalidParameterValue(
        f"resource_type '{resource_type}' is not supported by the per-user permission "
        "convenience APIs."
    )


def check_no_workspace(resource_type: str) -> None:
    """Raises InvalidParameterValue: a workspace is granted through roles only."""
    if resource_type == WORKSPACE:
        raise InvalidParameterValue(
            "resource_type 'workspace' is not supported by the per-user permission convenience "
            "APIs. Use set_workspace_permission / delete_workspace_permission for workspace-wide "
            "grants."
        )
