"""The rules of access endpoints: where a version of an MCP server is reached. Nobody calls them
from here."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from mcp_servers import messages as m
from mcp_servers import servers, versions
from mlcore import errors, ids
from mlcore.entities.mcp_servers import DELETED, LATEST, AccessEndpoint, MCPServer
from mlcore.http import Request
from mlcore.limits import mcp_servers as limits
from mlcore.repos import mcp_servers
from mlcore.responses import mcp_servers as responses
from mlcore.settle import settle


def create_mcp_access_endpoint(
    message: m.CreateMCPAccessEndpoint, request: Request
) -> dict[str, Any]:
    transport = limits.check_transport(message.transport_type)
    limits.check_target(message.server_version, message.server_alias)
    limits.check_endpoint_url(message.url)
    now, username = ids.now_ms(), request.username()
    made = AccessEndpoint(
        endpoint_id=f"ae-{uuid4().hex}",
        server_name=message.name,
        url=message.url,
        transport_type=transport,
        server_version=message.server_version,
        server_alias=message.server_alias,
        created_by=username,
        last_updated_by=username,
        created_at=now,
        last_updated_at=now,
    )

    def change(server: MCPServer) -> MCPServer:
        _check_target(server, message, "create")
        return server._replace(endpoints={**server.endpoints, made.endpoint_id: made})

    return _shown(servers.changed(message.name, request, change), made)


def get_mcp_access_endpoint(message: m.GetMCPAccessEndpoint, request: Request) -> dict[str, Any]:
    """One that leads nowhere looks missing."""
    missing = errors.ResourceDoesNotExist(f"MCPAccessEndpoint {message.endpoint_id} not found")
    server, endpoint = _there(message.name, message.endpoint_id, request, missing)
    if servers.target(server, endpoint) is None:
        raise missing
    return _shown(server, endpoint)


def update_mcp_access_endpoint(
    message: m.UpdateMCPAccessEndpoint, request: Request
) -> dict[str, Any]:
    """What is null stays as it is, but for the URL, which cannot be null."""
    transport = message.transport_type
    if transport is not None:
        limits.check_transport(transport)
    if message.server_version is not None and message.server_alias is not None:
        raise errors.InvalidParameterValue(
            "Cannot set both server_version and server_alias in a single update"
        )
    missing = _missing(message.endpoint_id)

    def attempt() -> dict[str, Any]:
        server, endpoint = _there(message.name, message.endpoint_id, request, missing)
        _check_target(server, message, "update")
        if message.has("url"):
            if message.url is None:
                raise errors.InvalidParameterValue("MCP access endpoint url cannot be None")
            limits.check_endpoint_url(message.url)
        if message.server_version is not None or message.server_alias is not None:
            endpoint = endpoint._replace(
                server_version=message.server_version, server_alias=message.server_alias
            )
        endpoint = endpoint._replace(
            url=message.url if message.has("url") else endpoint.url,
            transport_type=endpoint.transport_type if transport is None else transport,
            last_updated_by=request.username(),
            last_updated_at=ids.now_ms(),
        )
        endpoints = {**server.endpoints, endpoint.endpoint_id: endpoint}
        server = server._replace(endpoints=endpoints)
        if servers.target(server, endpoint) is None:
            raise missing
        mcp_servers.write(server)
        return _shown(server, endpoint)

    return settle("MCP server", attempt)


def delete_mcp_access_endpoint(
    message: m.DeleteMCPAccessEndpoint, request: Request
) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        missing = _missing(message.endpoint_id)
        server, endpoint = _there(message.name, message.endpoint_id, request, missing)
        endpoints = {**server.endpoints}
        del endpoints[endpoint.endpoint_id]
        mcp_servers.write(server._replace(endpoints=endpoints))
        return {}

    return settle("MCP server", attempt)


def _missing(endpoint_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"MCPAccessEndpoint not found (id='{endpoint_id}')")


def _there(
    name: str, endpoint_id: str, request: Request, missing: errors.ResourceDoesNotExist
) -> tuple[MCPServer, AccessEndpoint]:
    """Raises ResourceDoesNotExist, with words of its own for an endpoint of another server: only
    then all servers are read."""
    server = mcp_servers.find(request.workspace, name)
    endpoint = None if server is None else server.endpoints.get(endpoint_id)
    if server is not None and endpoint is not None:
        return server, endpoint
    readable = request.may_read("mcp_server")
    for other in mcp_servers.of_workspace(request.workspace):
        if endpoint_id in other.endpoints and readable(other.name):
            raise errors.ResourceDoesNotExist(
                f"MCPAccessEndpoint {endpoint_id} does not belong to server '{name}'"
            )
    raise missing


def _check_target(
    server: MCPServer,
    message: m.CreateMCPAccessEndpoint | m.UpdateMCPAccessEndpoint,
    verb: str,
) -> None:
    """Raises ResourceDoesNotExist, InvalidParameterValue: it leads to nothing."""
    if message.server_version is not None:
        servers.check_target(
            server, message.server_version, f"Cannot {verb} MCP access endpoint to deleted"
        )
    alias = message.server_alias
    if alias == LATEST:
        if servers.latest(server) is None:
            raise versions.unresolved(server.name)
    elif alias is not None:
        number = server.aliases.get(alias)
        if number is None:
            raise versions.missing_alias(server.name, alias)
        if server.versions[number].status == DELETED:
            raise errors.InvalidParameterValue(
                f"Alias '{alias}' for MCP server '{server.name}' points to deleted version "
                f"'{number}'"
            )


def _shown(server: MCPServer, endpoint: AccessEndpoint) -> dict[str, Any]:
    number = servers.target(server, endpoint)
    found = mcp_servers.find_versions([(server, number)] if number else [])
    if not found or found[0] is None:
        raise _missing(endpoint.endpoint_id)
    return responses.endpoint(endpoint, found[0], server)
