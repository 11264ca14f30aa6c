"""Who may do what with MCP servers, their versions and access endpoints.

A version is granted by its type alone, and inherits what holds for its server. Where a server or an
endpoint shows a version, or is asked for by one, DENY on the type takes that away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.auth.permissions import ANY, MCP_SERVER, MCP_SERVER_VERSION
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.errors import MlflowError
from mlcore.policies.access import Access
from mlcore.policies.requests import Policy, on_mcp_versions, subject
from mlcore.repos import mcp_servers
from mlcore.repos.users import grants
from mlcore.search import grammar, mcp_fields


def on_server(action: str) -> Policy:
    """The action on a server. A missing one counts as a server that nobody was granted."""

    def policy(access: Access, message: Any) -> bool:
        return access.allows(Requirement(MCP_SERVER, subject(message, "name"), action))

    return policy


def on_version(action: str) -> Policy:
    """The action on a version of a server that is readable."""

    def policy(access: Access, message: Any) -> bool:
        return access.allows(*on_mcp_versions(subject(message, "name"), action))

    return policy


def with_version(action: str, of_version: str) -> Policy:
    """The action on a server, and another on the versions that it takes along or tells of."""

    def policy(access: Access, message: Any) -> bool:
        name = subject(message, "name")
        return access.allows(
            Requirement(MCP_SERVER, name, action), *on_mcp_versions(name, of_version)
        )

    return policy


def on_endpoint(action: str) -> Policy:
    """The action on a server; who names a version must not be denied versions."""

    def policy(access: Access, message: Any) -> bool:
        name = subject(message, "name")
        needed = [Requirement(MCP_SERVER, name, action)]
        if _selects_version(message):
            needed += on_mcp_versions(name, NOT_DENIED)
        return access.allows(*needed)

    return policy


def create(access: Access, message: Any) -> bool:
    name = message.name if message.has("name") else ANY
    return access.may_create() and access.allows(Requirement(MCP_SERVER, name, NOT_DENIED))


def create_version(access: Access, message: Any) -> bool:
    """A version of a server that is not there makes it, too."""
    name = subject(message, "name")
    versions = Requirement(MCP_SERVER_VERSION, ANY, NOT_DENIED)
    if mcp_servers.find(access.workspace, name) is not None:
        return access.allows(Requirement(MCP_SERVER, name, "update"), versions)
    return access.may_create() and access.allows(
        Requirement(MCP_SERVER, name, NOT_DENIED), versions
    )


def search_endpoints(access: Access, message: Any) -> bool:
    """Of all servers."""
    return not _selects_version(message) or access.allows(
        Requirement(MCP_SERVER_VERSION, ANY, NOT_DENIED)
    )


def deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    """Grants that the transaction had no room for."""
    grants.sweep(access.workspace, MCP_SERVER, message.name)


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
