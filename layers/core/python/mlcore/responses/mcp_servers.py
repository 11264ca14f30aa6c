"""MLflow's JSON of MCP servers, their versions and access endpoints. Every field is present, null
if unknown."""

from __future__ import annotations

from typing import Any, Final

from mlcore.entities.mcp_servers import AccessEndpoint, Json, MCPServer, MCPServerVersion

_TOOL_FIELDS: Final = (
    *("name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons"),
    "execution",
)


ACTIONS: Final = ("USE", "UPDATE", "DELETE", "MANAGE")
"""The actions that an answer lists as allowed on a server, unless a policy removes some."""


def server(
    entity: MCPServer,
    latest: MCPServerVersion | None,
    resolved: dict[str, MCPServerVersion],
) -> Json:
    """Returns the JSON of an MCP server.

    Args:
        latest: the latest version, which provides description and icons that the server does not
            set itself.
        resolved: by endpoint id, the version that each access endpoint leads to.
    """
    version_fields = {} if latest is None else latest.server_json
    description = entity.description
    return {
        "name": entity.name,
        "display_name": entity.display_name,
        "description": version_fields.get("description") if description is None else description,
        "icons": _icons(entity.icons, version_fields.get("icons")),
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
        "allowed_actions": list(ACTIONS),
        **_times(entity),
    }


def version(entity: MCPServerVersion, server: MCPServer) -> Json:
    """Returns the JSON of a version of an MCP server.

    Args:
        server: the version's server, whose aliases of the version are included.
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
    """Returns the JSON of one access endpoint of an MCP server, with the tools of the server's
    version to which it leads."""
    fields = _endpoint(entity, version(resolved, server))
    fields["tools"] = _tools(resolved.tools)
    return fields


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
        None
        if tools is None
        else [{name: tool.get(name) for name in _TOOL_FIELDS} for tool in tools]
    )


def _icons(own: list[Json] | None, of_version: Any) -> list[Json] | None:
    """Returns the icons of a server's JSON: the server's own, then its version's icons of other
    themes. An empty list of own icons hides all."""
    if own is not None and not own:
        return []
    themes = {icon.get("theme") for icon in own or ()}
    icons_ = [{**icon, "source": "server"} for icon in own or ()]
    icons_ += [
        {**icon, "source": "version"}
        for icon in of_version or ()
        if icon.get("theme") not in themes
    ]
    return icons_ or None


def _times(entity: MCPServer | MCPServerVersion | AccessEndpoint) -> Json:
    return {
        "created_by": entity.created_by,
        "last_updated_by": entity.last_updated_by,
        "creation_timestamp": entity.created_at,
        "last_updated_timestamp": entity.last_updated_at,
    }
