"""What a failed call says about its provider: whether the request may be sent again, and whether
the provider works at all."""

from __future__ import annotations

from typing import Any, Final

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, TimeoutError

from mlcore.errors import FailureTraits, GatewayCallFailed

_NOT_EXECUTED: Final = (429, 503, 529)
"""Statuses of providers that did not work on a request, and would not have on another one. 529 is
Anthropic's. 500, 502 and 504 are none of them: something may have worked on the request."""
_UNAVAILABLE: Final = (*_NOT_EXECUTED, 502)
"""Statuses that say that a provider cannot work, whatever it is asked."""


def refused(response: BaseHTTPResponse, detail: Any, answer: Any) -> GatewayCallFailed:
    """Returns the error to raise when a provider refuses a request. If the provider says when to
    retry, the error holds that (the value of ``Retry-After``). OpenAI and Anthropic say in
    ``x-should-retry`` that a request must not be sent again. AWS names the error in a header, which
    its SDKs also read in the field ``__type``.

    Args:
        answer: the JSON value of the provider's body; None if it is not JSON.
    """
    fields = answer if isinstance(answer, dict) else {}
    if kind := response.headers.get("x-amzn-errortype", "").partition(":")[0]:
        fields = {"__type": kind, **fields}
    may_repeat = response.headers.get("x-should-retry", "").strip().lower() != "false"
    return GatewayCallFailed(
        response.status,
        detail,
        response.headers.get("Retry-After"),
        traits=FailureTraits(
            is_answer=True,
            is_repeatable=may_repeat and response.status in _NOT_EXECUTED,
            is_unavailable=response.status in _UNAVAILABLE,
        ),
        provider_fields=fields,
    )


def unanswered(host: str, error: Exception, seconds: float) -> GatewayCallFailed:
    """Returns the failure of a request that got no answer, or only a part of it.

    Args:
        seconds: how long the answer was waited for.
    """
    # NewConnectionError is a ConnectTimeoutError to urllib3, even if refused at once.
    is_unconnected = isinstance(error, ConnectTimeoutError)
    if isinstance(error, TimeoutError) and not is_unconnected:
        return GatewayCallFailed(
            504, f"The provider at {host} did not answer within {seconds:g} seconds."
        )
    is_refused = isinstance(error, NewConnectionError)
    return GatewayCallFailed(
        502,
        f"The provider at {host} could not be reached ({type(error).__name__}).",
        traits=FailureTraits(
            is_repeatable=is_refused,
            is_unsent=is_refused,
            is_unavailable=is_unconnected,
        ),
    )


def alone(answer: Any) -> Any:
    """Returns the error in a list of one, as Gemini's OpenAI-compatible API answers; else the
    answer as it is."""
    return answer[0] if isinstance(answer, list) and len(answer) == 1 else answer


def detail(answer: Any, response: BaseHTTPResponse) -> Any:
    """Returns what MLflow's gateway shows of a provider's error: the error's message, or else the
    whole answer."""
    if isinstance(answer, dict) and "error" in answer:
        error = answer["error"]
        message = error.get("message") if isinstance(error, dict) else None
        return message or reason(response)
    return answer


def reason(response: BaseHTTPResponse) -> str:
    """Returns the reason of a status for people."""
    return response.reason or f"Status {response.status}"
