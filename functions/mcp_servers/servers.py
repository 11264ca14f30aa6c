"""The rules of MCP servers: what they show, their tags and aliases."""

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
from mlcore.repos import mcp_servers
from mlcore.responses import mcp_servers as responses
from mlcore.settle import Conflict, settle


def create_mcp_server(message: m.CreateMCPServer, request: Request) -> dict[str, Any]:
    limits.check_name(message.name)
    made = new(message.name, request)._replace(
        description=message.description, icons=limits.written_icons(message.icons, "icons")
    )
    try:
        mcp_servers.write(made, also=request.granting(MCP_SERVER, made.name))
    except Conflict as conflict:
        raise errors.ResourceAlreadyExists(
            f"MCP server with name '{message.name}' already exists"
        ) from conflict
    return responses.server(made, None, {})


def get_mcp_server(message: m.GetMCPServer, request: Request) -> dict[str, Any]:
    server = mcp_servers.find(request.workspace, message.name)
    if server is None:
        raise errors.ResourceDoesNotExist(f"MCP server '{message.name}' not found")
    (answer,) = shown([server])
    return answer


def update_mcp_server(message: m.UpdateMCPServer, request: Request) -> dict[str, Any]:
    """A field that is null is cleared."""
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

    (answer,) = shown([changed(message.name, request, change)])
    return answer


def delete_mcp_server(message: m.DeleteMCPServer, request: Request) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        server = there(message.name, request)
        active = [number for number, state in server.versions.items() if state.status == ACTIVE]
        if active:
            raise errors.InvalidParameterValue(
                f"Cannot delete MCP server '{message.name}' while it still has an active version "
                f"('{active[0]}'). Delete or deactivate the active version first."
            )
        mcp_servers.delete(server, request.leaving_grants(MCP_SERVER, server.name))
        return {}

    return settle("MCP server", attempt)


def set_mcp_server_tag(message: m.SetMCPServerTag, request: Request) -> dict[str, Any]:
    def change(server: MCPServer) -> MCPServer:
        return server._replace(tags={**server.tags, message.key: message.value})

    changed(message.name, request, change)
    return {}


def delete_mcp_server_tag(message: m.DeleteMCPServerTag, request: Request) -> dict[str, Any]:
    missing = errors.ResourceDoesNotExist(
        f"Tag '{message.key}' not found on MCP server '{message.name}'"
    )

    def change(server: MCPServer) -> MCPServer:
        if message.key not in server.tags:
            raise missing
        return server._replace(tags=without(server.tags, message.key))

    changed(message.name, request, change, missing)
    return {}


def set_mcp_server_alias(message: m.SetMCPServerAlias, request: Request) -> dict[str, Any]:
    limits.check_alias(message.alias)

    def change(server: MCPServer) -> MCPServer:
        check_target(server, message.version, f"Cannot set alias '{message.alias}' to deleted")
        return server._replace(aliases={**server.aliases, message.alias: message.version})

    changed(message.name, request, change)
    return {}


def delete_mcp_server_alias(message: m.DeleteMCPServerAlias, request: Request) -> dict[str, Any]:
    """The access endpoints that the alias names go with it."""
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
        aliases = without(server.aliases, message.alias)
        return server._replace(aliases=aliases, endpoints=endpoints)

    changed(message.name, request, change, missing)
    return {}


def new(name: str, request: Request) -> MCPServer:
    """A server that is not there yet."""
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


def without(entries: dict[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in entries.items() if name != key}


def there(name: str, request: Request, missing: errors.MlflowError | None = None) -> MCPServer:
    """A server. Raises ResourceDoesNotExist, or what ``missing`` is instead."""
    server = mcp_servers.find(request.workspace, name)
    if server is None:
        raise missing or errors.ResourceDoesNotExist(f"MCPServer not found (name='{name}')")
    return server


def changed(
    name: str,
    request: Request,
    change: Callable[[MCPServer], MCPServer],
    missing: errors.MlflowError | None = None,
) -> MCPServer:
    """Reads a server, writes what ``change`` makes of it if that is something else, and answers it.

    Args:
        missing: what is raised where there is no such server, instead of ResourceDoesNotExist.
    """

    def attempt() -> MCPServer:
        server = there(name, request, missing)
        wanted = change(server)
        if wanted != server:
            mcp_servers.write(wanted)
        return wanted

    return settle("MCP server", attempt)


def check_target(server: MCPServer, version: str, refusal: str) -> None:
    """Raises ResourceDoesNotExist, InvalidParameterValue: the version is deleted."""
    state = server.versions.get(version)
    if state is None:
        raise missing_version(server.name, version)
    if state.status == DELETED:
        raise errors.InvalidParameterValue(
            f"{refusal} MCP server version '{server.name}' version '{version}'"
        )


def missing_version(name: str, version: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"MCP server version '{name}' version '{version}' not found")


def latest(server: MCPServer) -> str | None:
    """The version that ``latest`` means; None where there is none."""
    live = [
        (state.status == ACTIVE, limits.precedence(number), state.created_at, number)
        for number, state in server.versions.items()
        if state.status != DELETED
    ]
    return max(live)[-1] if live else None


def target(server: MCPServer, endpoint: AccessEndpoint) -> str | None:
    """The version that an access endpoint leads to; None for one that is gone or deleted."""
    version = endpoint.server_version
    if version is None:
        alias = endpoint.server_alias or ""
        version = latest(server) if alias == LATEST else server.aliases.get(alias)
    state = server.versions.get(version or "")
    return version if state is not None and state.status != DELETED else None


def shown(servers: list[MCPServer]) -> list[dict[str, Any]]:
    """Servers as they are answered, with what their versions say: one BatchGetItem for 100."""
    wanted: dict[tuple[str, str], tuple[MCPServer, str]] = {}
    for server in servers:
        targets = [target(server, endpoint) for endpoint in server.endpoints.values()]
        for version in (latest(server), *targets):
            if version is not None:
                wanted[server.name, version] = (server, version)
    found = dict(zip(wanted, mcp_servers.find_versions(list(wanted.values())), strict=True))
    return [_shown(server, found) for server in servers]


def _shown(
    server: MCPServer, found: dict[tuple[str, str], MCPServerVersion | None]
) -> dict[str, Any]:
    resolved = {}
    for endpoint_id, endpoint in server.endpoints.items():
        version = found.get((server.name, target(server, endpoint) or ""))
        if version is not None:
            resolved[endpoint_id] = version
    return responses.server(server, found.get((server.name, latest(server) or "")), resolved)
