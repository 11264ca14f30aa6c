"""The AI gateway's proxy: sends requests to any path of an endpoint's model provider, with the body
as it is: JSON, a form with files, or none. The answer may be JSON, a stream, or bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import (
    batch_files,
    bedrock_stream_assembly,
    passthrough,
    proxied_forms,
    stream_assembly,
)
from mlcore.gateway.invocation import Invocation
from mlcore.gateway.proxied_forms import Form
from mlcore.gateway.retries import Handling, Repeats
from mlcore.providers import provider as p
from mlcore.providers.provider import Provider
from mlcore.providers.proxied import BinaryEvent, CountedAnswer, ProxiedRequest, RawAnswer
from mlcore.wire.json_text import parse_json_bytes

Json = dict[str, Any]
Part = Json | bytes | RawAnswer | CountedAnswer | BinaryEvent

_PROXY: Final = "proxy/raw"
_HANDLING: Final = Handling(Repeats.UNSENT, uses_circuit=False)
"""A proxied request may do anything, and its path and model are the caller's: its failures say
nothing about the endpoint's model."""
_MODEL_IN_PATH: Final = re.compile(r"models/([^/:?]+):")
_BYTES_OF_TOKEN: Final = 4
_WITHOUT_TEXT: Final = frozenset(("batch", "file", "message_batch", "model"))
"""Values of ``object`` or ``type`` in answers to a GET that only describe something and hold no
text of a model."""
_COUNTS_TOKENS: Final = ("/count_tokens", ":countTokens", "/input_tokens", "/count-tokens")
"""The ends of paths at which a provider counts the tokens of a request, which costs nothing."""
_BINARY_STREAMS: Final = ("/converse-stream", "/invoke-with-response-stream")
"""The ends of Bedrock's paths whose answers are streams."""
_BEGINS_BATCH: Final = re.compile(
    r"(^|/)batch(es)?([/;]|$)|:(batchGenerateContent|asyncBatchEmbedContent)/*$", re.IGNORECASE
)
"""Paths at which batches are begun, whose results are read later."""
_UPLOADS_FILE: Final = re.compile(r"(^|/)(upload|files)([/;]|$)", re.IGNORECASE)
"""Paths at which a file may be uploaded as the body. A file of one line is a body of JSON."""
_MEDIA_PATH: Final = re.compile(r"[^/]+/(audio|images|videos)(/|$)")
"""Paths whose files are sound, pictures or films. A file that is sent to another path may become
the input of a model, whatever type it names."""


def call(
    invocation: Invocation, request: ProxiedRequest, headers: Mapping[str, str]
) -> Iterator[Part]:
    """Sends a request to the endpoint's provider, its ``model`` included. Yields the JSON answer as
    the guardrails rewrote it, the lines or events of a stream, or an answer of another type.

    Raises:
        GatewayCallFailed: the provider cannot be proxied (501); the provider, a guardrail or a rule
            of redaction refuses the request; a form cannot be read (400); or a guardrail cannot
            check the call, because a body or an answer is not JSON or is a stream (400); or the
            requests of a batch name another model (403), or cannot be checked (400).
    """
    request = invocation.redacted_proxied(request)
    headers = invocation.redacted_headers(headers)
    form = proxied_forms.read(request)
    _check_batch(invocation, request, form, headers)
    action = passthrough.proxied_action(request.path)
    if invocation.guardrails is not None and request.content is not None:
        raise _unchecked(invocation, "request")
    if invocation.needs_whole_answer and (
        request.named.get("stream")
        or action == p.GEMINI_STREAM_GENERATE_CONTENT
        or request.path.partition("?")[0].endswith(_BINARY_STREAMS)
    ):
        raise passthrough.unchecked_stream(invocation)
    lines: list[bytes] = []
    events: list[BinaryEvent] = []
    with invocation.recorded(request.described(), _PROXY) as span:
        sent = request
        if request.body is not None:
            sent = request._replace(body=invocation.guarded_request(request.body))
        try:
            for part in invocation.stream(
                lambda provider: provider.proxy(sent, headers),
                lambda provider, part: _usage(provider, request, form, part),
                _named_models(request, form),
                _HANDLING,
            ):
                checked = _checked(invocation, sent, part)
                if isinstance(checked, dict):
                    span.set_outputs(checked)
                elif isinstance(checked, RawAnswer):
                    span.set_outputs(checked.described())
                elif isinstance(checked, CountedAnswer):
                    span.set_outputs(checked.body)
                elif isinstance(checked, BinaryEvent):
                    events.append(checked)
                elif action is not None:
                    lines.append(checked)
                yield checked
            if (
                action == p.ANTHROPIC_MESSAGES
                and lines
                and not passthrough.is_complete_message(lines)
            ):
                raise passthrough.incomplete_message()
        finally:
            if action is not None and lines:
                span.set_outputs(stream_assembly.assemble_passthrough(action, lines))
            span.set_outputs(bedrock_stream_assembly.assemble(events))


def _check_batch(
    invocation: Invocation, request: ProxiedRequest, form: Form | None, headers: Mapping[str, str]
) -> None:
    """Checks which models the requests of a batch name, in a file or in the request that begins the
    batch. Raises GatewayCallFailed (400, 403); the call then counts to no limit."""
    path = request.path.partition("?")[0]
    if _MEDIA_PATH.match(path):
        return
    models = invocation.route.model_names
    begins = _BEGINS_BATCH.search(path) is not None
    named = _named_models(request, form) if begins else ()
    carried = _body(request, form) if begins or _UPLOADS_FILE.search(path) else {}
    try:
        batch_files.check(request, models, headers)
        if not models.issuperset(named) or batch_files.names_other(carried, models):
            raise GatewayCallFailed(
                403, "The requests of a batch may name only the model that the endpoint has."
            )
    except GatewayCallFailed:
        invocation.refuse()
        raise


def _checked(invocation: Invocation, request: ProxiedRequest, part: Part) -> Part:
    """Returns an answer or a part of a stream, as the guardrails rewrote it. Raises
    GatewayCallFailed: a guardrail refuses it, or cannot check it."""
    guardrails = invocation.guardrails
    if request.path.partition("?")[0].endswith(_COUNTS_TOKENS) and isinstance(part, dict):
        return part  # a number, no text
    if guardrails is not None and isinstance(part, dict):
        return guardrails.after(request.named, part)
    if guardrails is not None and isinstance(part, CountedAnswer):
        return part._replace(body=guardrails.after(request.named, part.body))
    if invocation.needs_whole_answer:
        if isinstance(part, bytes | BinaryEvent):  # a provider may stream without being asked to
            raise passthrough.unchecked_stream(invocation)
        if isinstance(part, RawAnswer) and part.content:
            raise _unchecked(invocation, "answer")
    return part


def _usage(
    provider: Provider, request: ProxiedRequest, form: Form | None, part: Part
) -> dict[str, int]:
    """Returns the token counts of an answer, or of a part of a stream.

    If the provider reports no tokens, one token is estimated for every four bytes of the request,
    and of an answer that may hold text of a model. This covers work in several requests, such as
    an uploaded file, a batch or a response in the background, whose result a later GET reads.
    Tokens that the answer to a GET reports were counted with the request that began the work.
    They count here only for a response in the background, whose POST could not report them.
    """
    if isinstance(part, bytes):
        return passthrough.usage_in(provider, part)
    if isinstance(part, RawAnswer):
        size = 0 if part.is_media else len(part.content)
        return _estimated(request, form, size)
    if isinstance(part, BinaryEvent):
        return provider.usage(part.data)
    if isinstance(part, CountedAnswer):
        return part.usage or _estimated(request, form, 0)
    reported = provider.usage(part)
    if reported and (request.method == "POST" or part.get("background") is True):
        return reported
    if request.method == "POST" or _holds_no_text(part):
        return _estimated(request, form, 0)
    return _estimated(request, form, len(json.dumps(part)))


def _estimated(request: ProxiedRequest, form: Form | None, answer_bytes: int) -> dict[str, int]:
    """Returns token counts estimated from the size of request and answer; empty if both are 0."""
    counts = (_sent_bytes(request, form) // _BYTES_OF_TOKEN, answer_bytes // _BYTES_OF_TOKEN)
    if not any(counts):
        return {}
    return {"input_tokens": counts[0], "output_tokens": counts[1], "total_tokens": sum(counts)}


def _sent_bytes(request: ProxiedRequest, form: Form | None) -> int:
    """Returns the bytes that a request sends for a model to read, at once or later: 0 if it only
    counts tokens, and without the files if they are sound, pictures or films."""
    path = request.path.partition("?")[0]
    if path.endswith(_COUNTS_TOKENS):
        return 0
    if request.body is not None:
        return len(json.dumps(request.body))
    if request.content is not None and _MEDIA_PATH.match(path):
        return 0 if form is None else form.field_bytes
    return len(request.content or b"")


def _holds_no_text(answer: Json) -> bool:
    """Whether an answer holds no text of a model, but describes a thing such as a file or a batch,
    or lists such descriptions."""
    names = (answer.get("object"), answer.get("type"))
    if answer.get("deleted") is True or any(
        isinstance(name, str) and name in _WITHOUT_TEXT for name in names
    ):
        return True
    members = answer.get("data", answer.get("models"))
    if not isinstance(members, list):
        return str(answer.get("name", "")).startswith("models/")  # Gemini's models
    return all(isinstance(member, dict) and _holds_no_text(member) for member in members)


def _named_models(request: ProxiedRequest, form: Form | None) -> tuple[str, ...]:
    """Returns the names of models in a proxied request: in its body, in each request of a batch, in
    a form, and in its path (Gemini)."""
    body = _body(request, form)
    members = body.get("requests")
    in_batch = [
        member["params"].get("model")
        for member in (members if isinstance(members, list) else ())
        if isinstance(member, dict) and isinstance(member.get("params"), dict)
    ]
    in_form = () if form is None else form.models
    in_path = [unquote(name) for name in _MODEL_IN_PATH.findall(request.path)]
    named = (body.get("model"), *in_batch, *in_form, *in_path)
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str)))


def _body(request: ProxiedRequest, form: Form | None) -> Json:
    """Returns the JSON object that a request sends, even under another Content-Type, which the
    provider may ignore. Empty if the request sends no JSON object."""
    if request.content is None or form is not None:
        return request.named
    try:
        body = parse_json_bytes(request.content, lone_surrogates=True)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _unchecked(invocation: Invocation, what: str) -> GatewayCallFailed:
    return GatewayCallFailed(
        400,
        f"A guardrail of the endpoint '{invocation.route.endpoint.name}' cannot check this {what}, "
        "because it is not JSON.",
    )
