"""MCP servers, their versions, and the endpoints by which they are reached."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Json = dict[str, Any]

DRAFT: Final = "draft"
ACTIVE: Final = "active"
DEPRECATED: Final = "deprecated"
DELETED: Final = "deleted"
STATUSES: Final = (DRAFT, ACTIVE, DEPRECATED, DELETED)

LATEST: Final = "latest"
"""The alias that nobody sets: of the active versions, or else of all, it means the greatest by
semantic versioning."""


class VersionState(NamedTuple):
    """What a server knows of one of its versions. A deleted one stays, so that its number is never
    given to another."""

    status: str
    created_at: int


class AccessEndpoint(NamedTuple):
    """Where a version is reached, which either its number or an alias names."""

    endpoint_id: str
    server_name: str
    url: str
    transport_type: str
    server_version: str | None
    server_alias: str | None
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    status: str = ""
    """Of the version that it leads to; where endpoints are searched."""


class MCPServer(NamedTuple):
    """``icons`` are None where the server leaves them to its latest version."""

    workspace: str
    name: str
    display_name: str | None
    description: str | None
    icons: list[Json] | None
    tags: dict[str, str]
    aliases: dict[str, str]
    versions: dict[str, VersionState]
    endpoints: dict[str, AccessEndpoint]
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0
    """Of the item that it was read from; 0 for one that is not there yet."""


class MCPServerVersion(NamedTuple):
    """``tools`` are None where nobody said any."""

    workspace: str
    name: str
    version: str
    server_json: Json
    tools: list[Json] | None
    connect_options: dict[str, Json] | None
    source: str | None
    tags: dict[str, str]
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    status: str = DRAFT
    precedence: str = ""
    """A text that sorts as semantic versioning orders versions; where versions are searched."""
    revision: int = 0
