"""MCP servers: an item each, all of a workspace in one partition; what their versions say in items
of their own. Read strongly consistently.

The item of a server decides: it holds the states of its versions, its aliases and its access
endpoints, so that an alias to a version that goes, or a last version that goes with its server, are
decided by one condition. An item of a version that its server does not name counts for nothing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.mcp_servers import (
    DELETED,
    AccessEndpoint,
    Json,
    MCPServer,
    MCPServerVersion,
    VersionState,
)
from mlcore.ids import new_ulid, now_ms
from mlcore.models.mcp_servers import MCPServer as ServerItem
from mlcore.models.mcp_servers import MCPServerVersion as VersionItem
from mlcore.repos.workspaces import workspaces
from mlcore.settle import Conflict

_VERSIONS_AT_ONCE: Final = 60
"""Of a server that is deleted: beside them one transaction takes the grants on it."""


def find(workspace: str, name: str) -> MCPServer | None:
    """One consistent GetItem."""
    raw = table.get(keys.mcp_server(workspace, name))
    return None if raw is None else _server(workspace, raw)


def find_with_version(
    workspace: str, name: str, version: str
) -> tuple[MCPServer | None, MCPServerVersion | None]:
    """A server, and one of its versions unless it is deleted; one consistent BatchGetItem."""
    places = [keys.mcp_server(workspace, name), keys.mcp_server_version(workspace, name, version)]
    raw, said = table.batch_get(places)
    if raw is None:
        return None, None
    server = _server(workspace, raw)
    return server, None if said is None else _live(server, said)


def of_workspace(workspace: str) -> list[MCPServer]:
    """All of a workspace by name; one Query for each MB."""
    pk = keys.mcp_server(workspace, "").pk
    found = table.query_all(pk, prefix=keys.mcp_server_prefix())
    return [_server(workspace, raw) for raw in found]


def find_versions(wanted: Sequence[tuple[MCPServer, str]]) -> list[MCPServerVersion | None]:
    """Versions of servers that were read, in the order in which they are named."""
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
    """A server and all versions that are not deleted; two reads side by side."""
    pk = keys.mcp_server_version(workspace, name, "").pk
    prefix = keys.mcp_server_version_prefix()
    found: list[Any] = table.parallel(
        [lambda: find(workspace, name), lambda: list(table.query_all(pk, prefix=prefix))]
    )
    server, raws = found
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
    """A server that is new, or that was read and then changed, with versions of it.

    Args:
        puts: what versions say; one that was read before must not have changed since.
        deletes: versions whose item goes.
        also: what else the transaction writes.

    Raises:
        Conflict: something changed since it was read.
        ResourceDoesNotExist: the workspace is gone.
    """
    operations: list[Operation] = [Put(_item(server), _unchanged(server.revision))]
    operations += map(_putting, puts)
    operations += [
        Delete(keys.mcp_server_version(server.workspace, server.name, version))
        for version in deletes
    ]
    operations += also
    entering = [] if server.revision else workspaces.entering(server.workspace)
    _transact([*entering, *operations], server.workspace if entering else None)


def write_version(version: MCPServerVersion) -> None:
    """What a version says, which was read and then changed. Raises Conflict."""
    _transact([_putting(version)])


def delete(server: MCPServer, also: Sequence[Operation] = ()) -> None:
    """The server with its versions; what one transaction has no room for goes before it, so that a
    call that was cut short leaves a server with fewer versions. Raises Conflict."""
    while len(server.versions) > _VERSIONS_AT_ONCE:
        gone = list(server.versions)[:_VERSIONS_AT_ONCE]
        kept = {key: state for key, state in server.versions.items() if key not in gone}
        server = server._replace(versions=kept)
        write(server, deletes=gone)
        server = server._replace(revision=server.revision + 1)
    _transact(
        [
            Delete(keys.mcp_server(server.workspace, server.name), _unchanged(server.revision)),
            *(
                Delete(keys.mcp_server_version(server.workspace, server.name, version))
                for version in server.versions
            ),
            *also,
        ]
    )


def move(server: MCPServer, workspace: str) -> None:
    """To another workspace, where nothing has its name: its versions first. May be repeated."""
    _, versions = find_with_versions(server.workspace, server.name)
    moved = [version._replace(workspace=workspace, revision=0) for version in versions]
    table.batch_write([_version_item(version) for version in moved])
    table.put(_item(server._replace(workspace=workspace, revision=0)))
    delete(server)


def _transact(operations: Sequence[Operation], workspace: str | None = None) -> None:
    """Args:
    workspace: what the first operation finds there.
    """
    first = operations[0]
    try:
        if len(operations) == 1 and isinstance(first, Put):
            table.put(first.item, first.condition)
        else:
            table.transact(operations, new_ulid())
    except ConditionFailed as failed:
        raise Conflict from failed
    except TransactionFailed as failed:
        if workspace is not None and 0 in failed.items:
            raise workspaces.missing(workspace) from failed
        raise Conflict from failed


def _putting(version: MCPServerVersion) -> Put:
    """What its server did not name before overwrites whatever is left of a former server's."""
    return Put(_version_item(version), _unchanged(version.revision) if version.revision else None)


def _unchanged(revision: int) -> Condition:
    """Holds for an item that has this revision; 0 is one that is new."""
    condition = Condition()
    if revision:
        condition.require_equal(ServerItem.version, revision)
    else:
        condition.require_absent(ServerItem.PK)
    return condition


def _item(server: MCPServer) -> Raw:
    place = keys.mcp_server(server.workspace, server.name)
    endpoints = {
        endpoint.endpoint_id: {
            name: value
            for name, value in endpoint._asdict().items()
            if name not in ("endpoint_id", "server_name", "status") and value is not None
        }
        for endpoint in server.endpoints.values()
    }
    item = ServerItem(
        PK=place.pk,
        SK=place.sk,
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
                said["url"],
                said["transport_type"],
                said.get("server_version"),
                said.get("server_alias"),
                said.get("created_by"),
                said.get("last_updated_by"),
                said["created_at"],
                said["last_updated_at"],
            )
            for endpoint_id, said in endpoints.items()
        },
        created_by=item.created_by,
        last_updated_by=item.last_updated_by,
        created_at=item.created_at,
        last_updated_at=item.last_updated_at,
        revision=item.version,
    )


def _version_item(version: MCPServerVersion) -> Raw:
    place = keys.mcp_server_version(version.workspace, version.name, version.version)
    said = {
        "server_json": version.server_json,
        "tools": version.tools,
        "connect_options": version.connect_options,
        "source": version.source,
        "created_by": version.created_by,
    }
    item = VersionItem(
        PK=place.pk,
        SK=place.sk,
        name=version.name,
        number=version.version,
        data=zlib.compress(_json(said).encode()),
        tags=_json(version.tags) if version.tags else None,
        last_updated_by=version.last_updated_by,
        last_updated_at=version.last_updated_at,
        version=version.revision + 1,
        updated_at=now_ms(),
    )
    return item.serialize()


def _live(server: MCPServer, raw: Raw) -> MCPServerVersion | None:
    """A version as its server knows it; None for one that is deleted, or of a former server."""
    item = VersionItem.of(raw)
    state = server.versions.get(item.number)
    if state is None or state.status == DELETED:
        return None
    said: Json = json.loads(zlib.decompress(item.data))
    return MCPServerVersion(
        workspace=server.workspace,
        name=server.name,
        version=item.number,
        server_json=said["server_json"],
        tools=said["tools"],
        connect_options=said["connect_options"],
        source=said["source"],
        tags=json.loads(item.tags or "{}"),
        created_by=said["created_by"],
        last_updated_by=item.last_updated_by,
        created_at=state.created_at,
        last_updated_at=item.last_updated_at,
        status=state.status,
        revision=item.version,
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
