"""Conventions of instrumentations that need code besides a table of attribute names."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from mlcore.spans.attribute_values import Attributes
from mlcore.spans.names import SPAN_MESSAGE_FORMAT
from mlcore.wire.json_text import load_json
from traces.conventions.conventions import (
    Convention,
    Events,
    GenAi,
    json_text,
    parse_json,
    value_of,
)


class GeminiCli(GenAi):
    """The attribute names of Gemini's command line tool. The UI shows such spans' messages in its
    Gemini view."""

    kinds: ClassVar = {"llm_call": "LLM", "tool_call": "TOOL", "agent_call": "AGENT"}

    @staticmethod
    def _is_gemini_cli(attributes: Attributes) -> bool:
        return bool(parse_json(attributes.get("gen_ai.agent.name")) == "gemini-cli")

    def span_type(self, attributes: Attributes) -> str | None:
        return super().span_type(attributes) if self._is_gemini_cli(attributes) else None

    def message_format(self, attributes: Attributes) -> str | None:
        return "gemini" if self._is_gemini_cli(attributes) else None

    def inputs(self, attributes: Attributes) -> Any:
        value = super().inputs(attributes) if self._is_gemini_cli(attributes) else None
        if not value:
            return None
        contents = parse_json(value)
        if isinstance(contents, dict) or not isinstance(contents, list | str):
            return value
        if attributes.get("gen_ai.operation.name") == "system_prompt" and isinstance(
            contents, list
        ):
            contents = [
                {**item, "role": "system"}
                if isinstance(item, dict) and item.get("role") == "user"
                else item
                for item in contents
            ]
        return json_text({"contents": contents})

    def outputs(self, attributes: Attributes) -> Any:
        value = super().outputs(attributes) if self._is_gemini_cli(attributes) else None
        contents = parse_json(value)
        if isinstance(contents, list):
            parts = [
                part
                for item in contents
                if isinstance(item, dict) and isinstance(item.get("parts"), list)
                for part in item["parts"]
            ]
            if parts:
                return json_text({"candidates": [{"content": {"role": "model", "parts": parts}}]})
        return value


class ClaudeCode(Convention):
    kind_key = "span.type"
    kinds: ClassVar = {"interaction": "AGENT", "llm_request": "LLM", "tool": "TOOL"}
    _REDACTED: Final = "<REDACTED>"

    def _kind(self, attributes: Attributes) -> str | None:
        kind = parse_json(attributes.get("span.type"))
        if not isinstance(kind, str):
            return None
        kind = kind.removeprefix("claude_code.")
        return kind if kind in self.kinds else None

    def span_type(self, attributes: Attributes) -> str | None:
        kind = self._kind(attributes)
        return self.kinds[kind] if kind else None

    def token_counts(self, attributes: Attributes) -> tuple[Any, Any, Any]:
        if self._kind(attributes) != "llm_request":
            return None, None, None
        count = _integer(attributes, "input_tokens")
        if count is not None:  # Claude's own count omits tokens read from or written to a cache
            count += sum(cached or 0 for cached in self.cache_counts(attributes))
        return count, _integer(attributes, "output_tokens"), None

    def cache_counts(self, attributes: Attributes) -> tuple[Any, Any]:
        if self._kind(attributes) != "llm_request":
            return None, None
        return (
            _integer(attributes, "cache_read_tokens"),
            _integer(attributes, "cache_creation_tokens"),
        )

    def inputs(self, attributes: Attributes) -> Any:
        kind = self._kind(attributes)
        if kind == "interaction":
            return self._unredacted(attributes, "user_prompt") or self._unredacted(
                attributes, "new_context"
            )
        if kind == "llm_request":
            return self._unredacted(attributes, "new_context")
        if kind != "tool":
            return None
        tool_input = self._unredacted(attributes, "tool_input")
        if tool_input:
            return tool_input
        keys = ("full_command", "file_path", "skill_name", "subagent_type")
        details = {
            key: parse_json(value) for key in keys if (value := self._unredacted(attributes, key))
        }
        return json_text(details) if details else None

    def outputs(self, attributes: Attributes) -> Any:
        kind = self._kind(attributes)
        if kind == "llm_request":
            return self._unredacted(attributes, "response.model_output")
        return self._unredacted(attributes, "new_context") if kind == "tool" else None

    def outputs_of_events(self, events: Events, attributes: Attributes) -> Any:
        if self._kind(attributes) != "tool":
            return None
        for event in events:
            if event["name"] == "tool.output":
                for key in ("output", "content", "diff"):
                    value = parse_json(event["attributes"].get(key))
                    if value and value != self._REDACTED:
                        return json.dumps(value, ensure_ascii=False, default=str)
        return None

    def _unredacted(self, attributes: Attributes, key: str) -> Any:
        """Returns the value of an attribute; None if it is absent, empty or redacted."""
        value = value_of(attributes, key)
        return None if value is None or parse_json(value) == self._REDACTED else value


class VercelAi(Convention):
    kind_key = "ai.operationId"
    kinds: ClassVar = {
        **dict.fromkeys(
            [
                f"ai.{call}{step}"
                for call, step in (
                    *(("generateText", ""), ("generateText", ".doGenerate")),
                    *(("streamText", ""), ("streamText", ".doStream")),
                    *(("generateObject", ""), ("generateObject", ".doGenerate")),
                    *(("streamObject", ""), ("streamObject", ".doStream")),
                )
            ],
            "LLM",
        ),
        "ai.toolCall": "TOOL",
        "ai.embed": "EMBEDDING",
        "ai.embed.doEmbed": "EMBEDDING",
        "ai.embedMany": "EMBEDDING",
    }
    input_keys = ("ai.prompt", "ai.toolCall.args", "ai.value", "ai.values")
    output_keys = (
        "ai.response.text",
        "ai.toolCall.result",
        "ai.response.object",
        "ai.embedding",
        "ai.embeddings",
    )

    @staticmethod
    def _is_chat(attributes: Attributes) -> bool:
        kind = _parse_nested(attributes.get("ai.operationId"))
        return kind in ("ai.generateText.doGenerate", "ai.streamText.doStream")

    def inputs(self, attributes: Attributes) -> Any:
        if not self._is_chat(attributes):
            return super().inputs(attributes)
        fields = self._with_prefix(attributes, "ai.prompt.")
        if isinstance(fields.get("tools"), list):
            fields["tools"] = [_parse_nested(tool) for tool in fields["tools"]]
        attributes[SPAN_MESSAGE_FORMAT] = "vercel_ai"
        return json_text(fields) if fields else None

    def outputs(self, attributes: Attributes) -> Any:
        if not self._is_chat(attributes):
            return super().outputs(attributes)
        fields = self._with_prefix(attributes, "ai.response.")
        return json_text(fields) if fields else None

    @staticmethod
    def _with_prefix(attributes: Attributes, prefix: str) -> dict[str, Any]:
        return {
            key.removeprefix(prefix): _parse_nested(value)
            for key, value in attributes.items()
            if key.startswith(prefix)
        }


class VoltAgent(Convention):
    kinds: ClassVar = {"agent": "AGENT", "llm": "LLM", "tool": "TOOL", "memory": "MEMORY"}
    input_keys = ("agent.messages", "llm.messages", "input")
    output_keys = ("output",)

    def span_type(self, attributes: Attributes) -> str | None:
        # Spans inherit entity.type from their parents, so their own span.type comes first.
        for key in ("span.type", "entity.type"):
            kind = parse_json(attributes.get(key))
            if isinstance(kind, str) and kind in self.kinds:
                return self.kinds[kind]
        return None

    def message_format(self, attributes: Attributes) -> str | None:
        keys = ("voltagent.operation_id", "voltagent.conversation_id")
        return "voltagent" if any(key in attributes for key in keys) else None

    def token_counts(self, attributes: Attributes) -> tuple[Any, Any, Any]:
        input_tokens, output_tokens, total_tokens = [
            attributes.get(f"usage.{name}") or attributes.get(f"llm.usage.{name}")
            for name in ("prompt_tokens", "completion_tokens", "total_tokens")
        ]
        return input_tokens, output_tokens, total_tokens


class LiveKit(GenAi):
    input_keys = ("lk.user_input", "lk.user_transcript", "lk.chat_ctx", "lk.input_text")
    output_keys = ("lk.response.text", "lk.response.function_calls")

    def span_type(self, attributes: Attributes) -> str | None:
        if "gen_ai.request.model" in attributes:
            return "LLM"
        operation = attributes.get("gen_ai.operation.name")
        if operation:
            kind = self.kinds.get(str(parse_json(operation)).lower())
            if kind:
                return kind
        for key in attributes:
            if key == "lk.retry_count":
                return "LLM"
            if key.startswith("lk.function_tool"):
                return "TOOL"
            if key in ("lk.agent_name", "lk.instructions", "lk.generation_id"):
                return "AGENT"
            if key.startswith("lk.tts") or key in (
                "lk.input_text",
                "lk.user_transcript",
                "lk.transcript_confidence",
                "lk.transcription_delay",
            ):
                return "UNKNOWN"
        return None

    def message_format(self, attributes: Attributes) -> str | None:
        return "livekit" if any(key.startswith("lk.") for key in attributes) else None


def _integer(attributes: Attributes, key: str) -> int | None:
    value = parse_json(attributes.get(key))
    try:
        return int(value) if value is not None else None
    except (TypeError, ValueError, OverflowError):
        return None


def _parse_nested(value: Any, depth: int = 3) -> Any:
    """Returns the value of a JSON text. If that value is again a JSON text, it is parsed too, up to
    ``depth`` times in all."""
    while depth and isinstance(value, str):
        try:
            value = load_json(value)
        except ValueError:
            break
        depth -= 1
    return value
