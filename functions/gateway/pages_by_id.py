"""Pages of lists that are ordered by id. The page token holds the id of the last item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from gateway import messages as m
from mlcore import errors, paging
from mlcore.limits.shared_checks import check_max_results

T = TypeVar("T")

_DEFAULT_MAX_RESULTS: Final = 1000


def page(
    name: str,
    items: Sequence[T],
    id_of: Callable[[T], str],
    response: Callable[[T], dict[str, Any]],
    message: m.ListGatewayBudgetPolicies | m.ListGatewayGuardrails,
) -> dict[str, Any]:
    """Returns one page of the gateway's budget policies or guardrails, ordered by id, and a page
    token if more remain. An empty page has no list field.

    Args:
        name: the list's field in the response.
        items: all items, ordered by id.

    Raises:
        InvalidParameterValue: ``max_results`` is negative or too large, or the token is malformed
            or that of another list.
    """
    limit = message.max_results or _DEFAULT_MAX_RESULTS
    check_max_results(limit)
    last_id = _last_id_in(message.page_token, name)
    remaining = [item for item in items if id_of(item) > last_id]
    shown = [response(item) for item in remaining[:limit]]
    body: dict[str, Any] = {name: shown} if shown else {}
    if len(remaining) > limit:
        body["next_page_token"] = paging.token([id_of(remaining[limit - 1])], name)
    return body


def _last_id_in(token: str, name: str) -> str:
    position = paging.position_of(token, name)
    if position is None:
        return ""
    if len(position) != 1 or not isinstance(position[0], str):
        raise errors.InvalidParameterValue("Invalid page token")
    return position[0]
