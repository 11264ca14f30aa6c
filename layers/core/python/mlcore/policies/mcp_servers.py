"""Permission checks for requests about MCP servers, their versions and access endpoints.

A single version has no grants; it inherits those of its server. Only the type of all versions may
have grants: DENY on the type hides versions where a server or an endpoint shows them, and forbids
requests that select by version.
"""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import ANY, MCP_SERVER, MCP_SERVER_VERSION
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.errors import MlflowError
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import Policy, on_mcp_versions, subject
from mlcore.repos import mcp_servers
from mlcore.search import grammar, mcp_fields


def on_server(action: str) -> Policy:
    """Returns the policy that requires the action on an MCP server. A missing server is treated as
    one without a grant."""

    def policy(access: Access, message: Any) -> bool:
        return access.allows(Requirement(MCP_SERVER, subject(message, "name"), action))

    return policy


def on_version(action: str) -> Policy:
    """Returns the policy that requires the action on versions of a readable MCP server."""

    def policy(access: Access, message: Any) -> bool:
        return access.allows(*on_mcp_versions(subject(message, "name"), action))

    return policy


def with_version(action: str, version_action: str) -> Policy:
    """Returns the policy that requires one action on an MCP server and another on its versions, for
    routes that change or reveal both."""

    def policy(access: Access, message: Any) -> bool:
        name = subject(message, "name")
        return access.allows(
            Requirement(MCP_SERVER, name, action), *on_mcp_versions(name, version_action)
        )

    return policy


def on_endpoint(action: str) -> Policy:
    """Returns the policy that requires the action on the MCP server of an access endpoint. If the
    request selects by version, DENY on versions refuses it."""

    def policy(access: Access, message: Any) -> bool:
        name = subject(message, "name")
        requirements = [Requirement(MCP_SERVER, name, action)]
        if _selects_version(message):
            requirements += on_mcp_versions(name, NOT_DENIED)
        return access.allows(*requirements)

    return policy


def create(access: Access, message: Any) -> bool:
    name = message.name if message.has("name") else ANY
    return access.may_create() and access.allows(Requirement(MCP_SERVER, name, NOT_DENIED))


def create_version(access: Access, message: Any) -> bool:
    """Requires the right to update the MCP server, or to create it if it is missing. DENY on
    versions refuses the request."""
    name = subject(message, "name")
    versions = Requirement(MCP_SERVER_VERSION, ANY, NOT_DENIED)
    if mcp_servers.find(access.workspace, name) is not None:
        return access.allows(Requirement(MCP_SERVER, name, "update"), versions)
    return access.may_create() and access.allows(
        Requirement(MCP_SERVER, name, NOT_DENIED), versions
    )


def search_endpoints(access: Access, message: Any) -> bool:
    """Allows searching the access endpoints of all MCP servers. With a condition on versions, DENY
    on versions refuses the request."""
    return not _selects_version(message) or access.allows(
        Requirement(MCP_SERVER_VERSION, ANY, NOT_DENIED)
    )


def _selects_version(message: Any) -> bool:
    if message.server_version or message.server_alias:
        return True
    text = getattr(message, "filter_string", "")
    try:
        comparisons = grammar.parse_filter(text, mcp_fields.MCP_ACCESS_ENDPOINT)
    except MlflowError:
        return True
    return any(comparison.key == "status" for comparison in comparisons)


read = on_server("read")
update = on_server("update")
delete = with_version("delete", "delete")
update_alias = with_version("update", "read")
delete_alias = with_version("delete", "read")
read_version = on_version("read")
update_version = on_version("update")
delete_version = on_version("delete")
read_endpoints = on_endpoint("read")
update_endpoint = on_endpoint("update")
