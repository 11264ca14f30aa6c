"""Rules end in time, whatever expression and text somebody sends."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mlcore.errors import InvalidParameterValue
from mlcore.judges import model_call_texts, rule_scorers
from mlcore.limits.evaluation.judges import parse_judge
from mlcore.limits.evaluation.rule_scorers import MAX_PATTERN


def parsed(kind: str, **settings: Any) -> Any:
    data = {"builtin_scorer_class": kind, "builtin_scorer_pydantic_data": settings}
    return parse_judge({"name": "rule", **data})


@pytest.mark.parametrize(
    "text", ["a" * 3_000_000, "a@" * 1_000_000, "1-" * 1_000_000, "+1" * 10**6]
)
def test_personal_data_are_searched_in_linear_time(text: str) -> None:
    began = time.process_time()
    rule_scorers.verdict(parsed("PIIDetection"), text)
    # A square of these lengths would take hours.
    assert time.process_time() - began < 30


@pytest.mark.parametrize("pattern", ["(a|aa)+$", r"(\w+\s?)*$"])
def test_an_expression_that_never_ends_is_ended(pattern: str) -> None:
    with pytest.raises(InvalidParameterValue, match="took more than"):
        rule_scorers.verdict(parsed("RegexMatch", pattern=pattern), "a" * 5_000 + "!")


@pytest.mark.parametrize(
    "settings",
    [
        *({}, {"pattern": None}, {"pattern": ["a"]}, {"pattern": "("}, {"pattern": "a" * 2_001}),
        *({"pattern": "a{9999}{9999}"}, {"pattern": "a", "match_type": "x"}),
        {"pattern": "a", "case_insensitive": "yes"},
    ],
)
def test_a_wrong_expression_is_refused_when_it_is_registered(settings: dict[str, Any]) -> None:
    assert MAX_PATTERN == 2_000
    with pytest.raises(InvalidParameterValue):
        parsed("RegexMatch", **settings)


@pytest.mark.parametrize("bound", [True, 1.5, "3", [], {}])
def test_a_length_is_a_whole_number(bound: Any) -> None:
    with pytest.raises(InvalidParameterValue):
        parsed("ResponseLength", max_length=bound)


ADDRESS = "ann@shop.example"
TEXT = {"type": "text", "text": ADDRESS}


@pytest.mark.parametrize(
    "request_body",
    [
        {"messages": [{"role": "user", "content": ADDRESS}, {"content": "last"}]},
        {"messages": [{"content": [TEXT]}]},
        {"messages": [{"tool_calls": [{"function": {"arguments": f'{{"to":"{ADDRESS}"}}'}}]}]},
        {"messages": [{"content": [{"type": "tool_use", "input": {"data": ADDRESS}}]}]},
        {"messages": [{"content": [{"type": "tool_result", "content": ADDRESS}]}]},
        {"messages": [{"content": [{"source": {"type": "text", "data": ADDRESS}}]}]},
        {"messages": [{"content": [{"source": {"media_type": "text/plain", "data": ADDRESS}}]}]},
        {"messages": [{"role": ADDRESS, "content": "x"}]},
        {"contents": [{"parts": [{"functionCall": {"args": {"id": ADDRESS}}}]}]},
        {"requests": [{"content": {"parts": [{"text": ADDRESS}]}}]},
        {"system": [TEXT], "messages": []},
        {"input": ADDRESS},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": ADDRESS}]}]},
        {"instructions": ADDRESS, "input": "x"},
        {"tools": [{"function": {"description": ADDRESS}}], "messages": []},
        {"response_format": {"json_schema": {"description": ADDRESS}}, "messages": []},
        {"prediction": {"type": "content", "content": ADDRESS}, "messages": []},
        {"message": ADDRESS, "chat_history": []},
        {"user": ADDRESS, "messages": []},
    ],
)
def test_a_request_is_searched_wherever_its_texts_are(request_body: dict[str, Any]) -> None:
    text = model_call_texts.all_of_request(request_body)
    assert rule_scorers.verdict(parsed("PIIDetection"), text).rationale == "Detected PII: email"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"choices": [{"message": {"role": "assistant", "content": "a"}}]}, "a"),
        ({"choices": [{"message": {"content": t}} for t in "ab"], "created": 1795950000}, "a\nb"),
        ({"choices": [{"text": "a", "finish_reason": "stop", "logprobs": {"tokens": ["b"]}}]}, "a"),
        ({"choices": [{"message": {"content": [{"type": "text", "text": "a"}]}}]}, "a"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"candidates": [{"content": {"parts": [{"text": "a"}], "role": "model"}}]}, "a"),
        ({"output": [{"role": "assistant", "content": [TEXT, TEXT]}]}, f"{ADDRESS}\n{ADDRESS}"),
        (
            {
                "id": "chatcmpl-1234567890",
                "created": 1795950000,
                "choices": [
                    {
                        "message": {
                            "content": None,
                            "tool_calls": [
                                {"id": "call_1234567890", "function": {"arguments": '{"a": 1}'}}
                            ],
                        }
                    }
                ],
            },
            '{"a": 1}',
        ),
    ],
)
def test_an_answer_is_its_texts(answer: dict[str, Any], text: str) -> None:
    assert model_call_texts.of_answer(answer) == text


def test_files_and_names_are_no_texts() -> None:
    files = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,41111111111111111"}},
        {"source": {"type": "base64", "media_type": "image/png", "data": "41111111111111111"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "4111111111111111"}},
    ]
    labels = {"role": "user", "type": "message", "id": "msg_4111111111111111"}
    body: dict[str, Any] = {"model": "4111-1111-1111-1111", "temperature": 1}
    body |= {"messages": [{**labels, "content": [*files, {"type": "text", "text": "hi"}]}]}
    assert model_call_texts.all_of_request(body) == "hi"
    assert model_call_texts.of_request({**body, "user": "ann"}) == "hi"


@pytest.mark.parametrize("name", ["x", "images", "arguments"])
def test_texts_below_many_levels_are_found_in_linear_time(name: str) -> None:
    value: Any = ["text"] * 300_000
    for _ in range(95):
        value = [{name: value}]
    began = time.process_time()
    texts = model_call_texts.of_request_to_bedrock({"a": value}).split("\n")
    assert texts.count("text") == 300_000
    assert time.process_time() - began < 10
