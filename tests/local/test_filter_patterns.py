"""Lambda's filter patterns."""

import json
from typing import Any

import pytest

from local.events.filter_patterns import compile_filters
from local.template_definitions import TemplateError

RECORD = {
    "eventName": "MODIFY",
    "dynamodb": {
        "Keys": {"PK": {"S": "E#1"}, "SK": {"S": "R#01#METRIC#a"}},
        "NewImage": {
            "n": {"N": "5"},
            "list": {"SS": ["a", "b"]},
            "null": None,
            "flag": {"BOOL": True},
        },
        "SizeBytes": 120,
    },
}


def sk(rule: Any) -> Any:
    return {"dynamodb": {"Keys": {"SK": {"S": [rule]}}}}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"eventName": ["INSERT", "MODIFY"]}, True),
        ({"eventName": ["REMOVE"]}, False),
        ({"missing": ["x"]}, False),
        (sk({"prefix": "R#"}), True),
        (sk({"prefix": "E#"}), False),
        (sk({"suffix": "#a"}), True),
        (sk({"equals-ignore-case": "r#01#metric#A"}), True),
        (sk({"anything-but": ["x", "y"]}), True),
        (sk({"anything-but": "R#01#METRIC#a"}), False),
        (sk({"anything-but": {"prefix": "RANK#"}}), True),
        (sk({"anything-but": {"prefix": "R#"}}), False),
        ({"dynamodb": {"Keys": {"GONE": {"S": [{"anything-but": "x"}]}}}}, False),
        ({"dynamodb": {"Keys": {"SK": {"S": [{"exists": True}]}}}}, True),
        ({"dynamodb": {"OldImage": {"x": {"S": [{"exists": False}]}}}}, True),
        ({"dynamodb": {"NewImage": {"n": {"N": [{"exists": False}]}}}}, False),
        ({"dynamodb": {"NewImage": [{"exists": True}]}}, False),
        ({"dynamodb": {"SizeBytes": [{"numeric": [">", 100, "<=", 120]}]}}, True),
        ({"dynamodb": {"SizeBytes": [{"numeric": ["<", 100]}]}}, False),
        ({"dynamodb": {"NewImage": {"n": {"N": [{"numeric": ["=", 5]}]}}}}, False),
        ({"dynamodb": {"NewImage": {"list": {"SS": ["b"]}}}}, True),
        ({"dynamodb": {"NewImage": {"null": [None]}}}, True),
        ({"dynamodb": {"NewImage": {"flag": {"BOOL": [True]}}}}, True),
        ({"dynamodb": {"NewImage": {"flag": {"BOOL": [1]}}}}, False),
        ({"eventName": ["MODIFY"], **sk({"prefix": "X"})}, False),
        ({"$or": [{"eventName": ["REMOVE"]}, sk({"prefix": "R#"})]}, True),
        ({"eventName": ["MODIFY"], "$or": [{"eventName": ["REMOVE"]}]}, False),
    ],
)
def test_patterns(pattern: Any, expected: Any) -> None:
    assert compile_filters([json.dumps(pattern)])(RECORD) is expected


def test_several_patterns_are_alternatives() -> None:
    texts = [json.dumps(sk({"prefix": prefix})) for prefix in ("X", "R#")]
    assert compile_filters(texts)(RECORD)
    assert not compile_filters(texts[:1])(RECORD)
    assert compile_filters([])(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"a": "b"}',
        '{"a": []}',
        '{"a": [{"prefix": 1}]}',
        '{"a": [{"like": "x"}]}',
        '{"a": [{"prefix": "x", "suffix": "y"}]}',
        '{"a": [{"numeric": [">"]}]}',
        '{"a": [{"numeric": ["~", 1]}]}',
        '{"$or": {}}',
    ],
)
def test_refused(text: Any) -> None:
    with pytest.raises(TemplateError):
        compile_filters([text])
