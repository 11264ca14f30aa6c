"""MCP servers, their versions and access endpoints in the shape of MLflow's JSON: every field is
there, null where nothing is known."""

from __future__ import annotations

from typing import Any, Final

from mlcore.entities.mcp_servers import AccessEndpoint, Json, MCPServer, MCPServerVersion

_OF_TOOL: Final = (
    *("name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons"),
    "execution",
)


def server(
    entity: MCPServer,
    latest: MCPServerVersion | None,
    resolved: dict[str, MCPServerVersion],
) -> Json:
    """Args:
    latest: the version that the server shows what it does not say itself of.
    resolved: by the ids of the access endpoints that lead somewhere.
    """
    said = {} if latest is None else latest.server_json
    description = entity.description
    return {
        "name": entity.name,
        "display_name": entity.display_name,
        "description": said.get("description") if description is None else description,
        "icons": _icons(entity.icons, said.get("icons")),
        "workspace": entity.workspace,
        "status": None if latest is None else latest.status,
        "access_endpoints": [
            _endpoint(endpoint, version(resolved[endpoint_id], entity))
            for endpoint_id, endpoint in sorted(entity.endpoints.items())
            if endpoint_id in resolved
        ],
        "latest_version": None if latest is None else latest.version,
        "aliases": [
            {"alias": alias, "version": number} for alias, number in sorted(entity.aliases.items())
        ],
        "tags": entity.tags,
        **_times(entity),
    }


def version(entity: MCPServerVersion, server: MCPServer) -> Json:
    """Args:
    server: whose aliases name the version.
    """
    options = entity.connect_options or {}
    return {
        "name": entity.name,
        "version": entity.version,
        "server_json": entity.server_json,
        "workspace": entity.workspace,
        "status": entity.status,
        "tools": _tools(entity.tools) or [],
        "aliases": [
            alias for alias, number in sorted(server.aliases.items()) if number == entity.version
        ],
        "tags": entity.tags,
        "connect_options": {
            name: {"hidden": option.get("hidden", False)} for name, option in options.items()
        },
        "source": entity.source,
        **_times(entity),
    }


def endpoint(entity: AccessEndpoint, resolved: MCPServerVersion, server: MCPServer) -> Json:
    """An access endpoint by itself, which shows the tools of the version that it leads to."""
    shown = _endpoint(entity, version(resolved, server))
    shown["tools"] = _tools(resolved.tools)
    return shown


def _endpoint(entity: AccessEndpoint, resolved: Json) -> Json:
    return {
        "id": entity.endpoint_id,
        "server_name": entity.server_name,
        "url": entity.url,
        "transport_type": entity.transport_type,
        "workspace": resolved["workspace"],
        "server_version": entity.server_version,
        "server_alias": entity.server_alias,
        "resolved_version": resolved,
        **_times(entity),
    }


def _tools(tools: list[Json] | None) -> list[Json] | None:
    return (
        None if tools is None else [{name: tool.get(name) for name in _OF_TOOL} for tool in tools]
    )


def _icons(own: list[Json] | None, of_version: Any) -> list[Json] | None:
    """The server's icons, and of its version's those of other themes; no icon at all where the
    server says that it has none."""
    if own is not None and not own:
        return []
    themes = {icon.get("theme") for icon in own or ()}
    shown = [{**icon, "source": "server"} for icon in own or ()]
    shown += [
        {**icon, "source": "version"}
        for icon in of_version or ()
        if icon.get("theme") not in themes
    ]
    return shown or None


def _times(entity: MCPServer | MCPServerVersion | AccessEndpoint) -> Json:
    return {
        "created_by": entity.created_by,
        "last_updated_by": entity.last_updated_by,
        "creation_timestamp": entity.created_at,
        "last_updated_timestamp": entity.last_updated_at,
    }
