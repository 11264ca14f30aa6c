"""MCP servers with their versions, tags, aliases and access endpoints, from the server to the
table. Versions that are deleted no server tells, nor access endpoints that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from mcp_servers import servers
from mlcore.entities.mcp_servers import AccessEndpoint, MCPServer, MCPServerVersion, VersionState
from mlcore.limits.mcp_servers import written_icons
from mlcore.repos import mcp_servers
from mlcore.responses import mcp_servers as responses
from mlcore.settle import settle
from operate.transfer.item import Content, Item
from operate.transfer.rest import Json, Server
from operate.transfer.source import API_3, offered

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
    """None of a server before 3.15, or of one that keeps its data in files."""
    path = f"{API_3}/mcp-servers"
    return offered(server.pages("GET", path, "mcp_servers", max_results=_PAGE)) or []


def item(server: Server, told: Json) -> Item:
    name, workspace = told["name"], server.workspace

    def want() -> Content:
        path = f"{API_3}/mcp-servers/{name}/versions"
        found = server.pages("GET", path, "mcp_server_versions", max_results=_VERSIONS)
        return _content(told, found)

    def have() -> Content | None:
        found, versions = mcp_servers.find_with_versions(workspace, name)
        if found is None:
            return None
        (shown,) = servers.shown([found])
        return _content(shown, (responses.version(one, found) for one in versions))

    def write(want: Content, found: Content | None) -> None:
        present = {} if found is None else found["versions"]
        for number, content in want["versions"].items():
            if present.get(number) != content:
                version = _version(workspace, name, number, content)
                settle("MCP server", partial(_write_version, version, want))
        settle("MCP server", lambda: _complete(workspace, name, want))

    return Item("MCP server", name, want, have, write, identity=identity(workspace, name))


def identity(workspace: str, name: str) -> str:
    """Names hold one slash, and those of workspaces none."""
    return f"{workspace}/{name}"


def _content(server: Json, versions: Iterable[Json]) -> Content:
    """What both tell in one form."""
    return {
        **_picked(server, _OF_SERVER),
        "latest_version": server["latest_version"],
        "aliases": {one["alias"]: one["version"] for one in server["aliases"]},
        "endpoints": {one["id"]: _picked(one, _OF_ENDPOINT) for one in server["access_endpoints"]},
        "versions": {one["version"]: _picked(one, _OF_VERSION) for one in versions},
    }


def _picked(told: Json, names: Iterable[str]) -> Json:
    return {name: told.get(name) for name in names}


def _write_version(version: MCPServerVersion, want: Content) -> None:
    """With its server, where that is not there; aliases and endpoints come after the versions that
    they name."""
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
    """Adds what the table's server lacks."""
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
    """Without versions and what names them. A server shows its latest version's description and
    icons where it has none of its own."""
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
        **_made(want),
    )


def _own_icons(icons: list[Json] | None) -> list[Json] | None:
    if not icons:
        return icons
    return written_icons([one for one in icons if one.get("source") != "version"], "icons") or None


def _version(workspace: str, name: str, number: str, content: Json) -> MCPServerVersion:
    return MCPServerVersion(
        workspace=workspace,
        name=name,
        version=number,
        server_json=content["server_json"],
        tools=[_said(tool) for tool in content["tools"] or ()] or None,
        connect_options=content["connect_options"] or None,
        source=content["source"],
        tags=content["tags"],
        status=content["status"],
        **_made(content),
    )


def _endpoints(name: str, want: Content) -> dict[str, AccessEndpoint]:
    return {
        endpoint_id: AccessEndpoint(
            endpoint_id=endpoint_id,
            server_name=name,
            url=one["url"],
            transport_type=one["transport_type"],
            server_version=one["server_version"],
            server_alias=one["server_alias"],
            **_made(one),
        )
        for endpoint_id, one in want["endpoints"].items()
    }


def _said(tool: Json) -> Json:
    """A tool without what nobody said of it, which is told as null."""
    return {name: value for name, value in tool.items() if value is not None}


def _made(content: Content) -> dict[str, Any]:
    """By whom, and when."""
    return {
        "created_by": content["created_by"],
        "last_updated_by": content["last_updated_by"],
        "created_at": content["creation_timestamp"],
        "last_updated_at": content["last_updated_timestamp"],
    }
