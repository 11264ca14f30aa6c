"""Saved SQL queries: one item each, all of a workspace in one partition. All reads are strongly
consistent."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Operation, Put, table
from mlcore.entities.saved_queries import QueryParameter, SavedQuery
from mlcore.ids import now_ms
from mlcore.models.saved_queries import SavedQuery as QueryItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.workspaces import guarded_writes

_LISTED: Final = (
    *(QueryItem.name, QueryItem.description, QueryItem.parameters, QueryItem.created_by),
    *(QueryItem.user_id, QueryItem.last_updated_by, QueryItem.created_at),
    *(QueryItem.last_updated_at, QueryItem.version),
)
"""The attributes of a list: all but the SQL."""


class QueryPage(NamedTuple):
    queries: list[SavedQuery]
    """Without their SQL."""
    has_more: bool


def find(workspace: str, name: str) -> SavedQuery | None:
    """Returns a saved query, however upper and lower case of the name are spelled; None if the
    workspace has none of this name. One consistent GetItem."""
    item = table.get(keys.saved_query(workspace, name))
    return None if item is None else _query(workspace, item)


def get(workspace: str, name: str) -> SavedQuery:
    """Like :func:`find` (a saved SQL query by name), but raises ResourceDoesNotExist if missing."""
    query = find(workspace, name)
    if query is None:
        raise errors.ResourceDoesNotExist(f"The workspace has no saved query {name!r}.")
    return query


def page(workspace: str, after: str, limit: int) -> QueryPage:
    """Returns a page of a workspace's saved queries, ordered by name, without their SQL; one Query
    per MB.

    Args:
        after: the name after which the page begins; empty for the first page.
        limit: the maximum number of saved queries on the page.
    """
    pk = keys.saved_query(workspace, "").pk
    between = keys.saved_queries_after(after)
    rows: list[Raw] = []
    start = None
    while True:
        answer = table.query(
            pk, between=between, limit=limit + 1 - len(rows), start=start, attributes=_LISTED
        )
        rows += answer.items
        start = answer.last_key
        if start is None or len(rows) > limit:
            break
    return QueryPage([_query(workspace, row) for row in rows[:limit]], len(rows) > limit)


def of_workspace(workspace: str) -> list[SavedQuery]:
    """Returns all saved queries of a workspace, with their SQL; one Query per MB."""
    pk = keys.saved_query(workspace, "").pk
    items = table.query_all(pk, between=keys.saved_queries_after(""))
    return [_query(workspace, item) for item in items]


def write(query: SavedQuery, also: tuple[Operation, ...] = ()) -> SavedQuery:
    """Writes a new saved SQL query (``revision`` 0) or a changed one, and returns it as stored.

    Args:
        also: further operations of the transaction.

    Raises:
        WriteConflict: the query was written, created or deleted since it was read, or a condition
            of ``also`` does not hold.
        ResourceDoesNotExist: the workspace of a new query was deleted.
    """
    written = query._replace(revision=query.revision + 1)
    operation = Put(_item(written), _unchanged(query.revision))
    guarded_writes.write([operation, *also], creates_in=None if query.revision else query.workspace)
    return written


def delete(query: SavedQuery) -> None:
    """Deletes a saved SQL query. Raises WriteConflict if another request has written or deleted it
    since it was read."""
    key = keys.saved_query(query.workspace, query.name)
    try:
        table.delete(key, _unchanged(query.revision))
    except ConditionFailed as failed:
        raise WriteConflict from failed


def move(query: SavedQuery, workspace: str) -> None:
    """Moves a saved query to a workspace that has none of its name. Raises WriteConflict if there
    is one, or if the saved query changed since it was read; ResourceDoesNotExist if that workspace
    was deleted."""
    key = keys.saved_query(query.workspace, query.name)
    deletion = Delete(key, _unchanged(query.revision))
    write(query._replace(workspace=workspace, revision=0), (deletion,))


def _unchanged(revision: int) -> ConditionExpression:
    """Returns a condition on an item's revision; revision 0 requires that there is no item."""
    condition = ConditionExpression()
    if revision:
        condition.require_equal(QueryItem.version, revision)
    else:
        condition.require_absent(QueryItem.PK)
    return condition


def _item(query: SavedQuery) -> Raw:
    key = keys.saved_query(query.workspace, query.name)
    parameters = [
        [parameter.name, parameter.kind, *([parameter.default] if parameter.has_default else [])]
        for parameter in query.parameters
    ]
    item = QueryItem(
        PK=key.pk,
        SK=key.sk,
        name=query.name,
        sql=query.sql,
        description=query.description or None,
        parameters=json.dumps(parameters, ensure_ascii=False, separators=(",", ":")),
        created_by=query.created_by,
        user_id=query.owner_id,
        last_updated_by=query.last_updated_by,
        created_at=query.created_at,
        last_updated_at=query.last_updated_at,
        version=query.revision,
        updated_at=now_ms(),
    )
    return item.serialize()


def _query(workspace: str, raw: Raw) -> SavedQuery:
    item = QueryItem.of(raw)
    has_sql = QueryItem.sql.attr_name in raw
    return SavedQuery(
        workspace=workspace,
        name=item.name,
        sql=item.sql if has_sql else "",
        description=item.description or "",
        parameters=tuple(
            QueryParameter(name, kind, bool(default), *default)
            for name, kind, *default in json.loads(item.parameters)
        ),
        created_by=item.created_by,
        owner_id=item.user_id,
        last_updated_by=item.last_updated_by,
        created_at=item.created_at,
        last_updated_at=item.last_updated_at,
        revision=item.version,
    )
