"""Scorers that ask no model rate as MLflow's classes do, and take the settings that these take."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mlcore.entities.evaluation.judges import Judge
from mlcore.errors import InvalidParameterValue
from mlcore.judges import rule_scorers
from mlcore.limits.evaluation.code_scorers import parse_code_scorer
from mlcore.limits.evaluation.judges import parse_judge
from tests.differential.stock import SEED

builtin_scorers = pytest.importorskip("mlflow.genai.scorers.builtin_scorers")
base = pytest.importorskip("mlflow.genai.scorers.base")

PARTS = (
    *(
        "ann@shop.example",
        "é",
        "a.b+c@x-y.co",
        "@",
        "x@y",
        ".com",
        "555-123-4567",
        "(555) 123 4567",
    ),
    *("+4915112345678", "123-45-6789", "4111 1111 1111 1111", "378282246310005", "192.168.1.255"),
    *("300.1.1.1", "Answer: 42", "answer", "\n", " ", "\t", "a", "1", "-", ".", "()", "日本", "%"),
)
PATTERNS = (
    *("^Answer:", "answer$", r"\d{3}-\d{2}", "(?i)ANSWER", "a{,2}", "(", "a**", "."),
    *("(?P<x>a)(?P=x)", "日", r"\w+@\w+", "", "a|b", "x{2,1}", "(?s).*", r"\Z", "[a-", "{"),
)
SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "RegexMatch": {
        "pattern": PATTERNS,
        "match_type": ("search", "fullmatch", "match", None),
        "case_insensitive": (True, False),
    },
    "PIIDetection": {
        "pii_types": (None, [], ["email"], ["phone", "ssn"], ["credit_card", "ip_address"], ["dna"])
    },
    "ResponseLength": {
        "min_length": (None, 0, 3, 20, -1),
        "max_length": (None, 0, 5, 40, -7),
        "unit": ("chars", "words", "lines"),
    },
}


def drawn(rng: random.Random, kind: str) -> dict[str, Any]:
    return {
        name: rng.choice(values)
        for name, values in SETTINGS[kind].items()
        if name == "pattern" or rng.random() < 0.7
    }


def ours(kind: str, settings: dict[str, Any]) -> Judge | None:
    data = {"builtin_scorer_class": kind, "builtin_scorer_pydantic_data": settings}
    try:
        return parse_judge({"name": "rule", **data})
    except InvalidParameterValue:
        return None


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_rule_rates_as_mlflows(kind: str) -> None:
    rng = random.Random(f"{SEED} {kind}")
    ratings = set()
    for _ in range(400):
        settings = drawn(rng, kind)
        try:
            theirs = getattr(builtin_scorers, kind)(**settings)
        except ValueError:
            theirs = None
        judge = ours(kind, settings)
        assert (judge is None) == (theirs is None), settings
        if judge is None:
            continue
        text = "".join(rng.choices(PARTS, k=rng.randrange(6)))
        feedback, verdict = theirs(outputs=text), rule_scorers.verdict(judge, text)
        told = (verdict.value, verdict.rationale)
        assert told == (feedback.value, feedback.rationale), (settings, text)
        ratings.add(verdict.value)
    assert ratings == {"yes", "no"}


def test_without_a_text() -> None:
    judge = ours("PIIDetection", {})
    assert judge is not None
    theirs = builtin_scorers.PIIDetection()(outputs=None)
    verdict = rule_scorers.verdict(judge, None)
    assert (verdict.value, verdict.rationale) == (theirs.value, theirs.rationale)


KINDS: tuple[dict[str, Any], ...] = (
    {"builtin_scorer_class": "Safety", "builtin_scorer_pydantic_data": {"name": "s"}},
    {"call_source": "return 1"},
    {"instructions_judge_pydantic_data": {"instructions": "{{ inputs }}", "model": "openai:/m"}},
    {"third_party_scorer_data": {}},
    {"ensemble_scorer_data": {}},
)


@pytest.mark.parametrize("count", [0, 2, 3])
def test_a_scorer_is_of_one_kind(count: int) -> None:
    data = {"name": "s"}
    for kind in random.Random(SEED).sample(KINDS, count):
        data |= kind
    with pytest.raises(ValueError, match="SerializedScorer") as stock:
        base.SerializedScorer.from_dict(data)
    for parse in (parse_judge, parse_code_scorer):
        with pytest.raises(InvalidParameterValue) as ours:
            parse(data)
        assert ours.value.message.endswith(f"Failed to parse serialized scorer data: {stock.value}")
