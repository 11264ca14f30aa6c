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
"""The reserved alias that means the greatest active version by semantic versioning, or the greatest
of all versions if none is active."""


class VersionState(NamedTuple):
    """Status and creation time of an MCP server's version, which the server's item stores. They
    stay there after the version is deleted, so that the same version is not created again."""

    status: str
    created_at: int


class AccessEndpoint(NamedTuple):
    """The URL at which a version of an MCP server can be reached. The version is named by its
    number or by an alias."""

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
    """Status of the version that it leads to; set only by searches of endpoints."""


class MCPServer(NamedTuple):
    """An MCP server. ``icons`` is None if it shows those of its latest version."""

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
    """Revision of the stored item; 0 before it is stored."""
    is_moved: bool = False
    """Whether it is in another workspace, and here are only versions that are to be deleted."""


class MCPServerVersion(NamedTuple):
    """A version of an MCP server. ``tools`` is None if none were given."""

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
    """Text that sorts by semantic versioning; set only by searches of versions."""
    revision: int = 0
