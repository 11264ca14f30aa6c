"""Translates chats from OpenAI's form to Anthropic's Messages API and back, and calls that API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from mlcore.errors import GatewayCallFailed
from mlcore.providers import openai_answers, transport
from mlcore.providers.anthropic_requests import message_request
from mlcore.providers.openai import join_path, proxied_url, unexpected_answer
from mlcore.providers.provider import (
    ANTHROPIC_COUNT_TOKENS,
    ANTHROPIC_MESSAGES,
    Json,
    Provider,
    check_no_model,
    forwarded_headers,
)
from mlcore.providers.proxied import ProxiedRequest, RawAnswer
from mlcore.providers.token_counts import is_count, long_cached, token_counts

_BASE: Final = "https://api.anthropic.com/v1"
_VERSION: Final = "2023-06-01"


class Anthropic(Provider):
    display_name = "Anthropic"
    passthrough_paths: ClassVar[Mapping[str, str]] = {
        ANTHROPIC_MESSAGES: "messages",
        ANTHROPIC_COUNT_TOKENS: "messages/count_tokens",
    }

    def chat(self, payload: Json) -> Json:
        check_no_model(payload)
        answer = transport.ask(
            self._url("messages"),
            self._headers(),
            {"model": self.model.name, **self.redacted(message_request(payload))},
            configured=self.configured,
            redactor=self.credential_redactor,
        )
        return completion_of(answer)

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        check_no_model(payload)
        stream = transport.lines(
            self._url("messages"),
            self._headers(),
            {"model": self.model.name, **self.redacted(message_request(payload))},
            configured=self.configured,
            redactor=self.credential_redactor,
        )
        return chunks_of(transport.events(stream))

    def passthrough(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        return transport.ask(
            self._url(self.path(action)),
            self._forwarded_headers(headers),
            {**payload, "model": self.model.name},
            configured=self.configured,
            redactor=self.credential_redactor,
        )

    def passthrough_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        return transport.lines(
            self._url(self.path(action)),
            self._forwarded_headers(headers),
            {**payload, "model": self.model.name},
            configured=self.configured,
            redactor=self.credential_redactor,
        )

    def proxy(
        self, request: ProxiedRequest, headers: Mapping[str, str]
    ) -> Iterator[Json | bytes | RawAnswer]:
        return transport.proxied(
            proxied_url(self.model.auth_config.get("api_base") or _BASE, request.path),
            self._forwarded_headers(headers),
            request,
            configured=True,
            redactor=self.credential_redactor,
        )

    def usage(self, answer: Json) -> dict[str, int]:
        return usage_of(answer)

    def _forwarded_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Returns the headers of a request in Anthropic's own form. Its version is the caller's,
        who reads the answer, unless the secret sets one."""
        own = self._headers()
        if "anthropic-version" in headers and not self.model.auth_config.get("version"):
            del own["anthropic-version"]
        return forwarded_headers(headers, own)

    def _url(self, path: str) -> str:
        return join_path(self.model.auth_config.get("api_base") or _BASE, path)

    def _headers(self) -> dict[str, str]:
        return {
            "x-api-key": self.model.secret.get("api_key", ""),
            "anthropic-version": self.model.auth_config.get("version") or _VERSION,
        }


def usage_of(answer: Json) -> dict[str, int]:
    """Returns the token counts in a message of Anthropic's API, or in one event of its stream, by
    MLflow's names; empty if it has none."""
    if answer.get("type") == "message_start":
        message = answer.get("message")
        usage_ = message.get("usage") if isinstance(message, dict) else None
        first_counts = _token_counts(usage_)
        # The counts at the end of the stream replace those at the beginning.
        first_counts.pop("output_tokens", None)
        first_counts.pop("total_tokens", None)
        return first_counts
    if answer.get("type") == "message_delta":
        usage_ = answer.get("usage")
        if not isinstance(usage_, dict):
            return {}
        counts = _token_counts(usage_) if _input_counts(usage_) else {}
        output_tokens = usage_.get("output_tokens")
        if is_count(output_tokens):
            counts["output_tokens"] = output_tokens
        return counts
    return _token_counts(answer.get("usage"))


def completion_of(answer: Json) -> Json:
    """Converts a message of Anthropic's Messages API to a chat completion. Raises GatewayCallFailed
    (502) if the message does not have the form of that API."""
    try:
        blocks = answer["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        texts = [block[block["type"]] for block in blocks if block["type"] in ("text", "thinking")]
        calls = [
            openai_answers.tool_call(block["id"], block["name"], json.dumps(block["input"]))
            for block in blocks
            if block["type"] == "tool_use"
        ]
        choice = openai_answers.choice(
            0, "".join(texts) or None, calls, _finish_reason(answer["stop_reason"]), answer["role"]
        )
        return openai_answers.completion(
            answer["id"], int(time.time()), answer["model"], [choice], _usage(answer["usage"])
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected_answer(error) from None


def chunks_of(events: Iterator[Json]) -> Iterator[Json]:
    """Converts the events of a streamed message to chunks of a chat completion, one by one. Raises
    GatewayCallFailed (502) if an event is an error or does not have the form of Anthropic's API."""
    try:
        yield from _chunks_of(events)
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected_answer(error) from None


def _chunks_of(events: Iterator[Json]) -> Iterator[Json]:
    answer_id, model, counts = None, "", dict[str, Any]()
    calls: dict[Any, int] = {}
    for event in events:
        event_type = event.get("type")
        if event_type == "message_start":
            message = event["message"]
            answer_id, model = message["id"], message["model"]
            counts = {k: v for k, v in (message.get("usage") or {}).items() if k != "output_tokens"}
            continue
        if event_type == "error":
            raise GatewayCallFailed(502, (event.get("error") or {}).get("message", "error"))
        if event_type not in ("message_delta", "content_block_start", "content_block_delta"):
            continue
        content = event.get("delta") or event.get("content_block") or {}
        if content.get("type") == "tool_use":
            calls[event.get("index")] = len(calls)
        usage = None
        if event_type == "message_delta":
            reported = event.get("usage") or {}
            counts |= _input_counts(reported)
            counts |= {"output_tokens": reported.get("output_tokens")}
            usage = _usage(counts)
        chunk_delta = _delta(content, calls.get(event.get("index"), 0))
        yield openai_answers.chunk(answer_id, int(time.time()), model, [chunk_delta], usage)


def _delta(content: Mapping[str, Any], call: int) -> Json:
    stop = content.get("stop_reason")
    finish_reason = None if stop is None else _finish_reason(stop)
    if content.get("type") == "tool_use":
        call_start = openai_answers.call_delta(
            call, call_id=content.get("id"), call_type="function", name=content.get("name")
        )
        return openai_answers.delta(0, finish_reason, tool_calls=[call_start])
    if content.get("type") == "input_json_delta":
        call_part = openai_answers.call_delta(call, arguments=content.get("partial_json"))
        return openai_answers.delta(0, finish_reason, tool_calls=[call_part])
    return openai_answers.delta(0, finish_reason, content=content.get("text"))


def _finish_reason(stop_reason: Any) -> str:
    return {"max_tokens": "length", "tool_use": "tool_calls"}.get(stop_reason, "stop")


def _usage(counts: Mapping[str, Any]) -> Json:
    """Converts Anthropic's token counts to OpenAI's form, which includes tokens read from or
    written to a cache in the prompt's; Anthropic counts them apart."""
    read, written = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens")
    prompt, output = counts.get("input_tokens"), counts.get("output_tokens")
    if prompt is not None:
        prompt += (read or 0) + (written or 0)
    total = None if prompt is None or output is None else prompt + output
    known = (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    )
    more = {name: value for name, value in counts.items() if name not in known}
    if written is not None:
        more["cache_creation_input_tokens"] = written
    return openai_answers.usage(prompt, output, total, read, more)


def _input_counts(reported: Mapping[str, Any]) -> Json:
    """Returns the final counts of the input, which the last event of a stream reports if the
    provider's own tools have added to it; empty if the event does not report all of them."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if not all(is_count(reported.get(name)) for name in names):
        return {}
    return {name: reported[name] for name in (*names, "cache_creation") if name in reported}


def _token_counts(usage: Any) -> dict[str, int]:
    counts = token_counts(usage, "input_tokens", "output_tokens", cached="cache_read_input_tokens")
    written = usage.get("cache_creation_input_tokens") if isinstance(usage, dict) else None
    if is_count(written):
        counts["cache_creation_input_tokens"] = written
    counts |= long_cached(usage)
    cache_tokens = counts.get("cache_read_input_tokens", 0) + counts.get(
        "cache_creation_input_tokens", 0
    )
    for name in {"input_tokens", "total_tokens"} & counts.keys():
        counts[name] += cache_tokens
    return counts
