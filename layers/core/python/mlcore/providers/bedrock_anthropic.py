"""Calls Anthropic's models at Amazon Bedrock with InvokeModel, whose requests, messages and events
are those of Anthropic's Messages API.

https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
describes the requests.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from mlcore.errors import CallerLeft, GatewayCallFailed
from mlcore.providers.openai import unexpected_answer
from mlcore.providers.provider import ROUTES

Json = dict[str, Any]

_VERSION: Final = "bedrock-2023-05-31"
_OWN_ID: Final = re.compile(r"(?:^|[./])(anthropic\.[^/]+)$")
_OPAQUE: Final = re.compile(
    r"arn:[^:]+:bedrock:[^/]+:"
    r"(application-inference-profile|provisioned-model|custom-model-deployment|prompt-router)/.+"
)
"""ARNs that do not contain the name of the model's vendor."""
_BETA_HEADER: Final = "anthropic-beta"
_BETA_FIELD: Final = "anthropic_beta"
_KNOWN_BETAS: Final = frozenset(
    (
        *("computer-use-2024-10-22", "computer-use-2025-01-24", "computer-use-2025-11-24"),
        *("token-efficient-tools-2025-02-19", "interleaved-thinking-2025-05-14"),
        *("output-128k-2025-02-19", "dev-full-thinking-2025-05-14", "context-1m-2025-08-07"),
        *("context-management-2025-06-27", "effort-2025-11-24"),
        *("tool-search-tool-2025-10-19", "tool-examples-2025-10-29"),
    )
)
"""The betas that AWS's documentation of the requests names."""
_BETA_REFUSED: Final = "invalid beta flag"
_NOT_IN_BODY: Final = ("model", "stream", _BETA_FIELD)
_METRICS: Final = "amazon-bedrock-invocationMetrics"
_STATUSES: Final[Mapping[int, int]] = {408: 504, 424: 500}
"""Statuses of Bedrock for a model that was too slow or failed, and Anthropic's statuses for
them."""
_COUNTED_MAX_TOKENS: Final = 1024
"""The ``max_tokens`` of a request to CountTokens, which requires one although no answer is made."""


def check_model(model: str, action: str) -> None:
    """Raises GatewayCallFailed (501) if a model cannot be one of Anthropic's."""
    if _OWN_ID.search(model) is None and _OPAQUE.fullmatch(model) is None:
        raise GatewayCallFailed(
            501,
            f"The passthrough route '{ROUTES[action]}' is implemented for Anthropic's models at "
            "Amazon Bedrock only.",
        )


def foundation_model(model: str) -> str:
    """Returns the ID of Anthropic's model that a name, such as that of an inference profile for
    several regions, contains; another name as it is. CountTokens takes only such an ID."""
    matched = _OWN_ID.search(model)
    return model if matched is None else matched[1]


def requests_of(payload: Json, headers: Mapping[str, str]) -> list[Json]:
    """Converts a request of the Messages API to requests of InvokeModel, to be sent in turn until
    Bedrock accepts one: with all betas, with those that AWS documents, and with none. (Bedrock
    refuses a whole request for one unknown beta, and Claude Code sends such betas.)"""
    body = {name: value for name, value in payload.items() if name not in _NOT_IN_BODY}
    given = payload.get(_BETA_FIELD)
    named = [flag.strip() for flag in headers.get(_BETA_HEADER, "").split(",")]
    named += [flag for flag in (given if isinstance(given, list) else ()) if isinstance(flag, str)]
    betas = list(dict.fromkeys(filter(None, named)))
    documented = [beta for beta in betas if beta in _KNOWN_BETAS]
    requests: list[Json] = []
    for flags in (betas, documented, list[str]()):
        more = {_BETA_FIELD: flags} if flags else {}
        request = {**body, "anthropic_version": _VERSION, **more}
        if request not in requests:
            requests.append(request)
    return requests


def refuses_betas(error: GatewayCallFailed) -> bool:
    """Whether Bedrock refused a request because of a beta feature, before the model worked on
    it."""
    text = str(error.provider_fields.get("message", ""))
    return error.status == 400 and _BETA_REFUSED in text.lower()


def count_request(request: Json) -> Json:
    """Converts a request of InvokeModel to the request of CountTokens that counts its tokens."""
    thinking = request.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    least = _COUNTED_MAX_TOKENS + (budget if isinstance(budget, int) else 0)
    text = json.dumps({"max_tokens": least, **request})
    return {"input": {"invokeModel": {"body": base64.b64encode(text.encode()).decode()}}}


def count_answer(answer: Json) -> Json:
    """Converts Bedrock's answer of CountTokens to the form of Anthropic's API. Raises
    GatewayCallFailed (502) if it has no count."""
    try:
        return {"input_tokens": answer["inputTokens"]}
    except KeyError as error:
        raise unexpected_answer(error) from None


def lines_of(events: Iterator[tuple[str, Json]]) -> Generator[bytes]:
    """Yields the lines of an event stream of Anthropic's API, made from the (type, event) pairs of
    a stream of InvokeModel."""
    for _, event in events:
        kind = event.get("type")
        if isinstance(kind, str) and kind.isidentifier():
            shown = {name: value for name, value in event.items() if name != _METRICS}
            yield f"event: {kind}\n".encode()
            yield f"data: {json.dumps(shown)}\n".encode()
            yield b"\n"


@contextmanager
def errors() -> Iterator[None]:
    """Converts errors of Bedrock that are raised in the ``with`` block: removes Bedrock's fields
    and sets a status of Anthropic's API, so that Anthropic's SDKs understand them."""
    try:
        yield
    except CallerLeft:
        raise
    except GatewayCallFailed as error:
        fields = error.provider_fields
        message = fields.get("message") or fields.get("Message")
        raise GatewayCallFailed(
            _STATUSES.get(error.status, error.status),
            message if isinstance(message, str) else error.detail,
            error.retry_after,
            error.headers,
            traits=error.traits,
        ) from None
