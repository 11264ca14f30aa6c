"""Chats through an endpoint of the gateway, as OpenAI's API has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import streams
from mlcore.gateway.invocation import Invocation, begun
from mlcore.gateway.recording import caller_of
from mlcore.providers.completions import used

Json = dict[str, Any]

_REQUEST: Final = "unified/chat"
_MESSAGE: Final = ("role", "content", "tool_calls", "refusal", "tool_call_id")
_FORMATS: Final = ("text", "json_object", "json_schema")


def complete(
    workspace: str,
    endpoint_name: str,
    chat: Mapping[str, Any],
    username: str | None = None,
    *,
    guarded: bool = True,
    judges: bool = False,
) -> Json:
    """Completes a chat through an endpoint.

    Args:
        username: whose call it is, for the budgets of users.
        endpoint_name: as in ``gateway:/name``.
        chat: OpenAI's request without ``model``: ``messages``, and optionally ``tools``,
            ``tool_choice``, ``response_format``, ``temperature`` (0 to 2), ``max_tokens`` …
        guarded: whether the endpoint's guardrails look at it.
        judges: whether it is a judge's, which its trace tells.

    Returns:
        ``{"id", "object", "created", "model", "choices": [{"index", "message": {"role", "content",
        "tool_calls", "refusal"}, "finish_reason"}], "usage": {"prompt_tokens",
        "completion_tokens", "total_tokens", …}, "provider"}``

    Raises:
        ResourceDoesNotExist: no endpoint has the name, or it has no model.
        GatewayCallFailed: the chat is none, or its providers or guardrails refuse it; with its
            status.
    """
    asked = checked(chat)
    caller = caller_of(username, judges=judges)
    return completion(begun(workspace, endpoint_name, caller, guarded=guarded), asked)


def completion(call: Invocation, asked: Json) -> Json:
    """The completion of a chat that was checked. Raises GatewayCallFailed."""
    with call.going(asked, _REQUEST) as span:
        sent = _guarded(call, asked)
        answer = call.whole(
            lambda provider: {**provider.chat(dict(sent)), "provider": provider.model.provider},
            lambda _, answer: used(answer),
        )
        if call.guards is not None:
            answer = call.guards.after(sent, answer, call.guards.completion)
        span.answered(answer)
        return answer


def chunks(call: Invocation, asked: Json) -> Iterator[Json]:
    """As :func:`completion`, in parts; the last ones tell the usage. What is told in parts no
    guardrail looks at."""
    with call.going(asked, _REQUEST) as span:
        sent = _guarded(call, asked)
        told: list[Json] = []
        try:
            for chunk in call.parts(
                lambda provider: (
                    {**chunk, "provider": provider.model.provider}
                    for chunk in provider.chat_stream(dict(sent))
                ),
                lambda _, chunk: used(chunk),
            ):
                told.append(chunk)
                yield chunk
        finally:
            span.answered(streams.completion(told))


def _guarded(call: Invocation, asked: Json) -> Json:
    """The chat as it may be sent; whether it comes in parts, nobody else decides."""
    if call.guards is None:
        return asked
    sent = call.guards.before(asked, call.guards.chat)
    return {
        **{name: value for name, value in sent.items() if name != "stream"},
        **({"stream": asked["stream"]} if "stream" in asked else {}),
    }


def checked(chat: Mapping[str, Any]) -> Json:
    """A request without what it leaves open.

    Raises:
        GatewayCallFailed: a field is not what OpenAI's API has there.
    """
    for name, is_fit, wanted in _FIELDS:
        value = chat.get(name)
        if value is not None and not is_fit(value):
            raise _invalid(f"{name}: Input should be {wanted}")
    messages = chat.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _invalid("messages: a chat has a list of messages, one at least")
    return {
        "n": 1,
        **{name: value for name, value in chat.items() if value is not None},
        "messages": [_message(one, place) for place, one in enumerate(messages)],
    }


def _message(message: Any, place: int) -> Json:
    where = f"messages.{place}"
    if not isinstance(message, dict):
        raise _invalid(f"{where}: Input should be an object")
    role, content, calls = (message.get(name) for name in ("role", "content", "tool_calls"))
    if not isinstance(role, str):
        raise _invalid(f"{where}.role: Input should be a valid string")
    parts = content if isinstance(content, list) else []
    if not isinstance(content, str | list | None) or not all(
        isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts
    ):
        raise _invalid(f"{where}.content: Input should be a string or a list of parts")
    if not isinstance(calls, list | None) or not all(map(_is_call, calls or ())):
        raise _invalid(f"{where}.tool_calls: Input should be a list of tool calls")
    return {name: message[name] for name in _MESSAGE if message.get(name) is not None}


def _is_call(call: Any) -> bool:
    return (
        isinstance(call, dict)
        and isinstance(call.get("id"), str)
        and isinstance(call.get("function"), dict)
        and isinstance(call["function"].get("name"), str)
        and isinstance(call["function"].get("arguments", ""), str)
    )


def _is_tool(tool: Any) -> bool:
    if not isinstance(tool, dict) or tool.get("type") not in ("function", "uc_function"):
        return False
    function = tool.get("function")
    return tool["type"] != "function" or (
        isinstance(function, dict) and isinstance(function.get("name"), str)
    )


def _is_choice(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("none", "auto", "required")
    function = value.get("function") if isinstance(value, dict) else None
    return (
        isinstance(function, dict)
        and value.get("type") == "function"
        and isinstance(function.get("name"), str)
    )


def _is_format(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("type") not in _FORMATS:
        return False
    schema = value.get("json_schema")
    return schema is None or (
        isinstance(schema, dict)
        and isinstance(schema.get("name"), str)
        and isinstance(schema.get("schema"), dict)
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _between(low: float, high: float) -> Callable[[Any], bool]:
    def is_fit(value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and low <= value <= high

    return is_fit


def _list_of(is_fit: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_fit, value))


_FIELDS: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    ("n", _whole, "greater than or equal to 1"),
    ("max_tokens", _whole, "greater than or equal to 1"),
    ("max_completion_tokens", _whole, "greater than or equal to 1"),
    ("top_k", _whole, "greater than or equal to 1"),
    ("temperature", _between(0, 2), "a number from 0 to 2"),
    ("top_p", _between(0, 1), "a number from 0 to 1"),
    ("presence_penalty", _between(-2, 2), "a number from -2 to 2"),
    ("frequency_penalty", _between(-2, 2), "a number from -2 to 2"),
    (
        "stop",
        lambda value: _list_of(lambda one: isinstance(one, str))(value) and bool(value),
        "a list of strings, one at least",
    ),
    ("stream", lambda value: isinstance(value, bool), "a valid boolean"),
    ("stream_options", lambda value: isinstance(value, dict), "an object"),
    ("tools", _list_of(_is_tool), "a list of tools"),
    ("tool_choice", _is_choice, "'none', 'auto', 'required' or a function"),
    ("response_format", _is_format, "a format of OpenAI's: text, json_object or json_schema"),
)
"""What a field may be, as MLflow's gateway checks it."""


def _invalid(what: str) -> GatewayCallFailed:
    return GatewayCallFailed(400, f"Invalid chat payload: {what}")
