"""The texts of a streamed answer, which come in parts: what each provider's events add to which
text, and which texts they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

_ENDS_OF_ANSWERS: Final = frozenset(
    (
        *("message_delta", "message_stop", "error"),
        *("response.completed", "response.incomplete", "response.failed"),
    )
)
"""Types of events after which no text goes on."""
_BLOCK_FIELDS: Final = ("text", "thinking", "partial_json")
"""Fields of the deltas of Anthropic's content blocks."""


class Text(NamedTuple):
    """One text of an answer, such as the content of a choice or the arguments of a tool call."""

    owner: str
    """What it belongs to: a ``choice``, ``block``, ``output`` or ``candidate``."""
    number: int
    """The index of the owner."""
    name: str

    def is_in(self, owners: set[tuple[str, int]] | None) -> bool:
        """Whether the text belongs to one of the owners; None for all."""
        return owners is None or (self.owner, self.number) in owners


class Part:
    """What an event adds to a text."""

    def __init__(self, text: Text, holder: Json, field: str, alone: Callable[[str], Json]) -> None:
        """Args:
        holder: the object of the event in which the part is, as ``field``.
        alone: returns an event of the same form that adds a value to the text, and nothing else.
        """
        self.text = text
        self.alone = alone
        self._holder = holder
        self._field = field

    @property
    def value(self) -> str:
        value: str = self._holder[self._field]
        return value

    def set(self, value: str) -> None:
        """Replaces the part in its event."""
        self._holder[self._field] = value


def parts(event: Json) -> list[Part]:
    """Returns the parts of texts that an event has, in their order: of a chunk of OpenAI's chat or
    of its older completions, and of an event of its responses, of Anthropic's messages, of Gemini's
    answers and of Bedrock's Converse."""
    return [part for part in _parts(event) if part.value]


def _parts(event: Json) -> Iterator[Part]:
    kind, delta = event.get("type"), event.get("delta")
    for choice in _objects(event.get("choices")):
        yield from _of_choice(event, choice)
    for position, candidate in enumerate(_objects(event.get("candidates"))):
        yield from _of_candidate(event, candidate, _number(candidate.get("index", position)))
    if isinstance(delta, str) and isinstance(kind, str):
        of = (str(event.get(field)) for field in ("item_id", "content_index", "summary_index"))
        text = Text("output", _number(event.get("output_index")), "/".join((kind, *of)))
        yield Part(text, event, "delta", lambda value: {**event, "delta": value})
    elif isinstance(delta, dict) and kind == "content_block_delta":
        yield from _of_block(event, delta)
    elif isinstance(delta, dict) and "contentBlockIndex" in event:
        yield from _of_bedrock(event, delta)


def _of_choice(event: Json, choice: Json) -> Iterator[Part]:
    index = _number(choice.get("index"))

    def chunk(**fields: Any) -> Json:
        kept = {name: value for name, value in event.items() if name != "usage"}
        return {**kept, "choices": [{"index": index, **fields, "finish_reason": None}]}

    if isinstance(choice.get("text"), str):
        text = Text("choice", index, "text")
        yield Part(text, choice, "text", lambda value: chunk(text=value))
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return
    for field, said in list(delta.items()):
        if isinstance(said, str) and field != "role":
            text = Text("choice", index, f"delta/{field}")
            yield Part(text, delta, field, _delta_of(chunk, field))
    for call in _objects(delta.get("tool_calls")):
        function = call.get("function")
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            number = _number(call.get("index"))
            text = Text("choice", index, f"call/{number}")
            yield Part(text, function, "arguments", _arguments_of(chunk, number))


def _delta_of(chunk: Callable[..., Json], field: str) -> Callable[[str], Json]:
    return lambda value: chunk(delta={field: value})


def _arguments_of(chunk: Callable[..., Json], number: int) -> Callable[[str], Json]:
    return lambda value: chunk(
        delta={"tool_calls": [{"index": number, "function": {"arguments": value}}]}
    )


def _of_block(event: Json, delta: Json) -> Iterator[Part]:
    for field in _BLOCK_FIELDS:
        if isinstance(delta.get(field), str):
            text = Text("block", _number(event.get("index")), field)
            yield Part(text, delta, field, _with_delta(event, (field,), type=delta.get("type")))


def _of_candidate(event: Json, candidate: Json, index: int) -> Iterator[Part]:
    content = candidate.get("content")
    if not isinstance(content, dict):
        return
    for part in _objects(content.get("parts")):
        if isinstance(part.get("text"), str):
            name = "thought" if part.get("thought") else "text"
            alone = _candidate_of(event, content, index, is_thought=name == "thought")
            yield Part(Text("candidate", index, name), part, "text", alone)


def _candidate_of(
    event: Json, content: Json, index: int, *, is_thought: bool
) -> Callable[[str], Json]:
    def alone(value: str) -> Json:
        kept = {name: item for name, item in event.items() if name != "usageMetadata"}
        part = {"text": value, **({"thought": True} if is_thought else {})}
        candidate = {"content": {**content, "parts": [part]}, "index": index}
        return {**kept, "candidates": [candidate]}

    return alone


def _of_bedrock(event: Json, delta: Json) -> Iterator[Part]:
    index = _number(event.get("contentBlockIndex"))
    if isinstance(delta.get("text"), str):
        text = Text("block", index, "text")
        yield Part(text, delta, "text", _with_delta(event, ("text",)))
    for name, field in (("toolUse", "input"), ("reasoningContent", "text")):
        holder = delta.get(name)
        if isinstance(holder, dict) and isinstance(holder.get(field), str):
            text = Text("block", index, name)
            yield Part(text, holder, field, _with_delta(event, (name, field)))


def _with_delta(event: Json, path: tuple[str, ...], **more: Any) -> Callable[[str], Json]:
    """Returns a function that makes the event with a delta that has a value at the path."""

    def alone(value: str) -> Json:
        delta: Any = value
        for name in reversed(path):
            delta = {name: delta}
        return {**event, "delta": {**more, **delta}}

    return alone


def ended(event: Json) -> set[tuple[str, int]] | None:
    """Returns the owners of the texts that an event ends; None if it ends all."""
    kind = event.get("type")
    if (isinstance(kind, str) and kind in _ENDS_OF_ANSWERS) or "stopReason" in event:
        return None
    owners: set[tuple[str, int]] = set()
    for choice in _objects(event.get("choices")):
        if choice.get("finish_reason") is not None:
            owners.add(("choice", _number(choice.get("index"))))
    for position, candidate in enumerate(_objects(event.get("candidates"))):
        if candidate.get("finishReason") is not None:
            owners.add(("candidate", _number(candidate.get("index", position))))
    if kind == "content_block_stop":
        owners.add(("block", _number(event.get("index"))))
    elif isinstance(kind, str) and kind.endswith(".done"):
        owners.add(("output", _number(event.get("output_index"))))
    elif "contentBlockIndex" in event and not {"delta", "start"} & event.keys():
        owners.add(("block", _number(event.get("contentBlockIndex"))))
    return owners


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(value: Any) -> int:
    return value if type(value) is int else 0
