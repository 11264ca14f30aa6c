"""Computes the cost of calls of judges' models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcore.judges.judge_model import Complete
from mlcore.prices.model_call_cost import cost
from mlcore.providers.token_counts import token_counts_of
from mlcore.repos.settings import llm_prices


def metered(complete: Complete, add: Callable[[float], None]) -> Complete:
    """Returns a function that completes chats like ``complete`` and passes the cost of each in US
    dollars to ``add``. A model whose price is unknown adds nothing."""

    def completion(
        workspace: str, endpoint: str, chat: Mapping[str, Any], username: str | None
    ) -> dict[str, Any]:
        answer = complete(workspace, endpoint, chat, username)
        spent = cost_of(answer)
        if spent is not None:
            add(spent)
        return answer

    return completion


def cost_of(answer: dict[str, Any]) -> float | None:
    """Returns the cost of a completion in US dollars; None for a model whose price is unknown."""
    usage = token_counts_of(answer)
    spent = cost(answer.get("model"), usage, answer.get("provider"), llm_prices.own())
    return None if spent is None else spent["total_cost"]
