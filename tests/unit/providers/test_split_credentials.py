"""A credential that a stream says in several parts is replaced, in each form of stream; all other
text comes with the event that has it, but for an end with which a credential begins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.providers import transport
from mlcore.providers.credential_redactor import REDACTED, CredentialRedactor
from mlcore.providers.split_credentials import SplitCredentials

Json = dict[str, Any]
KEY: Final = "sk-live-sk-live-0123456789"
OTHER: Final = "AIza-9876543210-other"


class Form(NamedTuple):
    """A form of stream: the event of a part, how the text is read, and what ends it."""

    part: Callable[[str], Json]
    said: Callable[[Json], str]
    end: tuple[Json, ...]
    named: bool = False
    done: bool = False
    keeps_order: bool = True


def _choice(field: str) -> Form:
    def part(text: str) -> Json:
        delta = {"index": 0, "delta": {field: text}, "finish_reason": None}
        return {"id": "1", "choices": [delta], "usage": {"total_tokens": 3}}

    def said(event: Json) -> str:
        return "".join(choice["delta"].get(field) or "" for choice in event.get("choices", ()))

    last = {"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return Form(part, said, (last, {"id": "1", "choices": [], "usage": {}}), done=True)


def _tool(text: str) -> Json:
    call = {"index": 1, "id": "call", "function": {"name": "f", "arguments": text}}
    delta = {"content": None, "tool_calls": [call]}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _told_tool(event: Json) -> str:
    calls = [call for c in event["choices"] for call in c["delta"].get("tool_calls") or ()]
    assert all(call["index"] == 1 for call in calls)
    return "".join(call["function"]["arguments"] for call in calls)


def _block(field: str, kind: str) -> Form:
    def part(text: str) -> Json:
        return {"type": "content_block_delta", "index": 2, "delta": {"type": kind, field: text}}

    def said(event: Json) -> str:
        if event["type"] != "content_block_delta":
            return ""
        assert event["delta"]["type"] == kind
        return str(event["delta"][field])

    return Form(
        part,
        said,
        (
            {"type": "content_block_stop", "index": 2},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ),
        named=True,
    )


def _response(text: str) -> Json:
    where = {"item_id": "i", "output_index": 0, "content_index": 0}
    return {"type": "response.output_text.delta", **where, "delta": text}


def _candidate(text: str) -> Json:
    return {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}}]}


def _told_candidate(event: Json) -> str:
    parts = [part for c in event["candidates"] for part in c.get("content", {}).get("parts", ())]
    return "".join(part["text"] for part in parts)


FORMS: Final = {
    "chat": _choice("content"),
    "reasoning": _choice("reasoning_content"),
    "completion": Form(
        lambda text: {"choices": [{"index": 0, "text": text, "finish_reason": None}]},
        lambda event: "".join(choice["text"] for choice in event["choices"]),
        ({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]},),
        done=True,
    ),
    "tool": Form(
        _tool,
        _told_tool,
        ({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},),
        done=True,
    ),
    "message": _block("text", "text_delta"),
    "thinking": _block("thinking", "thinking_delta"),
    "tool use": _block("partial_json", "input_json_delta"),
    "response": Form(
        _response,
        lambda event: event["delta"] if event["type"].endswith(".delta") else "",
        (
            {"type": "response.output_text.done", "output_index": 0, "content_index": 0},
            {"type": "response.completed", "response": {}},
        ),
        named=True,
    ),
    "gemini": Form(
        _candidate,
        _told_candidate,
        ({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {}},),
    ),
    "unended": Form(_candidate, _told_candidate, ()),
}

PIECES = st.lists(
    st.sampled_from(
        [KEY, OTHER, KEY[:9], KEY[3:], OTHER[:4], "s", "sk", "A", " the ", "é漢😀", '"', "\\", "\n"]
    ),
    max_size=8,
).map("".join)


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def lines_of(form: Form, texts: list[str]) -> Iterator[bytes]:
    for event in (*map(form.part, texts), *form.end):
        if form.named:
            yield f"event: {event['type']}\n".encode()
        yield f"data: {json.dumps(event)}\n\n".encode()
    if form.done:
        yield b"data: [DONE]\n\n"


def passed(form: Form, texts: list[str], redactor: CredentialRedactor) -> list[bytes]:
    return list(transport._lines_in(lines_of(form, texts), redactor))


def events_of(lines: list[bytes]) -> list[Json]:
    return list(transport.events(iter(lines)))


@pytest.mark.parametrize("name", FORMS)
@given(text=PIECES, places=st.lists(st.integers(0, 500), max_size=30))
def test_no_split_of_a_text_shows_a_key(name: str, text: str, places: list[int]) -> None:
    form, redactor = FORMS[name], CredentialRedactor([KEY, OTHER])
    texts = cut(text, places)
    lines = passed(form, texts, redactor)
    events = events_of(lines)
    said = "".join(map(form.said, events))
    assert said == redactor.text(text)
    assert KEY not in said
    assert OTHER not in said
    # The events that end the text come last, unchanged, and after all of it.
    ends = events[len(events) - len(form.end) :]
    assert ends == list(form.end)
    # The framing is that of server-sent events: a name belongs to the next data.
    blocks = b"".join(lines).decode().strip().split("\n\n")
    for block in blocks:
        *names, data = block.split("\n")
        assert data.startswith("data: "), block
        event = {} if data == "data: [DONE]" else json.loads(data[6:])
        assert names == ([f"event: {event['type']}"] if form.named else []), block
    assert blocks[-1] == "data: [DONE]" or not form.done


@pytest.mark.parametrize("name", FORMS)
@given(texts=st.lists(st.sampled_from(["a", "b c", "é", "", "k", "x s x", "-"]), max_size=9))
def test_a_text_without_a_beginning_of_a_key_is_the_same_bytes(name: str, texts: list[str]) -> None:
    form = FORMS[name]
    lines = b"".join(passed(form, texts, CredentialRedactor([KEY, OTHER])))
    assert lines == b"".join(lines_of(form, texts))


@given(text=PIECES, places=st.lists(st.integers(0, 500), max_size=30))
def test_no_more_is_held_back_than_the_beginning_of_a_key(text: str, places: list[int]) -> None:
    form, redactor = FORMS["chat"], CredentialRedactor([KEY, OTHER])
    split, so_far, told = SplitCredentials(redactor), "", ""
    for part in cut(text, places):
        so_far += part
        events = split.events(form.part(part))
        assert len(events) == 1, "no event is held back, and none is added"
        told += form.said(events[0])
        held = redactor.text(so_far)[len(told) :]
        assert redactor.text(so_far) == told + held
        assert not held or any(key.startswith(held) and held != key for key in (KEY, OTHER))


def test_two_texts_at_once_do_not_mix() -> None:
    """The choices of one stream, and the content and the reasoning of one choice."""

    def event(index: int, field: str, text: str) -> Json:
        return {"choices": [{"index": index, "delta": {field: text}, "finish_reason": None}]}

    split = SplitCredentials(CredentialRedactor([KEY]))
    told: dict[tuple[int, str], str] = {}
    for part in (KEY[:10], KEY[10:]):
        for index, field in ((0, "content"), (1, "content"), (0, "reasoning")):
            for said in split.events(event(index, field, part)):
                (choice,) = said["choices"]
                key = choice["index"], field
                told[key] = told.get(key, "") + choice["delta"][field]
    assert told == dict.fromkeys([(0, "content"), (1, "content"), (0, "reasoning")], REDACTED)


def test_an_end_with_text_of_its_own() -> None:
    split = SplitCredentials(CredentialRedactor([KEY]))
    (first,) = split.events(_candidate("a sk-li"))
    last = {"candidates": [{"content": {"parts": [{"text": "ne"}]}, "finishReason": "STOP"}]}
    (second,) = split.events(last)
    assert (_told_candidate(first), _told_candidate(second)) == ("a ", "sk-line")
    assert split.rest() == []


ODD = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.just("sk-live")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                (
                    *("choices", "delta", "content", "index", "tool_calls", "function", "type"),
                    *("arguments", "text", "candidates", "parts", "finish_reason"),
                )
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "delta", "type"]), ODD), max_size=4))
def test_events_of_any_form_pass(events: list[Json]) -> None:
    split = SplitCredentials(CredentialRedactor([KEY]))
    for event in events:
        json.dumps(split.events(event))
    json.dumps(split.rest())
