"""Credentials are replaced wherever an answer repeats them, in any spelling of JSON, however the
network cuts it; nothing else changes and nothing is held back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.providers import transport
from mlcore.providers.credential_redactor import REDACTED, CredentialRedactor

KEYS = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF),
    min_size=8,
    max_size=40,
).filter(lambda key: key == key.strip() and key not in REDACTED * 2)
TEXTS = st.text(st.sampled_from('abc 01\\/"\né漢😀{}[]:,'), max_size=12)
HEXADECIMAL = "0123456789abcdef"


def spelled(text: str, choices: Iterator[int]) -> str:
    """A JSON string of a text, each character in one of the ways that JSON has for it."""
    letters = []
    for letter in text:
        escaped = "".join(
            f"\\u{unit:04x}" for unit in memoryview(letter.encode("utf-16-le")).cast("H").tolist()
        )
        plain = json.dumps(letter, ensure_ascii=False)[1:-1]
        ways = [plain, plain, plain, escaped, escaped.upper().replace("U", "u")]
        if letter == "/":
            ways.append("\\/")
        letters.append(ways[next(choices) % len(ways)])
    return '"' + "".join(letters) + '"'


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    """The parts of an answer, as the network may cut it."""
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return (data[start:end] for start, end in zip([0, *ends], ends, strict=False) if end > start)


def replaced(text: str, keys: list[str]) -> str:
    for key in sorted(keys, key=len, reverse=True):
        text = text.replace(key, REDACTED)
    return text


def test_a_key_of_which_only_one_letter_is_escaped() -> None:
    redactor = CredentialRedactor(["000000\x7f\u0100"])
    assert redactor.may_occur_in(b'"000000\x7f\\u0100"')


@given(data=st.data())
def test_any_key_at_any_place_of_a_stream_cut_anywhere(data: st.DataObject) -> None:
    keys = data.draw(st.lists(KEYS, min_size=1, max_size=2, unique=True))
    pieces = st.lists(st.one_of(TEXTS, st.sampled_from(keys)), max_size=5).map("".join)
    texts = data.draw(st.lists(pieces, min_size=1, max_size=4))
    choices = iter(
        data.draw(st.randoms(use_true_random=False)).getrandbits(8) for _ in iter(int, 1)
    )
    bodies = [
        f'{{"n": 1.50, "a": [{spelled(text, choices)}], {spelled(text, choices)}: null}}'
        for text in texts
    ]
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8", "utf-16-be"]))
    redactor = CredentialRedactor(keys)
    whole = "".join(f"event: x\ndata: {body}\n\n" for body in bodies).encode()
    parts = cut(whole, data.draw(st.lists(st.integers(0, 10_000), max_size=8)))
    lines = list(transport._lines_in(parts, redactor))
    assert [line.strip() for line in lines[::3]] == [b"event: x"] * len(texts)
    assert len(lines) == 3 * len(texts), "a line was lost or held back at the end"
    for text, body, event in zip(texts, bodies, transport.events(iter(lines)), strict=True):
        expected = replaced(text, keys)
        assert event == {"n": 1.5, "a": [expected], expected: None}
        content = body.encode(encoding)
        answer = json.loads(content)
        if redactor.may_occur_in(content):
            answer = redactor.value(answer)
        assert answer == event
    if not any(key in text for key in keys for text in texts):
        assert b"".join(lines) == whole, "what has no key must not change by a byte"
    for key in keys:
        assert key.encode() not in b"".join(lines)


@given(key=KEYS, before=TEXTS, after=TEXTS, places=st.lists(st.integers(0, 200), max_size=5))
def test_lines_that_are_no_json(key: str, before: str, after: str, places: list[int]) -> None:
    line = f": {before} {key} {after}".replace("\n", " ") + "\n"
    (redacted,) = transport._lines_in(cut(line.encode(), places), CredentialRedactor([key]))
    assert redacted.decode() == replaced(line, [key, json.dumps(key)[1:-1]])


def test_a_key_that_is_a_number() -> None:
    redactor = CredentialRedactor(["123456789"])
    assert redactor.line(b'data: {"a":123456789,"b":true}\n') == (
        b'data: {"a": "[REDACTED]", "b": true}\n'
    )


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@given(value=JSON, key=st.one_of(KEYS, st.integers(10**7, 10**12).map(str)), data=st.data())
def test_a_json_text_stays_one(value: Any, key: str, data: st.DataObject) -> None:
    """Wherever the key is: in a text, in its ASCII spelling, in a name, or in a number."""
    keyed: list[Any] = [f"x{key}", json.dumps(key), {f"{key}y": 1}]
    if key.isdecimal() and key.isascii() and key[0] != "0":
        numbers = (int(key), int(f"-1{key}2"), float(f"{key}.5"))
        # A double has no room for the digits of a long key.
        keyed += [number for number in numbers if key in repr(number)]
    text = json.dumps([value, data.draw(st.sampled_from(keyed))], ensure_ascii=False)
    redacted = CredentialRedactor([key]).json_text(text)
    assert len(json.loads(redacted)) == 2
    for spelled_key in (key, *(json.dumps(key, ensure_ascii=way)[1:-1] for way in (True, False))):
        assert spelled_key not in redacted
    assert REDACTED in redacted


@pytest.mark.parametrize("values", [[], ["short", "", "  seven77  "[:7]]])
def test_what_is_too_short_to_be_replaced(values: list[str]) -> None:
    redactor = CredentialRedactor(values)
    line = b'data: {"a": "short \\u0041 \\/"}\n'
    assert (redactor.line(line), redactor.may_occur_in(line)) == (line, False)


def test_the_spaces_around_a_saved_key_are_not_sent_and_not_needed() -> None:
    assert CredentialRedactor([" sk-0123456\n"]).text("it is sk-0123456") == f"it is {REDACTED}"


def test_what_it_costs() -> None:
    """About 2 microseconds for the line of a token. The machine may be slow and busy: processor
    time counts, of the fastest of many."""
    redactor = CredentialRedactor(["sk-proj-" + HEXADECIMAL * 8, "AKIA" + HEXADECIMAL])
    chunk: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
    chunk["choices"] = [{"index": 0, "delta": {"content": " token"}, "finish_reason": None}]
    line = f"data: {json.dumps(chunk)}\n".encode()

    def duration() -> float:
        started = time.process_time()
        for _ in range(100):
            redactor.line(line)
        return (time.process_time() - started) / 100

    assert min(duration() for _ in range(50)) < 40e-6
