"""Rules end in time, whatever expression and text somebody sends."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mlcore.errors import InvalidParameterValue
from mlcore.judges import content, rules
from mlcore.limits.evaluation.judges import parse_judge
from mlcore.limits.evaluation.rules import MAX_PATTERN


def parsed(kind: str, **settings: Any) -> Any:
    data = {"builtin_scorer_class": kind, "builtin_scorer_pydantic_data": settings}
    return parse_judge({"name": "rule", **data})


@pytest.mark.parametrize(
    "text", ["a" * 3_000_000, "a@" * 1_000_000, "1-" * 1_000_000, "+1" * 10**6]
)
def test_personal_data_are_searched_in_linear_time(text: str) -> None:
    began = time.process_time()
    rules.verdict(parsed("PIIDetection"), text)
    # A square of these lengths would take hours.
    assert time.process_time() - began < 30


@pytest.mark.parametrize("pattern", ["(a|aa)+$", r"(\w+\s?)*$"])
def test_an_expression_that_never_ends_is_ended(pattern: str) -> None:
    with pytest.raises(InvalidParameterValue, match="took more than"):
        rules.verdict(parsed("RegexMatch", pattern=pattern), "a" * 5_000 + "!")


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


@pytest.mark.parametrize(
    "request_body",
    [
        {"messages": [{"role": "user", "content": "ann@shop.example"}, {"content": "last"}]},
        {"messages": [{"content": [{"type": "text", "text": "ann@shop.example"}]}]},
        {"messages": [{"tool_calls": [{"function": {"arguments": '{"to":"ann@shop.example"}'}}]}]},
        {"contents": [{"parts": [{"functionCall": {"args": {"to": "ann@shop.example"}}}]}]},
        {"system": [{"type": "text", "text": "ann@shop.example"}], "messages": []},
        {"input": "ann@shop.example"},
        {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "ann@shop.example"}]}
            ]
        },
        {"instructions": "ann@shop.example", "input": "x"},
        {"messages": [{"content": [{"type": "tool_result", "content": "ann@shop.example"}]}]},
    ],
)
def test_a_request_is_searched_wherever_its_texts_are(request_body: dict[str, Any]) -> None:
    text = content.request_text(request_body)
    assert rules.verdict(parsed("PIIDetection"), text).rationale == "Detected PII: email"


def test_files_and_names_are_no_texts() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,ann@shop.example"}}
    body: dict[str, Any] = {"model": "4111-1111-1111-1111", "user": "ann@shop.example"}
    body |= {"messages": [{"role": "user", "content": [picture, {"type": "text", "text": "hi"}]}]}
    assert content.request_text(body) == "hi"
