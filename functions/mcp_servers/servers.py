"""Creates, reads, changes and deletes MCP servers, and sets and deletes their tags and aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp_servers import messages as m
from mlcore import errors, ids
from mlcore.auth.permissions import MCP_SERVER
from mlcore.entities.mcp_servers import (
    ACTIVE,
    DELETED,
    LATEST,
    AccessEndpoint,
    MCPServer,
    MCPServerVersion,
)
from mlcore.http import Request
from mlcore.limits import mcp_servers as limits
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos import mcp_servers
from mlcore.responses import mcp_servers as responses


def create_mcp_server(message: m.CreateMCPServer, request: Request) -> dict[str, Any]:
    limits.check_name(message.name)
    server = new_server(message.name, request)._replace(
        description=message.description, icons=limits.written_icons(message.icons, "icons")
    )
    try:
        mcp_servers.write(server, also=request.granting(MCP_SERVER, server.name))
    except WriteConflict as conflict:
        raise errors.ResourceAlreadyExists(
            f"MCP server with name '{message.name}' already exists"
        ) from conflict
    return responses.server(server, None, {})


def get_mcp_server(message: m.GetMCPServer, request: Request) -> dict[str, Any]:
    server = mcp_servers.find(request.workspace, message.name)
    if server is None:
        raise errors.ResourceDoesNotExist(f"MCP server '{message.name}' not found")
    (answer,) = responses_of([server])
    return answer


def update_mcp_server(message: m.UpdateMCPServer, request: Request) -> dict[str, Any]:
    """Sets the fields of an MCP server that the request has. A field that is null is cleared.
    Returns the changed server."""
    changes: dict[str, Any] = {
        field: getattr(message, field)
        for field in ("description", "display_name")
        if message.has(field)
    }
    if message.has("icons"):
        changes["icons"] = limits.written_icons(message.icons, "icons")

    def change(server: MCPServer) -> MCPServer:
        return server._replace(
            **changes, last_updated_by=request.username(), last_updated_at=ids.now_ms()
        )

    (answer,) = responses_of([update(message.name, request, change)])
    return answer


def delete_mcp_server(message: m.DeleteMCPServer, request: Request) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        server = load(message.name, request)
        active = [number for number, state in server.versions.items() if state.status == ACTIVE]
        if active:
            raise errors.InvalidParameterValue(
                f"Cannot delete MCP server '{message.name}' while it still has an active version "
                f"('{active[0]}'). Delete or deactivate the active version first."
            )
        mcp_servers.delete(server, request.leaving_grants(MCP_SERVER, server.name))
        return {}

    return retry_on_conflict("MCP server", attempt)


def set_mcp_server_tag(message: m.SetMCPServerTag, request: Request) -> dict[str, Any]:
    def change(server: MCPServer) -> MCPServer:
        return server._replace(tags={**server.tags, message.key: message.value})

    update(message.name, request, change)
    return {}


def delete_mcp_server_tag(message: m.DeleteMCPServerTag, request: Request) -> dict[str, Any]:
    missing = errors.ResourceDoesNotExist(
        f"Tag '{message.key}' not found on MCP server '{message.name}'"
    )

    def change(server: MCPServer) -> MCPServer:
        if message.key not in server.tags:
            raise missing
        return server._replace(tags=without_key(server.tags, message.key))

    update(message.name, request, change, missing)
    return {}


def set_mcp_server_alias(message: m.SetMCPServerAlias, request: Request) -> dict[str, Any]:
    limits.check_alias(message.alias)

    def change(server: MCPServer) -> MCPServer:
        check_target(server, message.version, f"Cannot set alias '{message.alias}' to deleted")
        return server._replace(aliases={**server.aliases, message.alias: message.version})

    update(message.name, request, change)
    return {}


def delete_mcp_server_alias(message: m.DeleteMCPServerAlias, request: Request) -> dict[str, Any]:
    """Deletes an alias of an MCP server, and the server's access endpoints that use the alias."""
    missing = errors.ResourceDoesNotExist(
        f"Alias '{message.alias}' not found on MCP server '{message.name}'"
    )

    def change(server: MCPServer) -> MCPServer:
        if message.alias not in server.aliases:
            raise missing
        endpoints = {
            endpoint_id: endpoint
            for endpoint_id, endpoint in server.endpoints.items()
            if endpoint.server_alias != message.alias
        }
        aliases = without_key(server.aliases, message.alias)
        return server._replace(aliases=aliases, endpoints=endpoints)

    update(message.name, request, change, missing)
    return {}


def new_server(name: str, request: Request) -> MCPServer:
    """Returns a new MCP server without versions. It is not stored yet."""
    now, username = ids.now_ms(), request.username()
    return MCPServer(
        workspace=request.workspace,
        name=name,
        display_name=None,
        description=None,
        icons=None,
        tags={},
        aliases={},
        versions={},
        endpoints={},
        created_by=username,
        last_updated_by=username,
        created_at=now,
        last_updated_at=now,
    )


def without_key(entries: dict[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in entries.items() if name != key}


def load(name: str, request: Request, missing: errors.MlflowError | None = None) -> MCPServer:
    """Reads an MCP server. Raises ``missing``, by default ResourceDoesNotExist, if it does not
    exist."""
    server = mcp_servers.find(request.workspace, name)
    if server is None:
        raise missing or errors.ResourceDoesNotExist(f"MCPServer not found (name='{name}')")
    return server


def update(
    name: str,
    request: Request,
    change: Callable[[MCPServer], MCPServer],
    missing: errors.MlflowError | None = None,
) -> MCPServer:
    """Reads an MCP server, applies ``change``, stores the result if it differs, and returns it. A
    concurrent write makes it start over.

    Args:
        missing: raised instead of ResourceDoesNotExist if the server does not exist.
    """

    def attempt() -> MCPServer:
        server = load(name, request, missing)
        after = change(server)
        if after != server:
            mcp_servers.write(after)
        return after

    return retry_on_conflict("MCP server", attempt)


def check_target(server: MCPServer, version: str, refusal: str) -> None:
    """Checks that an MCP server has a version, and that this version is not deleted.

    Args:
        refusal: the beginning of the error message for a deleted version.

    Raises:
        ResourceDoesNotExist: the version does not exist.
        InvalidParameterValue: the version is deleted.
    """
    state = server.versions.get(version)
    if state is None:
        raise missing_version(server.name, version)
    if state.status == DELETED:
        raise errors.InvalidParameterValue(
            f"{refusal} MCP server version '{server.name}' version '{version}'"
        )


def missing_version(name: str, version: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"MCP server version '{name}' version '{version}' not found")


def latest_version(server: MCPServer) -> str | None:
    """Returns the version of an MCP server to which the alias ``latest`` resolves: the greatest
    active version, or the greatest one if none is active. Deleted versions do not count; None if no
    other is left."""
    candidates = [
        (state.status == ACTIVE, limits.precedence(number), state.created_at, number)
        for number, state in server.versions.items()
        if state.status != DELETED
    ]
    return max(candidates)[-1] if candidates else None


def resolve_target(server: MCPServer, endpoint: AccessEndpoint) -> str | None:
    """Returns the version of an MCP server to which an access endpoint resolves; None if that
    version is missing or deleted."""
    version = endpoint.server_version
    if version is None:
        alias = endpoint.server_alias or ""
        version = latest_version(server) if alias == LATEST else server.aliases.get(alias)
    state = server.versions.get(version or "")
    return version if state is not None and state.status != DELETED else None


def responses_of(servers: list[MCPServer]) -> list[dict[str, Any]]:
    """Returns the JSON of MCP servers, with fields of their versions. Takes one BatchGetItem per
    100 versions."""
    version_keys: dict[tuple[str, str], tuple[MCPServer, str]] = {}
    for server in servers:
        targets = [resolve_target(server, endpoint) for endpoint in server.endpoints.values()]
        for version in (latest_version(server), *targets):
            if version is not None:
                version_keys[server.name, version] = (server, version)
    versions = dict(
        zip(version_keys, mcp_servers.find_versions(list(version_keys.values())), strict=True)
    )
    return [_response(server, versions) for server in servers]


def _response(
    server: MCPServer, versions: dict[tuple[str, str], MCPServerVersion | None]
) -> dict[str, Any]:
    resolved = {}
    for endpoint_id, endpoint in server.endpoints.items():
        version = versions.get((server.name, resolve_target(server, endpoint) or ""))
        if version is not None:
            resolved[endpoint_id] = version
    return responses.server(
        server, versions.get((server.name, latest_version(server) or "")), resolved
    )
