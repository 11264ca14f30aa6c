"""Creates, reads, lists, changes and deletes saved queries of a workspace. The SQL function runs
them."""

from __future__ import annotations

from typing import Any, Final

from mlcore import errors, ids, paging
from mlcore.entities.saved_queries import SavedQuery
from mlcore.http import Request
from mlcore.limits import saved_queries as limits
from mlcore.limits.shared_checks import check_max_results
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.policies.saved_queries import may_change
from mlcore.repos import saved_queries
from mlcore.responses import saved_queries as responses
from workspaces import messages as m

MAX_RESULTS: Final = 1000
DEFAULT_RESULTS: Final = 100


def create_query(message: m.CreateQuery, request: Request) -> dict[str, Any]:
    """Saves a query under a new name. The SQL is not run. Repeating the request returns the same
    query. Raises ResourceAlreadyExists if the name has another query, or the same one of another
    user."""
    limits.check_name(message.name)
    now = ids.now_ms()
    access = request.access
    query = SavedQuery(
        workspace=request.workspace,
        name=message.name,
        sql=message.sql,
        description=message.description,
        parameters=limits.declared_parameters(
            message.parameters if message.has("parameters") else []
        ),
        created_by=request.username(),
        owner_id=None if access is None else access.profile().user.user_id,
        last_updated_by=request.username(),
        created_at=now,
        last_updated_at=now,
        revision=0,
    )
    _check(query)

    def attempt() -> SavedQuery:
        stored = saved_queries.find(query.workspace, query.name)
        if stored is None:
            return saved_queries.write(query)
        if stored.owner_id == query.owner_id and _content(stored) == _content(query):
            return stored
        raise errors.ResourceAlreadyExists(
            f"The workspace has a saved query {stored.name!r} already."
        )

    return _answer(retry_on_conflict("saved query", attempt))


def get_query(message: m.SavedQueryName, request: Request) -> dict[str, Any]:
    return _answer(_get(message.name, request))


def list_queries(message: m.ListQueries, request: Request) -> dict[str, Any]:
    """Returns a page of the workspace's saved SQL queries, by name, without the text of the SQL."""
    limit = message.max_results if message.has("max_results") else DEFAULT_RESULTS
    check_max_results(limit, MAX_RESULTS)
    page = saved_queries.page(request.workspace, _name_in(message.page_token, request), limit)
    answer: dict[str, Any] = {
        "queries": [responses.saved_query(query, with_sql=False) for query in page.queries]
    }
    if page.has_more:
        last = page.queries[-1].name
        answer["next_page_token"] = paging.token([last], _token_scope(request))
    return answer


def update_query(message: m.UpdateQuery, request: Request) -> dict[str, Any]:
    """Changes the SQL, the description or the parameters of a saved query; omitted fields stay. An
    update that changes nothing returns the query as it is, so the request may be repeated.

    Raises:
        InvalidParameterValue: a field has no valid value.
        ResourceConflict: ``revision`` is not that of the stored query.
        PermissionDenied: the query is another user's, and the caller does not administer the
            workspace.
        ResourceDoesNotExist: there is no query of this name.
    """

    def attempt() -> SavedQuery:
        stored = _owned(message.name, request)
        changed = stored
        if message.has("sql"):
            changed = changed._replace(sql=message.sql)
        if message.has("description"):
            changed = changed._replace(description=message.description)
        if message.has("parameters"):
            declared = limits.declared_parameters(message.parameters)
            changed = changed._replace(parameters=declared)
        _check(changed)
        if _content(changed) == _content(stored):
            return stored
        _check_revision(message, stored)
        return saved_queries.write(
            changed._replace(last_updated_by=request.username(), last_updated_at=ids.now_ms())
        )

    return _answer(retry_on_conflict("saved query", attempt))


def delete_query(message: m.DeleteQuery, request: Request) -> dict[str, Any]:
    """Deletes a saved SQL query. Raises as :func:`update_query`."""

    def attempt() -> dict[str, Any]:
        stored = _owned(message.name, request)
        _check_revision(message, stored)
        saved_queries.delete(stored)
        return {}

    return retry_on_conflict("saved query", attempt)


def _get(name: str, request: Request) -> SavedQuery:
    limits.check_name(name)
    return saved_queries.get(request.workspace, name)


def _owned(name: str, request: Request) -> SavedQuery:
    query = _get(name, request)
    if not may_change(request.access, query):
        raise errors.PermissionDenied(
            "Only the owner of a saved query and administrators of its workspace may change it. "
            "Save it under another name."
        )
    return query


def _check(query: SavedQuery) -> None:
    limits.check_sql(query.sql)
    limits.check_description(query.description)


def _check_revision(message: m.UpdateQuery | m.DeleteQuery, stored: SavedQuery) -> None:
    if message.has("revision") and message.revision != stored.revision:
        raise errors.ResourceConflict(
            f"The saved query {stored.name!r} has revision {stored.revision}, not "
            f"{message.revision}: somebody changed it. Read it again."
        )


def _content(query: SavedQuery) -> tuple[object, ...]:
    # As a text, because NaN as a default does not equal itself.
    return query.sql, query.description, repr(query.parameters)


def _token_scope(request: Request) -> list[str]:
    return ["saved queries", request.workspace]


def _name_in(token: str, request: Request) -> str:
    """Returns the name after which the page of a token begins; "" for the first page."""
    position = paging.position_of(token, _token_scope(request))
    if position is None:
        return ""
    if len(position) != 1 or not isinstance(position[0], str):
        raise errors.InvalidParameterValue("Invalid page token")
    limits.check_name(position[0])
    return position[0]


def _answer(query: SavedQuery) -> dict[str, Any]:
    return {"query": responses.saved_query(query)}
