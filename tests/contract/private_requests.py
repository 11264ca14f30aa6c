"""Requests to models in the forms of providers, with a mark wherever a text may be."""

from __future__ import annotations

import json
from typing import Any, Final

Json = dict[str, Any]

MARK: Final = "@@private@@"
"""Stands for the text in a template."""

CALL: Final = {"name": "find", "arguments": json.dumps({"who": MARK, MARK: [MARK]})}
CHAT: Final[Json] = {
    "messages": [
        {"role": "system", "content": f"You serve {MARK}."},
        {"role": "developer", "content": [{"type": "text", "text": MARK}]},
        {"role": "user", "content": MARK},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"a {MARK}"},
                {"type": "text", "text": MARK, "cache_control": {"type": "ephemeral", "x": MARK}},
            ],
        },
        {
            "role": "assistant",
            "content": MARK,
            "tool_calls": [{"id": "c1", "type": "function", "function": CALL}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": MARK},
        {"role": "user", "content": "end"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "find",
                "description": MARK,
                "parameters": {
                    "type": "object",
                    "properties": {"who": {"type": "string", "enum": [MARK]}, MARK: {}},
                },
            },
        }
    ],
    "stop": [MARK],
    "response_format": {
        "type": "json_schema",
        "json_schema": {
            "name": "n",
            "schema": {
                "type": "object",
                "properties": {"a": {"description": MARK}},
                "additionalProperties": False,
            },
        },
    },
}
OPEN: Final[Json] = {
    **CHAT,
    "user": MARK,
    "metadata": {MARK: MARK},
    "prediction": {"type": "content", "content": MARK},
    "seed": 5,
}
CLAUDE: Final[Json] = {
    "model": "claude",
    "max_tokens": 9,
    "system": [{"type": "text", "text": MARK}],
    "metadata": {"user_id": MARK},
    "messages": [
        {"role": "user", "content": MARK},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {MARK: {"a": MARK}}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": MARK},
                {
                    "type": "document",
                    "title": MARK,
                    "source": {"type": "text", "media_type": "text/plain", "data": MARK},
                },
                {"type": "image", "source": {"type": "url", "url": f"https://x.test/{MARK}"}},
                {"type": "text", "text": "end"},
            ],
        },
    ],
}
GEMINI: Final[Json] = {
    "model": MARK,
    "systemInstruction": {"parts": [{"text": MARK}]},
    "system_instruction": {"parts": [{"text": f"or {MARK}"}]},
    "contents": [
        {"role": "user", "parts": [{"text": MARK}, {"fileData": {"fileUri": f"gs://{MARK}"}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {MARK: MARK}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"a": MARK}}}]},
        {"role": "user", "parts": [{"text": "end"}]},
    ],
    "generationConfig": {"stopSequences": [MARK], "responseSchema": {"description": MARK}},
    "generation_config": {"stop_sequences": [MARK]},
    "labels": {"a": MARK},
}
RESPONSES: Final[Json] = {
    "model": "chat",
    "instructions": MARK,
    "metadata": {"a": MARK},
    "safety_identifier": MARK,
    "input": [
        {"role": "developer", "content": MARK},
        {"type": "function_call_output", "call_id": "c", "output": MARK},
        {"type": "function_call", "name": "f", "call_id": "c", "arguments": CALL["arguments"]},
        {"role": "user", "content": [{"type": "input_text", "text": MARK}]},
        {"role": "user", "content": "end"},
    ],
}
