"""Creates, reads, changes and deletes access endpoints: the URLs where a version of an MCP server
is reached. This server never calls them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from mcp_servers import messages as m
from mcp_servers import servers, versions
from mlcore import errors, ids
from mlcore.entities.mcp_servers import DELETED, LATEST, AccessEndpoint, MCPServer
from mlcore.http import Request
from mlcore.limits import mcp_servers as limits
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos import mcp_servers
from mlcore.responses import mcp_servers as responses


def create_mcp_access_endpoint(
    message: m.CreateMCPAccessEndpoint, request: Request
) -> dict[str, Any]:
    transport = limits.check_transport(message.transport_type)
    limits.check_target(message.server_version, message.server_alias)
    limits.check_endpoint_url(message.url)
    now, username = ids.now_ms(), request.username()
    endpoint = AccessEndpoint(
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
        return server._replace(endpoints={**server.endpoints, endpoint.endpoint_id: endpoint})

    return _response(servers.update(message.name, request, change), endpoint)


def get_mcp_access_endpoint(message: m.GetMCPAccessEndpoint, request: Request) -> dict[str, Any]:
    """Returns an access endpoint of an MCP server. One that resolves to no version counts as
    missing."""
    missing = errors.ResourceDoesNotExist(f"MCPAccessEndpoint {message.endpoint_id} not found")
    server, endpoint = _load(message.name, message.endpoint_id, request, missing)
    if servers.resolve_target(server, endpoint) is None:
        raise missing
    return _response(server, endpoint)


def update_mcp_access_endpoint(
    message: m.UpdateMCPAccessEndpoint, request: Request
) -> dict[str, Any]:
    """Changes an access endpoint of an MCP server. Fields that are missing or null stay unchanged,
    but a given server version removes the alias, and a given alias the version. Raises
    InvalidParameterValue for a URL that is null."""
    transport = message.transport_type
    if transport is not None:
        limits.check_transport(transport)
    if message.server_version is not None and message.server_alias is not None:
        raise errors.InvalidParameterValue(
            "Cannot set both server_version and server_alias in a single update"
        )
    missing = _missing(message.endpoint_id)

    def attempt() -> dict[str, Any]:
        server, endpoint = _load(message.name, message.endpoint_id, request, missing)
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
        if servers.resolve_target(server, endpoint) is None:
            raise missing
        mcp_servers.write(server)
        return _response(server, endpoint)

    return retry_on_conflict("MCP server", attempt)


def delete_mcp_access_endpoint(
    message: m.DeleteMCPAccessEndpoint, request: Request
) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        missing = _missing(message.endpoint_id)
        server, endpoint = _load(message.name, message.endpoint_id, request, missing)
        endpoints = {**server.endpoints}
        del endpoints[endpoint.endpoint_id]
        mcp_servers.write(server._replace(endpoints=endpoints))
        return {}

    return retry_on_conflict("MCP server", attempt)


def _missing(endpoint_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"MCPAccessEndpoint not found (id='{endpoint_id}')")


def _load(
    name: str, endpoint_id: str, request: Request, missing: errors.ResourceDoesNotExist
) -> tuple[MCPServer, AccessEndpoint]:
    """Returns a server and its endpoint.

    Args:
        missing: the error to raise for an endpoint that does not exist.

    Raises:
        ResourceDoesNotExist: ``missing``; or, if the endpoint belongs to another server that the
            caller may read, an error that says so. All servers are read to distinguish the two
            cases.
    """
    server = mcp_servers.find(request.workspace, name)
    endpoint = None if server is None else server.endpoints.get(endpoint_id)
    if server is not None and endpoint is not None:
        return server, endpoint
    may_read = request.may_read("mcp_server")
    for other in mcp_servers.of_workspace(request.workspace):
        if endpoint_id in other.endpoints and may_read(other.name):
            raise errors.ResourceDoesNotExist(
                f"MCPAccessEndpoint {endpoint_id} does not belong to server '{name}'"
            )
    raise missing


def _check_target(
    server: MCPServer,
    message: m.CreateMCPAccessEndpoint | m.UpdateMCPAccessEndpoint,
    verb: str,
) -> None:
    """Checks the version or alias that an endpoint names. Raises ResourceDoesNotExist if it is
    missing, InvalidParameterValue if it is deleted."""
    if message.server_version is not None:
        servers.check_target(
            server, message.server_version, f"Cannot {verb} MCP access endpoint to deleted"
        )
    alias = message.server_alias
    if alias == LATEST:
        if servers.latest_version(server) is None:
            raise versions.no_latest_version(server.name)
    elif alias is not None:
        number = server.aliases.get(alias)
        if number is None:
            raise versions.missing_alias(server.name, alias)
        if server.versions[number].status == DELETED:
            raise errors.InvalidParameterValue(
                f"Alias '{alias}' for MCP server '{server.name}' points to deleted version "
                f"'{number}'"
            )


def _response(server: MCPServer, endpoint: AccessEndpoint) -> dict[str, Any]:
    number = servers.resolve_target(server, endpoint)
    versions_found = mcp_servers.find_versions([(server, number)] if number else [])
    if not versions_found or versions_found[0] is None:
        raise _missing(endpoint.endpoint_id)
    return responses.endpoint(endpoint, versions_found[0], server)
