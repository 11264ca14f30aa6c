"""Permission levels (READ, USE, EDIT, MANAGE, NO_PERMISSIONS, DENY), resource types, and which
grants are valid.

Rules and messages are those of MLflow's basic-auth app (``mlflow.server.auth.permissions``).
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from mlcore.errors import InvalidParameterValue


class Permission(NamedTuple):
    """A permission level and the actions that it allows."""

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
"""DENY wins over every other grant on the same resource."""
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
SKILL: Final = "skill"
GATEWAY_SECRET: Final = "gateway_secret"  # noqa: S105 -- a type of resources
GATEWAY_ENDPOINT: Final = "gateway_endpoint"
GATEWAY_MODEL_DEFINITION: Final = "gateway_model_definition"
WORKSPACE: Final = "workspace"

ANY: Final = "*"
"""The pattern of a grant on all resources of its type."""

INDIVIDUAL_TYPES: Final = frozenset(
    {
        EXPERIMENT,
        REGISTERED_MODEL,
        PROMPT,
        SCORER,
        GATEWAY_SECRET,
        GATEWAY_ENDPOINT,
        GATEWAY_MODEL_DEFINITION,
        MCP_SERVER,
        SKILL,
    }
)
"""Resource types that can be granted one by one; ``*`` grants all."""

RESOURCE_TYPES: Final = INDIVIDUAL_TYPES | {
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
"""All types; those not in ``INDIVIDUAL_TYPES`` can only be granted with ``*``."""

_WORKSPACE_LEVELS: Final = frozenset({"USE", "MANAGE"})
_RESOURCE_LEVELS: Final = frozenset({"READ", "USE", "EDIT", "MANAGE", "DENY"})
_SKILL_LEVELS: Final = _RESOURCE_LEVELS - {"USE"}


class Grant(NamedTuple):
    """A permission level on the resources of a type that match a pattern: one id or name, or ``*``
    for all."""

    resource_type: str
    resource_pattern: str
    permission: str

    def matches(self, resource_type: str, resource_id: str) -> bool:
        return self.resource_type == resource_type and (
            self.resource_pattern == ANY
            or (resource_type in INDIVIDUAL_TYPES and self.resource_pattern == resource_id)
        )


def scorer_pattern(experiment_id: str, name: str) -> str:
    """Returns the resource pattern of a grant on a scorer: ``<experiment id>/<quoted name>``."""
    return f"{canonical_experiment_id(experiment_id)}/{quote(name, safe='')}"


def scorer_of(pattern: str) -> tuple[str, str]:
    """Returns the experiment id and the scorer's name in a pattern of :func:`scorer_pattern`."""
    experiment_id, _, name = pattern.partition("/")
    return experiment_id, unquote(name)


def canonical_experiment_id(text: str) -> str:
    """Returns the canonical form of an experiment id: ``07`` and ``+7`` mean experiment 7, so that
    no other spelling evades a grant."""
    try:
        return str(int(text))
    except ValueError:
        return text


def higher(level: str, other: str) -> str:
    """Returns the name of the higher of two permission levels."""
    return level if _PRIORITY.get(level, 0) >= _PRIORITY.get(other, 0) else other


def check_resource_type(resource_type: str) -> None:
    """Checks that permissions can be granted on this type of resource. Raises InvalidParameterValue
    for an unknown type."""
    if resource_type not in RESOURCE_TYPES:
        raise InvalidParameterValue(
            f"Invalid resource type '{resource_type}'. "
            f"Valid resource types are: {tuple(sorted(RESOURCE_TYPES))}"
        )


def check_permission(permission: str) -> None:
    """Checks that the name of a permission level exists, such as ``READ``. Raises
    InvalidParameterValue otherwise."""
    if permission not in PERMISSIONS:
        raise InvalidParameterValue(
            f"Invalid permission '{permission}'. Valid permissions are: {tuple(PERMISSIONS)}"
        )


def check_level(permission: str, resource_type: str) -> None:
    """Checks that a permission level can be granted on a type of resource; whole workspaces accept
    other levels than single resources. Raises InvalidParameterValue otherwise, also for an unknown
    level or type."""
    check_permission(permission)
    check_resource_type(resource_type)
    if resource_type == WORKSPACE:
        if permission not in _WORKSPACE_LEVELS:
            raise InvalidParameterValue(
                f"Invalid permission '{permission}' for resource_type='workspace'. "
                f"Workspace-wide grants accept only: {tuple(sorted(_WORKSPACE_LEVELS))}."
            )
    elif resource_type == SKILL:
        if permission not in _SKILL_LEVELS:
            raise InvalidParameterValue(
                f"Invalid permission '{permission}' for resource_type='{SKILL}'. "
                f"Skill Registry grants accept only: {tuple(sorted(_SKILL_LEVELS))}."
            )
    elif permission not in _RESOURCE_LEVELS:
        raise InvalidParameterValue(
            f"Invalid permission '{permission}' for resource_type='{resource_type}'. "
            f"Resource-level grants accept only: {tuple(sorted(_RESOURCE_LEVELS))}."
        )


def check_pattern(resource_pattern: str, resource_type: str) -> None:
    """Checks the resource of a grant: ``*``, or one resource if resources of this type can be
    granted individually. Raises InvalidParameterValue otherwise."""
    check_resource_type(resource_type)
    if resource_pattern != ANY and resource_type not in INDIVIDUAL_TYPES:
        raise InvalidParameterValue(
            f"Invalid resource_pattern '{resource_pattern}' for resource_type='{resource_type}'. "
            "This resource type supports only wildcard ('*') grants."
        )


def check_skill(resource_id: str, resource_type: str) -> None:
    """Checks that the resource of a grant on skills has the form of a skill's name: ``*``, ``name``
    or ``@organization/name``. Raises InvalidParameterValue otherwise."""
    if resource_type != SKILL or resource_id == ANY:
        return
    first, *rest = resource_id.split("/")
    if first.startswith("@"):
        is_skill = len(first) > 1 and len(rest) == 1 and bool(rest[0])
    else:
        is_skill = bool(first) and not rest
    if not is_skill:
        raise InvalidParameterValue(
            "Invalid Skill Registry resource_id. Expected 'name' or '@organization/name'."
        )


def is_grantable(resource_type: str, resource_id: str) -> bool:
    """Whether the API for single users' permissions can read and grant a permission on this one
    resource. It cannot for prompts: as with MLflow, only administrators can grant on them."""
    if resource_type == SCORER:
        return "/" in resource_id
    return resource_type in INDIVIDUAL_TYPES and resource_type != PROMPT


def check_grantable(resource_type: str, resource_id: str) -> None:
    """Checks that users can be granted permissions on this single resource (see
    :func:`is_grantable`). Raises InvalidParameterValue otherwise."""
    check_skill(resource_id, resource_type)
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
    """Refuses grants to a user on a whole workspace, which only roles can hold. Raises
    InvalidParameterValue for the type ``workspace``."""
    if resource_type == WORKSPACE:
        raise InvalidParameterValue(
            "resource_type 'workspace' is not supported by the per-user permission convenience "
            "APIs. Use set_workspace_permission / delete_workspace_permission for workspace-wide "
            "grants."
        )
