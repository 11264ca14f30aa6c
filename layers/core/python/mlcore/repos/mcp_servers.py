"""MCP servers: one item each, all of a workspace in one partition; each version has an item too.
All reads are strongly consistent.

The server's item is the source of truth: it holds the states of its versions, its aliases and its
access endpoints, so one condition prevents an alias to a deleted version, and a deletion of the
last version of a server. A version item that the server's item does not list is ignored.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.table import Delete, Operation, Put, key_of_item, table
from mlcore.entities.mcp_servers import (
    DELETED,
    AccessEndpoint,
    Json,
    MCPServer,
    MCPServerVersion,
    VersionState,
)
from mlcore.ids import now_ms
from mlcore.models.mcp_servers import MCPServer as ServerItem
from mlcore.models.mcp_servers import MCPServerVersion as VersionItem
from mlcore.repos.workspaces import guarded_writes, versioned_moves
from mlcore.repos.workspaces.versioned_moves import VersionedMove, item_at

_VERSIONS_AT_ONCE: Final = 60
"""Versions deleted in one transaction, which leaves room for the grants on the server."""


def find(workspace: str, name: str) -> MCPServer | None:
    """Returns an MCP server without the content of its versions; None if the workspace has none of
    this name. One consistent GetItem."""
    raw = table.get(keys.mcp_server(workspace, name))
    return None if raw is None else _server(workspace, raw)


def find_with_version(
    workspace: str, name: str, version: str
) -> tuple[MCPServer | None, MCPServerVersion | None]:
    """Returns (MCP server, version). The version is None if it is missing or deleted; both are None
    if the server is missing. One consistent BatchGetItem."""
    places = [keys.mcp_server(workspace, name), keys.mcp_server_version(workspace, name, version)]
    raw, items = table.batch_get(places)
    if raw is None:
        return None, None
    server = _server(workspace, raw)
    return server, None if items is None else _live(server, items)


def of_workspace(workspace: str) -> list[MCPServer]:
    """Returns all MCP servers of a workspace, ordered by name; one Query per MB."""
    pk = keys.mcp_server(workspace, "").pk
    items = table.query_all(pk, prefix=keys.mcp_server_prefix())
    return [_server(workspace, raw) for raw in items]


def find_versions(wanted: Sequence[tuple[MCPServer, str]]) -> list[MCPServerVersion | None]:
    """Returns, for each pair of MCP server and version name, that version, in the order of the
    pairs; None for a missing or deleted version."""
    if not wanted:
        return []
    raws = table.batch_get(
        [
            keys.mcp_server_version(server.workspace, server.name, version)
            for server, version in wanted
        ]
    )
    return [
        None if raw is None else _live(server, raw)
        for (server, _), raw in zip(wanted, raws, strict=True)
    ]


def find_with_versions(
    workspace: str, name: str
) -> tuple[MCPServer | None, list[MCPServerVersion]]:
    """Returns an MCP server and all its versions that are not deleted; one GetItem, and one Query
    per MB, in parallel."""
    pk = keys.mcp_server_version(workspace, name, "").pk
    prefix = keys.mcp_server_version_prefix()
    results: list[Any] = table.parallel(
        [lambda: find(workspace, name), lambda: list(table.query_all(pk, prefix=prefix))]
    )
    server, raws = results
    if server is None:
        return None, []
    versions = [_live(server, raw) for raw in raws]
    return server, [version for version in versions if version is not None]


def write(
    server: MCPServer,
    *,
    puts: Sequence[MCPServerVersion] = (),
    deletes: Iterable[str] = (),
    also: Sequence[Operation] = (),
) -> None:
    """Writes a new or changed MCP server, with versions of it.

    Args:
        puts: new or changed versions to write in the same transaction.
        deletes: versions whose items to delete.
        also: further operations of the transaction.

    Raises:
        WriteConflict: the server or one of ``puts`` was written by another request since it was
            read, or a condition of ``also`` does not hold.
        ResourceDoesNotExist: the server is new and its workspace was deleted.
    """
    operations: list[Operation] = [
        Put(_item(server), _unchanged(server.revision, server.created_at))
    ]
    operations += map(_putting, puts)
    operations += [
        Delete(keys.mcp_server_version(server.workspace, server.name, version))
        for version in deletes
    ]
    operations += also
    guarded_writes.write(operations, creates_in=None if server.revision else server.workspace)


def write_version(version: MCPServerVersion) -> None:
    """Writes a changed version of an MCP server. Raises WriteConflict if it was written since it
    was read."""
    guarded_writes.write([_putting(version)])


def delete(server: MCPServer, also: Sequence[Operation] = ()) -> None:
    """Deletes an MCP server with its versions. Versions that do not fit into one transaction are
    deleted before it, so an interrupted call leaves a server with fewer versions. Raises
    WriteConflict if the server was written since it was read."""
    while len(server.versions) > _VERSIONS_AT_ONCE:
        gone = list(server.versions)[:_VERSIONS_AT_ONCE]
        kept = {key: state for key, state in server.versions.items() if key not in gone}
        server = server._replace(versions=kept)
        write(server, deletes=gone)
        server = server._replace(revision=server.revision + 1)
    guarded_writes.write(
        [
            Delete(
                keys.mcp_server(server.workspace, server.name),
                _unchanged(server.revision, server.created_at),
            ),
            *(
                Delete(keys.mcp_server_version(server.workspace, server.name, version))
                for version in server.versions
            ),
            *also,
        ]
    )


def is_taken(server: MCPServer, workspace: str) -> bool:
    """Whether a workspace has an MCP server of the same name that is another one: not the copy that
    release 0.1.0 made before it was interrupted."""
    other = None if server.is_moved else find(workspace, server.name)
    return other is not None and not versioned_moves.is_copy(other, server)


def move(server: MCPServer, workspace: str) -> None:
    """Moves an MCP server with its versions to a workspace that has no other server of its name.
    Idempotent. A copy that an interrupted call of release 0.1.0 has made is complete and stays.
    Raises WriteConflict if the server or one of its versions is changed meanwhile."""
    key = keys.mcp_server(server.workspace, server.name)
    raw = table.get(key)
    if raw is None:
        return
    stored = _server(server.workspace, raw)
    if stored.is_moved or versioned_moves.execute(
        _moving(raw, stored, workspace),
        lambda other: versioned_moves.is_copy(_server(workspace, other), stored),
    ):
        left = find(server.workspace, server.name)
        if left is not None and left.is_moved:
            _delete_left(left, workspace)
        if left is not None:
            delete(left)


def _delete_left(server: MCPServer, workspace: str) -> None:
    """Deletes the versions that the move of a server to a workspace has left."""

    def is_copy_of(_there: Raw, item: Raw) -> bool:
        number, current = VersionItem.of(item).number, find(workspace, server.name)
        mine, copied = server.versions.get(number), current and current.versions.get(number)
        return bool(mine and copied and mine.created_at == copied.created_at)

    def copy_of(item: Raw) -> Raw:
        return _version_copy(item, workspace)

    versioned_moves.delete_left(_version_items(server), copy_of, is_copy_of, VersionItem)


def _moving(raw: Raw, server: MCPServer, workspace: str) -> VersionedMove:
    key = keys.mcp_server(server.workspace, server.name)
    unchanged = _unchanged(server.revision, server.created_at)
    copies, deletions = list[Raw](), list[Delete]()
    for item in _version_items(server):
        version = VersionItem.of(item)
        deletions.append(Delete(key_of_item(item), _unchanged(version.version)))
        if version.number in server.versions:
            copies.append(_version_copy(item, workspace))
    copy = item_at(keys.mcp_server(workspace, server.name), raw)
    return VersionedMove(
        copy,
        copies,
        Delete(key, unchanged),
        deletions,
        versioned_moves.mark(key, server, ServerItem),
    )


def _version_items(server: MCPServer) -> Iterator[Raw]:
    pk = keys.mcp_server_version(server.workspace, server.name, "").pk
    return table.query_all(pk, prefix=keys.mcp_server_version_prefix())


def _version_copy(item: Raw, workspace: str) -> Raw:
    """Returns the item of a version as it is to be stored in another workspace."""
    version = VersionItem.of(item)
    return item_at(keys.mcp_server_version(workspace, version.name, version.number), item)


def _putting(version: MCPServerVersion) -> Put:
    """Returns the put of a version, with the condition that it was not written since it was read. A
    new version may overwrite an item left by a deleted server of the same name."""
    return Put(_version_item(version), _unchanged(version.revision) if version.revision else None)


def _unchanged(revision: int, created_at: int | None = None) -> ConditionExpression:
    """Returns a condition on an item's revision; revision 0 requires that there is no item.

    Args:
        created_at: of a server: it must not have been deleted and created again.
    """
    condition = ConditionExpression()
    if revision:
        condition.require_equal(ServerItem.version, revision)
        if created_at is not None:
            condition.require_equal(ServerItem.created_at, created_at)
    else:
        condition.require_absent(ServerItem.PK)
    return condition


def _item(server: MCPServer) -> Raw:
    key = keys.mcp_server(server.workspace, server.name)
    endpoints = {
        endpoint.endpoint_id: {
            name: value
            for name, value in endpoint._asdict().items()
            if name not in ("endpoint_id", "server_name", "status") and value is not None
        }
        for endpoint in server.endpoints.values()
    }
    item = ServerItem(
        PK=key.pk,
        SK=key.sk,
        name=server.name,
        display_name=server.display_name,
        description=server.description,
        icons=None if server.icons is None else _json(server.icons),
        tags=_json(server.tags) if server.tags else None,
        aliases=_json(server.aliases) if server.aliases else None,
        versions=_json(server.versions) if server.versions else None,
        endpoints=_json(endpoints) if endpoints else None,
        created_by=server.created_by,
        last_updated_by=server.last_updated_by,
        created_at=server.created_at,
        last_updated_at=server.last_updated_at,
        is_moved=server.is_moved or None,
        version=server.revision + 1,
        updated_at=now_ms(),
    )
    return item.serialize()


def _server(workspace: str, raw: Raw) -> MCPServer:
    item = ServerItem.of(raw)
    endpoints: Json = json.loads(item.endpoints or "{}")
    versions: Json = json.loads(item.versions or "{}")
    return MCPServer(
        workspace=workspace,
        name=item.name,
        display_name=item.display_name,
        description=item.description,
        icons=None if item.icons is None else json.loads(item.icons),
        tags=json.loads(item.tags or "{}"),
        aliases=json.loads(item.aliases or "{}"),
        versions={version: VersionState(*state) for version, state in versions.items()},
        endpoints={
            endpoint_id: AccessEndpoint(
                endpoint_id,
                item.name,
                fields["url"],
                fields["transport_type"],
                fields.get("server_version"),
                fields.get("server_alias"),
                fields.get("created_by"),
                fields.get("last_updated_by"),
                fields["created_at"],
                fields["last_updated_at"],
            )
            for endpoint_id, fields in endpoints.items()
        },
        created_by=item.created_by,
        last_updated_by=item.last_updated_by,
        created_at=item.created_at,
        last_updated_at=item.last_updated_at,
        revision=item.version,
        is_moved=bool(item.is_moved),
    )


def _version_item(version: MCPServerVersion) -> Raw:
    key = keys.mcp_server_version(version.workspace, version.name, version.version)
    content = {
        "server_json": version.server_json,
        "tools": version.tools,
        "connect_options": version.connect_options,
        "source": version.source,
        "created_by": version.created_by,
    }
    item = VersionItem(
        PK=key.pk,
        SK=key.sk,
        name=version.name,
        number=version.version,
        data=zlib.compress(_json(content).encode()),
        tags=_json(version.tags) if version.tags else None,
        last_updated_by=version.last_updated_by,
        last_updated_at=version.last_updated_at,
        version=version.revision + 1,
        updated_at=now_ms(),
    )
    return item.serialize()


def _live(server: MCPServer, raw: Raw) -> MCPServerVersion | None:
    """Returns the version that an item holds, with the state that its server's item has for it;
    None if it is deleted or the server does not list it."""
    item = VersionItem.of(raw)
    state = server.versions.get(item.number)
    if state is None or state.status == DELETED:
        return None
    content: Json = json.loads(zlib.decompress(item.data))
    return MCPServerVersion(
        workspace=server.workspace,
        name=server.name,
        version=item.number,
        server_json=content["server_json"],
        tools=content["tools"],
        connect_options=content["connect_options"],
        source=content["source"],
        tags=json.loads(item.tags or "{}"),
        created_by=content["created_by"],
        last_updated_by=item.last_updated_by,
        created_at=state.created_at,
        last_updated_at=item.last_updated_at,
        status=state.status,
        revision=item.version,
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
