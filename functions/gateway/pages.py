"""Pages of lists by id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from gateway import messages as m
from mlcore import errors, paging
from mlcore.limits.text import check_max_results

T = TypeVar("T")

_USUAL: Final = 1000


def page(
    name: str,
    found: Sequence[T],
    id_of: Callable[[T], str],
    response: Callable[[T], dict[str, Any]],
    message: m.ListGatewayBudgetPolicies | m.ListGatewayGuardrails,
) -> dict[str, Any]:
    """As many as a request asks for, and a token if there are more; without any no list.

    Args:
        found: all, by id.

    Raises:
        InvalidParameterValue: too many are asked for, or the token is none of this list.
    """
    most = message.max_results or _USUAL
    check_max_results(most)
    after = _last_of(message.page_token, name)
    rows = [one for one in found if id_of(one) > after]
    shown = [response(one) for one in rows[:most]]
    answer: dict[str, Any] = {name: shown} if shown else {}
    if len(rows) > most:
        answer["next_page_token"] = paging.token([id_of(rows[most - 1])], name)
    return answer


def _last_of(token: str, name: str) -> str:
    position = paging.position_of(token, name)
    if position is None:
        return ""
    if len(position) != 1 or not isinstance(position[0], str):
        raise errors.InvalidParameterValue("Invalid page token")
    return position[0]
