"""Embeddings through an endpoint of the gateway, as OpenAI's API has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.gateway.invocation import Invocation
from mlcore.providers.completions import used

Json = dict[str, Any]

_REQUEST: Final = "unified/embeddings"


def embedded(call: Invocation, body: Json) -> Json:
    """``{"object", "data": [{"object", "embedding", "index"}], "model", "usage"}``

    Raises:
        GatewayCallFailed: ``input`` is no text and no list of texts or tokens, or its providers
            refuse it.
    """
    if not _is_input(body["input"]):
        raise GatewayCallFailed(
            400, "Invalid embeddings payload: input: Input should be a text or a list"
        )
    asked = {name: value for name, value in body.items() if value is not None}
    with call.going(asked, _REQUEST) as span:
        sent = call.looked_at(asked)
        answer = call.whole(
            lambda provider: provider.embeddings(dict(sent)), lambda _, answer: used(answer)
        )
        span.answered(answer)
        return answer


def _is_input(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if not isinstance(value, list):
        return False
    kinds: tuple[Callable[[Any], bool], ...] = (_is_text, _is_token, _are_tokens)
    return any(all(map(is_fit, value)) for is_fit in kinds)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_token(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_token, value))
