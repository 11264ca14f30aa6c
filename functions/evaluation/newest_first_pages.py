"""Pages of lists that are ordered by creation time, newest first, then by id. A page token holds
the creation time and the id of the page's last entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from mlcore import errors, paging

T = TypeVar("T")

Position = tuple[int, str]
"""The sort key of a row: the negated creation time, and the id."""
Row = tuple[int, str, T]


def parse_token(token: str, query: str) -> Position | None:
    """Returns the position that a page token holds; None for an empty token (the first page).
    Raises InvalidParameterValue if the token is malformed or belongs to another query."""
    position = paging.position_of(token, query)
    if position is None:
        return None
    if [type(part) for part in position] != [int, str]:
        raise errors.InvalidParameterValue("Invalid page token")
    inverted_time, entity_id = position
    return int(str(inverted_time)), str(entity_id)


def rows_after(rows: Iterable[Row[T]], after: Position | None) -> list[Row[T]]:
    """Returns the entries (``rows``) of a list page in order, newest first, from the first one
    after the position ``after`` of a page token; all entries if it is None."""
    return [row for row in sorted(rows) if after is None or row[:2] > after]


def page(
    name: str, rows: Sequence[Row[T]], limit: int, query: str, response: Callable[[T], Any]
) -> dict[str, Any]:
    """Returns the response with the first ``limit`` entities in ``rows`` (from :func:`rows_after`),
    and a page token if more remain. An empty page has no list field.

    Args:
        name: the list's field in the response.
        query: identifies the list (an experiment's id, for example); the page token is valid for it
            only.
    """
    body: dict[str, Any] = {"next_page_token": ""}
    if rows:
        body[name] = [response(entity) for _, _, entity in rows[:limit]]
    if len(rows) > limit:
        body["next_page_token"] = paging.token(list(rows[limit - 1][:2]), query)
    return body
