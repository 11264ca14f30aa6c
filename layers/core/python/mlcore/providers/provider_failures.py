"""Makes the errors of failed calls to model providers. Their traits say whether the request may be
sent again, and whether the provider is available."""

from __future__ import annotations

from typing import Any, Final

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, TimeoutError

from mlcore.errors import FailureTraits, GatewayCallFailed

_NOT_EXECUTED: Final = (429, 503, 529)
"""Statuses of providers that did not execute a request, and would not have executed any other. 529
is Anthropic's. 500, 502 and 504 are not among them, since the request may have been executed."""
_UNAVAILABLE: Final = (*_NOT_EXECUTED, 502)
"""Statuses of providers that cannot execute any request now."""


def refused(response: BaseHTTPResponse, detail: Any, answer: Any) -> GatewayCallFailed:
    """Returns the error to raise when a model provider refuses a request. It has the value of the
    provider's ``Retry-After``, if any, and says whether the request may be sent again, which OpenAI
    and Anthropic can forbid by the header ``x-should-retry``. The error's type, which AWS sends in
    a header, becomes the field ``__type`` of the provider's fields, where AWS's SDKs read it, too.

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
    """Returns the error for a request to which a model provider sent no answer, or only a part.

    Args:
        seconds: the timeout after which the wait for the answer ended.
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
    """Returns the only item of a list with one item, since Gemini's OpenAI-compatible API wraps
    errors in such a list; any other answer unchanged."""
    return answer[0] if isinstance(answer, list) and len(answer) == 1 else answer


def detail(answer: Any, response: BaseHTTPResponse) -> Any:
    """Returns the part of a model provider's error answer that MLflow's gateway shows: the message
    in the answer's field ``error``, or the HTTP reason phrase if this field has no message; the
    whole answer if it has no field ``error``."""
    if isinstance(answer, dict) and "error" in answer:
        error = answer["error"]
        message = error.get("message") if isinstance(error, dict) else None
        return message or reason(response)
    return answer


def reason(response: BaseHTTPResponse) -> str:
    """Returns the reason phrase of a provider's HTTP response, such as ``Not Found``; without one,
    a text such as ``Status 404``."""
    return response.reason or f"Status {response.status}"
