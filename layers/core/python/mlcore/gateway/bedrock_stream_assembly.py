"""Assembles the events of Bedrock's streams into the answer that the same operation would have
returned at once, for the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcore.gateway import stream_assembly
from mlcore.providers.aws_event_stream import CHUNK
from mlcore.providers.proxied import BinaryEvent
from mlcore.wire.json_text import parse_json_text

Json = dict[str, Any]


def assemble(events: Sequence[BinaryEvent]) -> Json | None:
    """Joins the events of a Bedrock stream to one answer: that of Converse, or the message of one
    of Anthropic's models. For other models returns ``{"chunks": [event, …]}``; None without events
    or if they cannot be joined."""
    if not events:
        return None
    if events[0].kind == CHUNK:
        data = [event.data for event in events]
        return stream_assembly.assemble_message(data) or {"chunks": data}
    try:
        return _converse(events)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # the events may be anything; the caller has received them anyway


def _converse(events: Sequence[BinaryEvent]) -> Json:
    answer: Json = {}
    role = "assistant"
    blocks: dict[int, Json] = {}
    for kind, data in ((event.kind, event.data) for event in events):
        if kind == "messageStart":
            role = data["role"]
        elif kind == "contentBlockStart":
            blocks[data["contentBlockIndex"]] = _begun(data["start"])
        elif kind == "contentBlockDelta":
            _add(blocks.setdefault(data["contentBlockIndex"], {}), data["delta"])
        elif kind in ("messageStop", "metadata"):
            answer |= data
    content = [_ended(blocks[index]) for index in sorted(blocks)]
    return {"output": {"message": {"role": role, "content": content}}, **answer}


def _begun(start: Json) -> Json:
    return {name: {**block, "input": ""} for name, block in start.items()}


def _add(block: Json, delta: Json) -> None:
    """Adds the texts of a delta to its block."""
    for name, part in delta.items():
        if isinstance(part, str):
            block[name] = block.get(name, "") + part
        elif isinstance(part, dict):
            _add(block.setdefault(name, {}), part)
        else:
            block[name] = part


def _ended(block: Json) -> Json:
    used = block.get("toolUse")
    if not isinstance(used, dict) or not isinstance(used.get("input"), str):
        return block
    text = used["input"]
    value = parse_json_text(text, lone_surrogates=True) if text else {}
    return {**block, "toolUse": {**used, "input": value}}
