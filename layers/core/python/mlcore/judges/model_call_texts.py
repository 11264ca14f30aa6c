"""Collects the texts of a model call for guardrails that ask no model, in the forms of the known
APIs: OpenAI's chats, completions and Responses, Anthropic's messages, Gemini's contents, and those
of Amazon Bedrock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_READ_BY_MODEL: Final = frozenset(
    (
        *("messages", "contents", "content", "input", "prompt", "query", "documents", "requests"),
        *("system", "systemInstruction", "system_instruction", "instructions"),
        # Of models at Amazon Bedrock.
        *("inputText", "message", "chat_history", "preamble", "texts", "inputs"),
        *("text_prompts", "textToImageParams", "inPaintingParams", "outPaintingParams"),
        *("imageVariationParams", "colorGuidedGenerationParams", "tool_results", "inputPrompt"),
        "additionalModelRequestFields",
    )
)
"""Fields of a request that hold its messages. Others hold settings, tools and schemas."""
_ANSWERED: Final = (
    *("choices", "output", "content", "candidates"),
    # Of models at Amazon Bedrock.
    *("completion", "completions", "generation", "generations", "outputs", "results", "text"),
)
"""Fields of an answer that hold its messages."""
_SETTINGS: Final = frozenset(("model", "previous_response_id", "prompt_cache_key"))
"""Fields of a request that hold no texts."""
_SETTINGS_AT_BEDROCK: Final = _SETTINGS | frozenset(
    (
        # Of Converse.
        *("toolConfig", "inferenceConfig", "outputConfig", "requestMetadata", "serviceTier"),
        *("performanceConfig", "guardrailConfig", "additionalModelResponseFieldPaths"),
        # Of Anthropic's models and of those that OpenAI's SDK calls.
        *("anthropic_version", "anthropic_beta", "tools", "tool_choice", "metadata", "thinking"),
        *("stop_sequences", "stop", "stream", "stream_options", "service_tier", "user"),
        *("output_config", "output_format", "context_management", "cache_control", "mcp_servers"),
        *("container", "response_format", "reasoning_effort", "logit_bias", "encoding_format"),
        # Of Amazon's.
        *("schemaVersion", "taskType", "inputType", "textGenerationConfig", "embeddingConfig"),
        *("embeddingTypes", "imageGenerationConfig", "videoGenerationConfig"),
        # Of Cohere's.
        *("input_type", "embedding_types", "truncate", "safety_mode", "citation_quality"),
        *("prompt_truncation", "return_likelihoods", "connectors"),
        # Of Stability's.
        *("mode", "aspect_ratio", "style_preset", "clip_guidance_preset", "sampler"),
    )
)
"""Fields of a request to a model at Bedrock that hold settings, tools and schemas."""
_ARGUMENTS: Final = frozenset(("arguments", "args", "input"))
"""Fields of a tool's call, below which all strings are texts."""
_FILE_TYPES: Final = ("mediaType", "media_type", "mimeType", "mime_type")
_FILE_CONTENTS: Final = ("data", "bytes")
_LABELS: Final = frozenset(
    (
        *("role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "status", "object"),
        *("finish_reason", "finishReason", "stop_reason", "signature", "thoughtSignature"),
        *_FILE_TYPES,
    )
)
_LABEL: Final = re.compile(r"[\w.:/+=-]*")
"""The form of a label's value, such as ``user`` or ``call_1``. A value of another form, such as a
sentence, is searched as a text."""
_NOT_SHOWN: Final = frozenset(("logprobs", "annotations", "safetyRatings"))
_FILE: Final = re.compile(r"(images?|mask|base64string)$", re.IGNORECASE)
"""Matches names of members that hold a picture or another file in Base64, or a list of them."""
_BASE64: Final = re.compile(r"[\w+/-]{100,}={0,2}", re.ASCII)
_DATA_URL: Final = re.compile(r"data:(?!text/)[\w.+/-]*[;,]")


def of_request(request: Mapping[str, Any]) -> str:
    """Returns the texts of the messages of a request to a model, each on lines of its own."""
    return _joined({name: request[name] for name in request if name in _READ_BY_MODEL})


def of_request_to_bedrock(request: Mapping[str, Any]) -> str:
    """Returns the texts of a request to a model at Amazon Bedrock. Each vendor's models have other
    fields, so unknown fields count as messages, too."""
    return _joined({name: request[name] for name in request if name not in _SETTINGS_AT_BEDROCK})


def all_of_request(request: Mapping[str, Any]) -> str:
    """Returns all texts that a request sends to a model: of messages, tools, schemas and further
    fields."""
    return _joined({name: request[name] for name in request if name not in _SETTINGS})


def of_answer(answer: Mapping[str, Any]) -> str:
    """Returns the texts of all messages of a model's answer, also the arguments of tools' calls."""
    return _joined({name: answer[name] for name in _ANSWERED if name in answer})


def _joined(fields: Mapping[str, Any]) -> str:
    # The texts are appended to one list, because nested generators would pass each text through
    # all levels of the request.
    texts: list[str] = []
    for name, value in fields.items():
        _add_member(texts, name, value, is_file=False)
    return "\n".join(texts)


def _add_member(texts: list[str], name: str, value: Any, *, is_file: bool) -> None:
    """Appends the texts in a member of an object. ``is_file`` is whether the object is in a member
    that holds files in Base64, which are left out."""
    holds_files = not isinstance(value, dict) and _FILE.search(name) is not None
    _add(texts, value, is_file=is_file or holds_files)


def _add(texts: list[str], value: Any, *, is_file: bool) -> None:
    if isinstance(value, str):
        if not _DATA_URL.match(value):
            _add_text(texts, value, is_file=is_file)
    elif isinstance(value, list):
        for part in value:
            _add(texts, part, is_file=is_file)
    elif isinstance(value, dict):
        encodes_file = _encodes_file(value)
        for name, part in value.items():
            if name in _ARGUMENTS:
                _add_strings(texts, part, is_file=is_file)
            elif name in _NOT_SHOWN or (encodes_file and name in _FILE_CONTENTS):
                continue
            elif not (name in _LABELS and isinstance(part, str) and _LABEL.fullmatch(part)):
                _add_member(texts, name, part, is_file=is_file)


def _add_strings(texts: list[str], value: Any, *, is_file: bool) -> None:
    """Appends all strings in a value, also the names of fields."""
    if isinstance(value, str):
        _add_text(texts, value, is_file=is_file)
    elif isinstance(value, list):
        for part in value:
            _add_strings(texts, part, is_file=is_file)
    elif isinstance(value, dict):
        for name, part in value.items():
            _add_text(texts, name, is_file=is_file)
            _add_strings(texts, part, is_file=is_file)


def _add_text(texts: list[str], text: str, *, is_file: bool) -> None:
    if not (is_file and _BASE64.fullmatch(text)):
        texts.append(text)


def _encodes_file(part: Mapping[str, Any]) -> bool:
    """Whether a part of a message is a file in Base64; False for a document of plain text."""
    if part.keys() == {"bytes"}:  # as Converse has them
        return True
    kinds = [str(part[name]) for name in _FILE_TYPES if name in part]
    return any(not kind.startswith("text/") for kind in kinds) or part.get("type") == "base64"
