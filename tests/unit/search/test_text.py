"""A text that a pattern matches has every token that the pattern guarantees."""

from __future__ import annotations

import random

import pytest

from mlcore.search import text
from mlcore.search.like import ilike, like
from mlcore.search.text import LONG, TRIGRAM, WORD, Token, guaranteed, tokens

ALPHABET = "aAbB1 -_#.ßİıſΣσς\u0301é漢\U0001f680%"


def test_the_tokens_of_a_text() -> None:
    assert tokens("Ann-9 É") == {
        Token(WORD, "ann"),
        Token(WORD, "9"),
        Token(WORD, "É"),
        *(Token(TRIGRAM, part) for part in ("ann", "nn-", "n-9", "-9 ", "9 É")),
    }
    assert tokens("") == frozenset()
    assert tokens("x" * (text.LONGEST_TEXT + 1)) == {LONG}


@pytest.mark.parametrize(
    ("operator", "pattern", "expected"),
    [
        ("ILIKE", "%ANN%", ["ann"]),
        ("LIKE", "%an%", []),
        ("LIKE", "a_n%x", []),
        ("LIKE", "ann", ["word ann", "ann"]),
        ("LIKE", "ann%", ["ann"]),
        ("LIKE", "ann-%", ["word ann", "ann", "nn-"]),
        ("LIKE", "%-ab-%", ["-ab", "ab-", "word ab"]),
        ("=", "50%", ["50%", "word 50"]),
        ("=", "ok", ["word ok"]),
        ("!=", "annex", []),
    ],
)
def test_what_a_pattern_guarantees(operator: str, pattern: str, expected: list[str]) -> None:
    shown = [f"word {t.text}" if t.level == WORD else t.text for t in guaranteed(operator, pattern)]
    assert shown == expected


def test_every_match_has_what_its_pattern_guarantees() -> None:
    rng = random.Random(1)
    matched = 0
    for _ in range(40_000):
        whole = "".join(rng.choices(ALPHABET, k=rng.randrange(9)))
        pattern = _pattern(rng, whole)
        for operator, test in (("LIKE", like), ("ILIKE", ilike)):
            if test(pattern)(whole):
                matched += 1
                assert set(guaranteed(operator, pattern)) <= tokens(whole), (pattern, whole)
        assert set(guaranteed("=", whole)) <= tokens(whole)
    assert matched > 20_000


def _pattern(rng: random.Random, whole: str) -> str:
    """A text with some of its characters replaced by wildcards, and some by the other case."""
    made = []
    for character in whole:
        made.append(rng.choice((character,) * 6 + ("_", "%", character.swapcase(), "")))
    return "".join(made) + rng.choice(("", "", "%"))
