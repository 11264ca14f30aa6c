"""Transfers MCP servers with versions, tags, aliases and access endpoints. No server lists deleted
versions or endpoints without a target."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from mcp_servers import servers
from mlcore.entities.mcp_servers import AccessEndpoint, MCPServer, MCPServerVersion, VersionState
from mlcore.limits.mcp_servers import written_icons
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos import mcp_servers
from mlcore.responses import mcp_servers as responses
from operate.transfer.mlflow_client import Json, Server
from operate.transfer.source_reader import API_3, none_if_unsupported
from operate.transfer.transfer_item import Content, TransferItem

_PAGE: Final = 1000
_VERSIONS: Final = 100
_TIMES: Final = ("created_by", "last_updated_by", "creation_timestamp", "last_updated_timestamp")
_OF_SERVER: Final = ("display_name", "description", "icons", "tags", *_TIMES)
_OF_VERSION: Final = (
    *("server_json", "status", "tools", "tags", "connect_options", "source"),
    *_TIMES,
)
_OF_ENDPOINT: Final = ("url", "transport_type", "server_version", "server_alias", *_TIMES)


def listed(server: Server) -> list[Json]:
    """Returns the MCP servers of an MLflow server; empty if that is older than 3.15 or keeps its
    data in files."""
    path = f"{API_3}/mcp-servers"
    return none_if_unsupported(server.pages("GET", path, "mcp_servers", max_results=_PAGE)) or []


def item(server: Server, fields: Json) -> TransferItem:
    name, workspace = fields["name"], server.workspace

    def want() -> Content:
        path = f"{API_3}/mcp-servers/{name}/versions"
        listed = server.pages("GET", path, "mcp_server_versions", max_results=_VERSIONS)
        return _content(fields, listed)

    def have() -> Content | None:
        existing, versions = mcp_servers.find_with_versions(workspace, name)
        if existing is None:
            return None
        (shown,) = servers.responses_of([existing])
        return _content(shown, (responses.version(version, existing) for version in versions))

    def write(want: Content, existing: Content | None) -> None:
        present = {} if existing is None else existing["versions"]
        for number, content in want["versions"].items():
            if present.get(number) != content:
                version = _version(workspace, name, number, content)
                retry_on_conflict("MCP server", partial(_write_version, version, want))
        retry_on_conflict("MCP server", lambda: _complete(workspace, name, want))

    return TransferItem("MCP server", name, want, have, write, identity=identity(workspace, name))


def identity(workspace: str, name: str) -> str:
    """Returns a text that identifies an MCP server. It is unique because a server's name contains
    one slash and a workspace's name none."""
    return f"{workspace}/{name}"


def _content(server: Json, versions: Iterable[Json]) -> Content:
    """Returns the compared content of an MCP server and its versions, from the JSON of the source
    server or of the table."""
    return {
        **_picked(server, _OF_SERVER),
        "latest_version": server["latest_version"],
        "aliases": {alias["alias"]: alias["version"] for alias in server["aliases"]},
        "endpoints": {
            alias["id"]: _picked(alias, _OF_ENDPOINT) for alias in server["access_endpoints"]
        },
        "versions": {version["version"]: _picked(version, _OF_VERSION) for version in versions},
    }


def _picked(fields: Json, names: Iterable[str]) -> Json:
    return {name: fields.get(name) for name in names}


def _write_version(version: MCPServerVersion, want: Content) -> None:
    """Writes a version, and its server if that is missing. Aliases and endpoints are written after
    the versions that they name."""
    server, current = mcp_servers.find_with_version(
        version.workspace, version.name, version.version
    )
    server = server or _server(version.workspace, version.name, want)
    state = VersionState(version.status, version.created_at)
    mcp_servers.write(
        server._replace(versions={**server.versions, version.version: state}),
        puts=[version._replace(revision=0 if current is None else current.revision)],
    )


def _complete(workspace: str, name: str, want: Content) -> None:
    """Writes the fields, aliases and endpoints in ``want`` that differ in the target table."""
    wanted = _server(workspace, name, want)
    current = mcp_servers.find(workspace, name)
    if current is not None:
        wanted = wanted._replace(
            tags={**current.tags, **wanted.tags},
            aliases=current.aliases,
            versions=current.versions,
            endpoints=current.endpoints,
            revision=current.revision,
        )
    wanted = wanted._replace(
        aliases={**wanted.aliases, **want["aliases"]},
        endpoints={**wanted.endpoints, **_endpoints(name, want)},
    )
    if wanted != current:
        mcp_servers.write(wanted)


def _server(workspace: str, name: str, want: Content) -> MCPServer:
    """Returns the MCP server without versions, aliases and endpoints. Fields that equal those of
    the latest version are left empty: a server without an own description or icons shows the latest
    version's."""
    latest = want["versions"].get(want["latest_version"])
    of_version = None if latest is None else latest["server_json"].get("description")
    description = want["description"]
    return MCPServer(
        workspace=workspace,
        name=name,
        display_name=want["display_name"],
        description=None if description == of_version else description,
        icons=_own_icons(want["icons"]),
        tags=want["tags"],
        aliases={},
        versions={},
        endpoints={},
        **_creation_fields(want),
    )


def _own_icons(icons: list[Json] | None) -> list[Json] | None:
    if not icons:
        return icons
    return (
        written_icons([icon for icon in icons if icon.get("source") != "version"], "icons") or None
    )


def _version(workspace: str, name: str, number: str, content: Json) -> MCPServerVersion:
    return MCPServerVersion(
        workspace=workspace,
        name=name,
        version=number,
        server_json=content["server_json"],
        tools=[_without_nulls(tool) for tool in content["tools"] or ()] or None,
        connect_options=content["connect_options"] or None,
        source=content["source"],
        tags=content["tags"],
        status=content["status"],
        **_creation_fields(content),
    )


def _endpoints(name: str, want: Content) -> dict[str, AccessEndpoint]:
    return {
        endpoint_id: AccessEndpoint(
            endpoint_id=endpoint_id,
            server_name=name,
            url=endpoint["url"],
            transport_type=endpoint["transport_type"],
            server_version=endpoint["server_version"],
            server_alias=endpoint["server_alias"],
            **_creation_fields(endpoint),
        )
        for endpoint_id, endpoint in want["endpoints"].items()
    }


def _without_nulls(tool: Json) -> Json:
    """Returns the JSON of a tool without its null fields."""
    return {name: value for name, value in tool.items() if value is not None}


def _creation_fields(content: Content) -> dict[str, Any]:
    """Returns the users who created and last updated the entity, and the times."""
    return {
        "created_by": content["created_by"],
        "last_updated_by": content["last_updated_by"],
        "created_at": content["creation_timestamp"],
        "last_updated_at": content["last_updated_timestamp"],
    }
