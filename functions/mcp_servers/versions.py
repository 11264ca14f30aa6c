"""Creates, reads, changes and deletes versions of MCP servers, and sets and deletes their tags."""

from __future__ import annotations

from typing import Any

from mcp_servers import messages as m
from mcp_servers import servers
from mlcore import errors, ids
from mlcore.auth.permissions import MCP_SERVER
from mlcore.entities.mcp_servers import (
    DELETED,
    LATEST,
    MCPServer,
    MCPServerVersion,
    VersionState,
)
from mlcore.http import Request
from mlcore.limits import mcp_servers as limits
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos import mcp_servers
from mlcore.responses import mcp_servers as responses


def create_mcp_server_version(
    message: m.CreateMCPServerVersion, request: Request
) -> dict[str, Any]:
    """Creates a version of an MCP server, and the server if it does not exist."""
    server_json = message.server_json
    limits.check_name(server_json["name"])
    limits.check_name(message.name)
    if server_json["name"] != message.name:
        raise errors.InvalidParameterValue(
            f"server_json.name '{server_json['name']}' does not match path parameter "
            f"'{message.name}'"
        )
    status = limits.check_status(message.status)
    tools = _written_tools(message.tools)
    number = server_json["version"]
    if not number:
        raise errors.InvalidParameterValue("server_json must contain 'name' and 'version' keys")
    if "icons" in server_json:
        server_json = {
            **server_json,
            "icons": limits.written_icons(server_json["icons"], "server_json.icons"),
        }
    limits.semantic_version(number, "server_json.version")
    limits.check_first_status(status)

    def attempt() -> dict[str, Any]:
        server = mcp_servers.find(request.workspace, message.name)
        if server is None and request.access is not None and not request.access.may_create():
            raise errors.PermissionDenied("Permission denied.")
        also = request.granting(MCP_SERVER, message.name) if server is None else []
        server = server or servers.new_server(message.name, request)
        if number in server.versions:
            raise errors.ResourceAlreadyExists(
                f"MCP server version '{message.name}' version '{number}' already exists"
            )
        now, username = ids.now_ms(), request.username()
        version = MCPServerVersion(
            workspace=request.workspace,
            name=message.name,
            version=number,
            server_json=server_json,
            tools=tools,
            connect_options=message.connect_options,
            source=message.source,
            tags={},
            created_by=username,
            last_updated_by=username,
            created_at=now,
            last_updated_at=now,
            status=status,
        )
        versions = {**server.versions, number: VersionState(status, now)}
        mcp_servers.write(server._replace(versions=versions), puts=[version], also=also)
        return responses.version(version, server)

    return retry_on_conflict("MCP server", attempt)


def get_mcp_server_version(message: m.GetMCPServerVersion, request: Request) -> dict[str, Any]:
    server, version = _load(message.name, message.version, request)
    return responses.version(version, server)


def get_version_by_alias(message: m.GetMCPServerVersionByAlias, request: Request) -> dict[str, Any]:
    server = mcp_servers.find(request.workspace, message.name)
    if message.alias == LATEST:
        server = server or servers.load(message.name, request)
        number = servers.latest_version(server)
        if number is None:
            raise no_latest_version(message.name)
    else:
        number = None if server is None else server.aliases.get(message.alias)
        if server is None or number is None:
            raise missing_alias(message.name, message.alias)
    (version,) = mcp_servers.find_versions([(server, number)])
    if version is None:
        raise servers.missing_version(message.name, number)
    return responses.version(version, server)


def update_mcp_server_version(
    message: m.UpdateMCPServerVersion, request: Request
) -> dict[str, Any]:
    """Changes a version of an MCP server. If the new status is ``deleted``, the aliases of the
    version stay, unlike with :func:`delete_mcp_server_version`."""
    if message.has("status") and message.status is None:
        raise errors.InvalidParameterValue(
            "status cannot be null; omit the field to leave it unchanged"
        )
    changes: dict[str, Any] = {}
    if message.has("status"):
        changes["status"] = limits.check_status(message.status)
    if message.has("tools"):
        changes["tools"] = _written_tools(message.tools)
    if message.has("connect_options"):
        changes["connect_options"] = message.connect_options

    def attempt() -> dict[str, Any]:
        server, version = _load(message.name, message.version, request)
        new_status = changes.get("status")
        if new_status is not None:
            limits.check_transition(version.status, new_status)
        version = version._replace(
            **changes, last_updated_by=request.username(), last_updated_at=ids.now_ms()
        )
        if new_status is None:
            mcp_servers.write_version(version)
        else:
            _write_state(server, version)
        return responses.version(version, server)

    return retry_on_conflict("MCP server version", attempt)


def delete_mcp_server_version(
    message: m.DeleteMCPServerVersion, request: Request
) -> dict[str, Any]:
    """Deletes a version of an MCP server, the aliases that name it, and the access endpoints that
    name the version or one of these aliases. If no version is left, also those that name
    ``latest``."""

    def attempt() -> dict[str, Any]:
        server = mcp_servers.find(request.workspace, message.name)
        state = None if server is None else server.versions.get(message.version)
        if server is None or state is None:
            raise servers.missing_version(message.name, message.version)
        limits.check_transition(state.status, DELETED)
        aliases_of_version = {
            alias for alias, number in server.aliases.items() if number == message.version
        }
        server = server._replace(
            aliases={
                alias: number
                for alias, number in server.aliases.items()
                if alias not in aliases_of_version
            },
            endpoints={
                endpoint_id: endpoint
                for endpoint_id, endpoint in server.endpoints.items()
                if endpoint.server_alias not in aliases_of_version
                and endpoint.server_version != message.version
            },
            versions={**server.versions, message.version: state._replace(status=DELETED)},
        )
        mcp_servers.write(_without_dangling_endpoints(server), deletes=[message.version])
        return {}

    return retry_on_conflict("MCP server version", attempt)


def set_mcp_server_version_tag(
    message: m.SetMCPServerVersionTag, request: Request
) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        _, version = _load(message.name, message.version, request)
        if version.tags.get(message.key) != message.value:
            tags = {**version.tags, message.key: message.value}
            mcp_servers.write_version(version._replace(tags=tags))
        return {}

    return retry_on_conflict("MCP server version", attempt)


def delete_mcp_server_version_tag(
    message: m.DeleteMCPServerVersionTag, request: Request
) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        _, version = _load(message.name, message.version, request)
        if message.key not in version.tags:
            raise errors.ResourceDoesNotExist(
                f"Tag '{message.key}' not found on MCP server version '{message.name}' "
                f"version '{message.version}'"
            )
        tags = servers.without_key(version.tags, message.key)
        mcp_servers.write_version(version._replace(tags=tags))
        return {}

    return retry_on_conflict("MCP server version", attempt)


def missing_alias(name: str, alias: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Alias '{alias}' not found for MCP server '{name}'")


def no_latest_version(name: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"No resolved latest version found for MCP server '{name}'")


def _load(name: str, number: str, request: Request) -> tuple[MCPServer, MCPServerVersion]:
    """Reads a version that is not deleted, and its server. Raises ResourceDoesNotExist."""
    server, version = mcp_servers.find_with_version(request.workspace, name, number)
    if server is None or version is None:
        raise servers.missing_version(name, number)
    return server, version


def _write_state(server: MCPServer, version: MCPServerVersion) -> None:
    """Writes a version with a new status, together with its server, which lists the status."""
    state = VersionState(version.status, version.created_at)
    server_after = server._replace(versions={**server.versions, version.version: state})
    if version.status == DELETED:
        mcp_servers.write(_without_dangling_endpoints(server_after), deletes=[version.version])
    else:
        mcp_servers.write(server_after, puts=[version])


def _without_dangling_endpoints(server: MCPServer) -> MCPServer:
    """Removes the endpoints that name ``latest`` if the server has no latest version any more."""
    if servers.latest_version(server) is not None:
        return server
    endpoints = {
        endpoint_id: endpoint
        for endpoint_id, endpoint in server.endpoints.items()
        if endpoint.server_alias != LATEST
    }
    return server._replace(endpoints=endpoints)


def _written_tools(tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    if tools is None:
        return None
    return [
        {**tool, "icons": limits.written_icons(tool["icons"], f"tools[{index}].icons")}
        if "icons" in tool
        else tool
        for index, tool in enumerate(tools)
    ]
