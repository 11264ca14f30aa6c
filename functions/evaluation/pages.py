"""Pages of lists that are the newest first, then by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from mlcore import errors, paging

T = TypeVar("T")

Place = tuple[int, str]
"""The negated time, and the id."""
Row = tuple[int, str, T]


def place_in(token: str, query: str) -> Place | None:
    """The place in a page token; None for the first page. Raises InvalidParameterValue."""
    position = paging.position_of(token, query)
    if position is None:
        return None
    if [type(part) for part in position] != [int, str]:
        raise errors.InvalidParameterValue("Invalid page token")
    inverted_time, entity_id = position
    return int(str(inverted_time)), str(entity_id)


def following(rows: Iterable[Row[T]], after: Place | None) -> list[Row[T]]:
    """In order, those behind a place."""
    return [row for row in sorted(rows) if after is None or row[:2] > after]


def answer(
    name: str, rows: Sequence[Row[T]], limit: int, query: str, response: Callable[[T], Any]
) -> dict[str, Any]:
    """Up to ``limit`` of the rows, and a token if there are more; without rows no list."""
    shown: dict[str, Any] = {"next_page_token": ""}
    if rows:
        shown[name] = [response(entity) for _, _, entity in rows[:limit]]
    if len(rows) > limit:
        shown["next_page_token"] = paging.token(list(rows[limit - 1][:2]), query)
    return shown
