"""Rules for providers leave ordinary requests as they are, and let no private text through."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.errors import GatewayCallFailed
from mlcore.gateway.invocation import Invocation
from mlcore.gateway.request_redaction import RequestRedaction
from mlcore.redaction.rules import parsed
from tests.examples import number_of

Json = dict[str, Any]

KINDS: Final[dict[str, Json]] = {
    "entities": {"entities": ["email", "credit_card"]},
    "pattern": {"pattern": "hunter2[a-z]{6}"},
    "fields": {"fields": ["inputs.metadata.user_id"]},
}


def redaction(kind: str, **more: Any) -> RequestRedaction:
    rule = {**KINDS[kind], "apply_to": ["providers"], **more}
    rules = parsed({"rules": [rule]}).of_request("default", "", "e-1")
    assert rules is not None
    return RequestRedaction(rules)


SCHEMA: Final[Json] = {
    "type": ["object", "null"],
    "properties": {
        "type": {"type": "string", "enum": ["a", None]},
        "input": {"type": ["string", "null"]},
        "args": {"type": {"description": "of any form"}},
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, {"unsearchable": "send"}])
def test_schemas_whose_types_are_no_texts(kind: str, more: Json) -> None:
    for schema in (SCHEMA, {"type": {"args": SCHEMA}, "input": SCHEMA, "args": [SCHEMA]}):
        body = {"tools": [{"type": "function", "function": {"parameters": schema}}]}
        assert redaction(kind, **more).body(body) is body


def test_the_time_grows_with_the_length() -> None:
    """Also of objects with many members and many texts."""
    body = {**{f"m{number}": "a" for number in range(20_000)}, "data": ["b"] * 20_000}
    started = time.thread_time()
    assert redaction("entities").body(body) is body
    assert time.thread_time() - started < 5, "for each text, each name is read"


TEXT: Final = st.text('abcXYZ019 _-/=+é\n\\"{[', max_size=30)
LONG: Final = st.sampled_from(
    ["ACGTTGCA" * 64, "ab01" * 100, "a" * 3000, "a/b/c" * 80, "helloWorld" * 60, "0" * 400]
)
"""What may look like Base64."""
ONE_CASE: Final = st.sampled_from(["ACGTTGCA" * 64, "ab01" * 100, "a" * 3000, "0123" * 99])
SAID: Final = TEXT | LONG
BINARY: Final = st.binary(min_size=100, max_size=300).map(lambda part: b"\xff\xfe" + part)
STATE: Final = (
    BINARY.map(lambda content: base64.b64encode(content).decode())
    | BINARY.map(lambda content: base64.encodebytes(content).decode())
    | st.sampled_from(["skip_thought_signature_validator", "abcd", "ab01" * 16, "9" * 130, ""])
)
IDENTIFIER: Final = (
    BINARY.map(lambda content: base64.b64encode(content * 3).decode())
    | BINARY.map(lambda content: "call_" + base64.urlsafe_b64encode(content * 3).decode())
    | st.sampled_from(["call_abc", "toolu_01" + "aB3" * 100, "", "resp_" + "bGl0ZWxsbTo" * 30])
)
PLAIN: Final = st.none() | st.booleans() | st.integers(-999, 999) | st.floats(0, 1) | TEXT
JSON: Final = st.recursive(
    PLAIN | ONE_CASE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS: Final = st.dictionaries(
    st.sampled_from(["data", "type", "mimeType", "bytes", "source", "a", "text"]),
    JSON | STATE | LONG,
    max_size=4,
)
SCHEMAS: Final = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", ["string", "null"], None, {"a": 1}, 7])},
        optional={"enum": st.lists(PLAIN, max_size=3), "description": TEXT | ONE_CASE},
    ),
    lambda inner: st.fixed_dictionaries(
        {
            "type": st.sampled_from(["object", ["object", "null"], "array"]),
            "properties": st.dictionaries(
                st.sampled_from(["type", "input", "args", "data", "mimeType", "a"]),
                inner,
                max_size=3,
            ),
        }
    ),
    max_leaves=4,
)


def objects(**members: Any) -> st.SearchStrategy[Json]:
    made = {
        name: value if isinstance(value, st.SearchStrategy) else st.just(value)
        for name, value in members.items()
    }
    return st.fixed_dictionaries(made)


BLOCKS: Final = st.one_of(
    objects(type="text", text=SAID),
    objects(type="tool_use", id=IDENTIFIER, name="f", input=ARGUMENTS),
    objects(
        type="tool_result",
        tool_use_id=IDENTIFIER,
        content=SAID | st.lists(objects(type="text", text=SAID), max_size=2),
    ),
    objects(type="document", source=objects(type="text", media_type="text/plain", data=SAID)),
    objects(type="thinking", thinking=TEXT, signature=STATE),
    objects(type="redacted_thinking", data=STATE),
    objects(type="text", text=TEXT, citations=st.lists(objects(encrypted_index=STATE))),
    objects(toolUse=objects(toolUseId=IDENTIFIER, name="f", input=ARGUMENTS)),
    objects(
        toolResult=objects(
            toolUseId=IDENTIFIER, content=st.lists(objects(json=ARGUMENTS), max_size=2)
        )
    ),
)
PARTS: Final = st.one_of(
    objects(text=SAID, thoughtSignature=STATE),
    objects(functionCall=objects(id=IDENTIFIER, name="f", args=ARGUMENTS), thought_signature=STATE),
    objects(functionResponse=objects(id=IDENTIFIER, name="f", response=ARGUMENTS)),
)
CALLS: Final = objects(
    id=IDENTIFIER,
    type="function",
    function=objects(name="f", arguments=ARGUMENTS | ARGUMENTS.map(json.dumps) | SAID),
)
MESSAGES: Final = st.one_of(
    objects(role="user", content=SAID | st.lists(BLOCKS, max_size=3)),
    objects(role="tool", tool_call_id=IDENTIFIER, content=SAID),
    objects(role="assistant", content=None, tool_calls=st.lists(CALLS, max_size=2)),
    objects(
        role="assistant",
        content=TEXT,
        reasoning_details=st.lists(objects(type="reasoning.encrypted", data=STATE), max_size=2),
    ),
)
ITEMS: Final = st.one_of(
    objects(type="reasoning", id=IDENTIFIER, encrypted_content=STATE, summary=[]),
    objects(
        type="function_call",
        call_id=IDENTIFIER,
        id=IDENTIFIER,
        name="f",
        arguments=ARGUMENTS.map(json.dumps) | SAID,
    ),
    objects(type="function_call_output", call_id=IDENTIFIER, output=SAID),
    MESSAGES,
)
BODIES: Final = st.fixed_dictionaries(
    {"model": st.just("m")},
    optional={
        "messages": st.lists(MESSAGES, max_size=3),
        "contents": st.lists(objects(role="user", parts=st.lists(PARTS, max_size=3)), max_size=2),
        "input": SAID | st.lists(SAID, max_size=3) | st.lists(ITEMS, max_size=3),
        **dict.fromkeys(("prompt", "instructions", "system", "query"), SAID),
        "texts": st.lists(SAID, max_size=3),
        "tools": st.lists(objects(name="f", input_schema=SCHEMAS, parameters=SCHEMAS), max_size=3),
        **dict.fromkeys(("previous_response_id", "cachedContent", "prompt_cache_key"), IDENTIFIER),
        **dict.fromkeys(("conversation", "container"), IDENTIFIER | objects(id=IDENTIFIER)),
        "metadata": JSON,
        "temperature": st.floats(0, 2) | st.none(),
        "matrix": st.lists(st.lists(st.integers(-9, 9), max_size=3), max_size=3),
    },
)


@pytest.mark.parametrize("kind", KINDS)
@given(body=BODIES)
@settings(max_examples=number_of(150), deadline=None)
def test_an_ordinary_body_is_sent_as_it_is(kind: str, body: Json) -> None:
    before = json.dumps(body)
    assert json.dumps(redaction(kind).body(body)) == before
    assert json.dumps(body) == before


PRIVATE: Final = "hunter2secret"


def places(value: Any) -> Iterator[Callable[[str], None]]:
    """Yields what replaces one text, number or null inside of a JSON value, or adds a member."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(inside):
        if isinstance(item, dict | list):
            yield from places(item)
        else:
            yield lambda text, key=key: value.__setitem__(key, text)  # type: ignore[misc]
    if isinstance(value, dict):
        yield lambda text: value.__setitem__(text, 1)
        yield lambda text: value.__setitem__("more", [None, {"a": text}])
    else:
        yield value.append


def in_file(text: str) -> str:
    return base64.b64encode(f"{text} and so on, 3 times.\n{'More. ' * 40}".encode()).decode()


@given(
    body=BODIES,
    turn=st.integers(0, 10**6),
    spell=st.sampled_from(
        [str, lambda text: f"x{text}y", lambda text: json.dumps({"a": [text]}), "4 {} é".format]
    ),
)
@settings(max_examples=number_of(300), deadline=None)
def test_a_private_text_in_any_place_is_not_sent(
    body: Json, turn: int, spell: Callable[[str], str]
) -> None:
    body = json.loads(json.dumps(body))
    choices = list(places(body))
    choices[turn % len(choices)](spell(PRIVATE))
    assert PRIVATE not in json.dumps(redaction("pattern", unsearchable="send").body(body))
    # In place of a type it makes another object, whose Base64 may be a file: then nothing is sent.
    with suppress(GatewayCallFailed):
        assert PRIVATE not in json.dumps(redaction("pattern").body(body))


@pytest.mark.parametrize("wrapped", ["{}", "{}\n", " {}", "lines", "crlf"])
@pytest.mark.parametrize("more", [{}, {"unsearchable": "send"}])
def test_base64_in_members_of_any_name(wrapped: str, more: Json) -> None:
    """Also in lines: texts are searched, other files refused."""

    def wrap(data: str) -> str:
        end = {"lines": "\n", "crlf": "\r\n"}.get(wrapped)
        return wrapped.format(data) if end is None else end.join(re.findall(".{1,76}", data))

    def sent(content: str) -> str:
        body = {"a": [{"anything": wrap(content)}]}
        redacted = redaction("pattern", **more).body(body)
        return str(redacted["a"][0]["anything"])

    assert PRIVATE in base64.b64decode(in_file(PRIVATE)).decode()
    assert PRIVATE not in base64.b64decode(sent(in_file(PRIVATE))).decode()
    assert sent(in_file("public")) == wrap(in_file("public"))
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n\xff" * 29).decode()
    if more:
        assert sent(picture) == wrap(picture)
    else:
        with pytest.raises(GatewayCallFailed, match="cannot search"):
            sent(picture)


@pytest.mark.parametrize("name", ["signature", "thoughtSignature", "encrypted_content"])
def test_state_that_is_none_is_searched(name: str) -> None:
    for value in (f"{PRIVATE}abc", PRIVATE + "a" * 200, "7" * 70 + PRIVATE + "7" * 70):
        redacted = redaction("pattern").body({"messages": [{name: value}]})
        assert PRIVATE not in json.dumps(redacted), value
    redacted = redaction("pattern").body({"messages": [{name: in_file(PRIVATE)}]})
    assert PRIVATE not in base64.b64decode(redacted["messages"][0][name]).decode()


PICTURE: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n\xff" * 29).decode()
IDENTIFIERS: Final[list[tuple[str, Json]]] = [
    ("tool_calls", {"messages": [{"tool_calls": [{"id": "ID"}]}]}),
    ("tool_call_id", {"messages": [{"role": "tool", "tool_call_id": "ID"}]}),
    ("tool_use_id", {"messages": [{"content": [{"type": "tool_result", "tool_use_id": "ID"}]}]}),
    ("toolUseId", {"messages": [{"content": [{"toolUse": {"toolUseId": "ID"}}]}]}),
    ("functionCall", {"contents": [{"parts": [{"functionCall": {"id": "ID"}}]}]}),
    ("call_id", {"input": [{"type": "function_call", "call_id": "ID", "id": "ID"}]}),
    ("previous_response_id", {"previous_response_id": "ID"}),
    ("conversation", {"conversation": {"id": "ID"}}),
    ("cachedContent", {"cachedContent": "ID"}),
    ("line of a batch", {"custom_id": "1", "body": {"previous_response_id": "ID"}}),
]


def with_id(body: Json, value: str) -> Json:
    made: Json = json.loads(json.dumps(body).replace('"ID"', json.dumps(value)))
    return made


@pytest.mark.parametrize(("what", "body"), IDENTIFIERS, ids=[what for what, _ in IDENTIFIERS])
def test_an_identifier_is_no_file_but_is_searched(what: str, body: Json) -> None:
    """A text, also in Base64, is searched as one: nobody hides it in an identifier."""
    long = base64.b64encode(b"\xff\xfe\x01" * 200).decode()
    for value in (long, long.replace("/", "_"), f"call_{long}"):
        sent = with_id(body, value)
        assert redaction("pattern").body(sent) is sent, what
    for value in (PRIVATE, f"call_{PRIVATE}_1", f"{PRIVATE}{'a1B2' * 80}"):
        assert PRIVATE not in json.dumps(redaction("pattern").body(with_id(body, value)))
    text = json.dumps(redaction("pattern").body(with_id(body, in_file(PRIVATE))))
    files = re.findall('"([A-Za-z0-9+/=]{100,})"', text)
    assert files
    assert not [file for file in files if PRIVATE in base64.b64decode(file).decode()]


@pytest.mark.parametrize(
    "body",
    [
        {"id": "ID"},
        {"call_id": "ID"},
        {"image": {"id": "ID"}},
        {"messages": [{"content": [{"type": "image", "source": {"id": "ID"}}]}]},
        {"messages": [{"content": [{"image": {"tool_use_id": "ID"}}]}]},
        {"messages": {"id": "ID"}},
        {"a": [{"id": "ID"}]},
        {"toolUse": {"toolUseId": "ID"}},
        {"a": {"previous_response_id": "ID"}},
        {"messages": [{"cachedContent": "ID"}]},
        {"a": {"conversation": {"id": "ID"}}},
        {"messages": [{"content": [{"input_image": "ID", "file_data": "ID"}]}]},
        {"messages": [{"content": [{"type": "input_image", "image_url": "ID"}]}]},
    ],
    ids=str,
)
def test_a_file_under_the_name_of_an_identifier(body: Json) -> None:
    """Elsewhere a member of such a name may be a file for somebody."""
    with pytest.raises(GatewayCallFailed, match="cannot search"):
        redaction("pattern").body(with_id(body, PICTURE))


def test_arguments_are_those_of_a_part_of_a_message() -> None:
    """Elsewhere a provider reads files in them."""
    inner = {"invokeModel": {"body": in_file(PRIVATE)}}
    for body in (
        {"type": "tool_use", "input": inner},
        {"a": {"type": "tool_use", "input": inner}},
        {"toolUse": {"input": inner}},
        {"functionCall": {"args": inner}},
        {"content": {"type": "tool_use", "input": inner}},
    ):
        redacted = json.dumps(redaction("pattern").body(body))
        data = re.search(r'"body": "([^"]*)"', redacted)
        assert data is not None
        assert PRIVATE not in base64.b64decode(data[1]).decode(), body


def test_what_cannot_be_searched_to_its_end_is_refused() -> None:
    text = "[" * 400 + f'"{PRIVATE}"' + "]" * 400
    nested: Any = PRIVATE
    for _ in range(5000):
        nested = [nested]
    for value in (text, nested):
        try:
            assert PRIVATE not in json.dumps(redaction("pattern").body({"a": value}))
        except GatewayCallFailed as error:
            assert error.status == 400  # noqa: PT017 -- either is right
    grows = {"pattern": "a(?=b?)", "replacement": "ab a", "apply_to": ["providers"]}
    rules = parsed({"rules": [grows]}).of_request("default", "", "e-1")
    assert rules is not None
    with pytest.raises(GatewayCallFailed, match="cannot search"):
        RequestRedaction(rules).body({"m": json.dumps({"x": "a"})})


def test_a_call_that_fails_in_its_rules_counts_to_no_limit() -> None:
    class Counted:
        headers: Json = {}
        put = 0

        def put_back(self) -> None:
            self.put += 1

    class Broken:
        def body(self, body: Json) -> Json:
            raise TypeError

    counted: Any = Counted()
    broken: Any = Broken()
    nothing: Any = None
    call = Invocation(nothing, (), nothing, (), counted)
    call.redactions = (broken,)
    with pytest.raises(TypeError):
        call.redacted({})
    assert counted.put == 1
