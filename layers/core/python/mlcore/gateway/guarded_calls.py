"""Begins calls through a gateway endpoint together with the endpoint's guardrails, and completes
chats for callers inside the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.entities.gateway import Configuration
from mlcore.errors import MlflowError
from mlcore.gateway import chats, invocation
from mlcore.gateway.caller import Caller, internal_caller
from mlcore.gateway.chat_schemas import validated_chat
from mlcore.gateway.invocation import Invocation

Json = dict[str, Any]


def begin(
    workspace: str, endpoint_name: str, caller: Caller, *, known: Configuration | None = None
) -> Invocation:
    """Begins a call to an endpoint of the AI gateway and loads the endpoint's guardrails. Reads the
    same items as :func:`mlcore.gateway.invocation.begin`.

    Args:
        known: the gateway's configuration, if it was already read for this request.

    Raises:
        ResourceDoesNotExist: no endpoint has the name, or it has no usable model.
        GatewayCallFailed: a budget is spent or a limit is reached (429), or a guardrail of the
            endpoint cannot be applied by this server (501).
        TemporarilyUnavailable: the rules of redaction cannot be read.
    """
    call = invocation.begin(workspace, endpoint_name, caller, known=known)
    if call.route.known.guardrails_of(call.route.endpoint):
        # Imported here because few endpoints have guardrails, and a cold start would pay for the
        # modules of the judges.
        from mlcore.gateway.guardrails import EndpointGuardrails  # noqa: PLC0415

        try:
            call.guardrails = EndpointGuardrails(call.route, call.record, call.redactions)
        except MlflowError:
            call.refuse()
            raise
    return call


def complete_chat(
    workspace: str,
    endpoint_name: str,
    chat: Mapping[str, Any],
    username: str | None = None,
    *,
    judges: bool = False,
    repeats_itself: bool = False,
    known: Configuration | None = None,
) -> Json:
    """Completes a chat by a model of an AI gateway endpoint, for code inside the server.

    Args:
        endpoint_name: as in ``gateway:/name``.
        chat: OpenAI's request without ``model``: ``messages``, and optionally ``tools``,
            ``tool_choice``, ``response_format``, ``temperature`` (0 to 2), ``max_tokens`` …
        username: the user whose budgets the call counts in.
        judges: whether a judge makes the call; its trace then names the caller ``judge``.
        repeats_itself: whether the caller repeats calls that a provider refused, so that this
            function must not.
        known: the gateway's configuration, if it was already read for this call.

    Returns:
        ``{"id", "object", "created", "model", "choices": [{"index", "message": {"role", "content",
        "tool_calls", "refusal"}, "finish_reason"}], "usage": {"prompt_tokens",
        "completion_tokens", "total_tokens", …}, "provider"}``

    Raises:
        ResourceDoesNotExist: no endpoint has the name, or it has no usable model.
        TemporarilyUnavailable: the rules of redaction cannot be read.
        GatewayCallFailed: the chat is not valid, or the endpoint's providers or guardrails refuse
            it; with the status of the refusal.
    """
    request = validated_chat(chat)
    caller = internal_caller(username, judges=judges, repeats_itself=repeats_itself)
    return chats.complete(begin(workspace, endpoint_name, caller, known=known), request)
