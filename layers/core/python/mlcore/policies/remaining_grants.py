"""Deletes or moves the remaining grants on a resource after a request deleted or renamed it: those
that were granted meanwhile and, of a renamed model, those that did not fit into the transaction of
the request.

Routes name these functions in ``follow``; each is called with the caller's access, the message and
the body of the answer. Otherwise old grants would apply to a later resource of the same name. The
grants on a later model, MCP server or skill that somebody has made under the name meanwhile stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.auth.permissions import (
    ANY,
    GATEWAY_ENDPOINT,
    GATEWAY_MODEL_DEFINITION,
    GATEWAY_SECRET,
    MCP_SERVER,
    SCORER,
    SKILL,
    scorer_pattern,
)
from mlcore.entities.skills import SkillIdentity
from mlcore.policies.access import Access
from mlcore.repos import mcp_servers, skills
from mlcore.repos.removal import model_grants
from mlcore.repos.users import grants


def model_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    """Deletes the remaining grants on a registered model or prompt. One named ``*``, which was made
    without a login, has none."""
    if message.name == ANY:
        return
    for kind in grants.MODEL_TYPES:
        since = model_grants.since(access.workspace, message.name)
        grants.delete_on_resource(access.workspace, kind, message.name, since)


def model_renamed(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    """Moves the remaining grants on a registered model or prompt to its new name."""
    if message.name != message.new_name:
        model_grants.transfer_remaining(access.workspace, message.name, message.new_name)


def scorer_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    """Deletes the grants on a scorer if the request deleted all of its versions."""
    if not message.has("version"):
        pattern = scorer_pattern(message.experiment_id, message.name)
        grants.delete_on_resource(access.workspace, SCORER, pattern)


def secret_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    grants.delete_on_resource(access.workspace, GATEWAY_SECRET, message.secret_id)


def model_definition_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    grants.delete_on_resource(
        access.workspace, GATEWAY_MODEL_DEFINITION, message.model_definition_id
    )


def endpoint_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    grants.delete_on_resource(access.workspace, GATEWAY_ENDPOINT, message.endpoint_id)


def mcp_server_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    def since() -> int | None:
        server = mcp_servers.find(access.workspace, message.name)
        return None if server is None else server.created_at

    grants.delete_on_resource(access.workspace, MCP_SERVER, message.name, since)


def skill_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    identity = SkillIdentity(message.organization, message.name)

    def since() -> int | None:
        skill = skills.find(access.workspace, identity)
        return None if skill is None else skill.created_at

    grants.delete_on_resource(access.workspace, SKILL, identity.resource_id, since)
