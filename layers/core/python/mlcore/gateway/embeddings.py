"""Asks a gateway endpoint's models for embeddings, in the form of OpenAI's API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.gateway.invocation import Invocation

Json = dict[str, Any]

_REQUEST_TYPE: Final = "unified/embeddings"


def embed(call: Invocation, body: Json) -> Json:
    """Returns the embeddings of the texts or tokens in ``input``, as ``{"object", "data":
    [{"object", "embedding", "index"}], "model", "usage"}``.

    Raises:
        GatewayCallFailed: ``input`` is neither a text nor a list of texts, of tokens or of lists of
            tokens (400), or the providers refuse the request.
    """
    request = call.redacted({name: value for name, value in body.items() if value is not None})
    if not _is_input(request.get("input")):
        raise GatewayCallFailed(
            400, "Invalid embeddings payload: input: Input should be a text or a list"
        )
    with call.recorded(request, _REQUEST_TYPE) as span:
        sent = call.guarded_request(request)
        answer = call.ask(
            lambda provider: provider.embeddings(dict(sent)),
            lambda provider, answer: provider.chat_usage(answer),
        )
        span.set_outputs(answer)
        return answer


def _is_input(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if not isinstance(value, list):
        return False
    item_checks: tuple[Callable[[Any], bool], ...] = (_is_text, _is_token, _is_token_list)
    return any(all(map(is_valid, value)) for is_valid in item_checks)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_token(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_token_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_token, value))
