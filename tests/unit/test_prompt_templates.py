"""Templates of prompts: variables, filling, and texts that are none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.prompt_templates import PromptTemplate


def test_a_text_is_a_message_of_the_user() -> None:
    template = PromptTemplate("Say {{ a }} to {{b.c}} and {{ }} {{1}}")
    assert template.variables() == {"a", "b.c"}
    filled = template.filled({"a": 1, "b.c": ["x"], "1": "no"})
    assert filled == [{"role": "user", "content": "Say 1 to ['x'] and {{ }} {{1}}"}]


@given(st.text(), st.text())
def test_values_are_inserted_once(first: str, second: str) -> None:
    values = {"a": f"{{{{ b }}}}{first}", "b": second}
    [message] = PromptTemplate("<{{ a }}|{{ b }}>").filled(values)
    assert message["content"] == f"<{{{{ b }}}}{first}|{second}>"


def test_a_variable_without_value_stays() -> None:
    [message] = PromptTemplate("{{ a }}").filled({})
    assert message["content"] == "{{ a }}"


def test_messages_of_a_chat() -> None:
    messages = [
        {"role": "system", "content": 'Say "{{ a }}"'},
        {"role": "user", "content": "{{ b }}", "name": "x"},
    ]
    template = PromptTemplate(json.dumps(messages), is_chat=True)
    assert template.variables() == {"a", "b"}
    assert template.filled({"a": 'q"', "b": "y"}) == [
        {"role": "system", "content": 'Say "q""'},
        {"role": "user", "content": "y"},
    ]


@pytest.mark.parametrize(
    "text",
    ["", "x", "{}", "[]", "[1]", '[{"role": "user"}]', '[{"role": 1, "content": ""}]', "[" * 9999],
)
def test_what_is_no_chat(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        PromptTemplate(text, is_chat=True).messages()


def test_statements_of_jinja() -> None:
    assert PromptTemplate("{% if a %}").is_jinja()
    assert not PromptTemplate("100 % {a}").is_jinja()
