"""A text that a pattern matches is found by what is looked up for the pattern."""

from __future__ import annotations

import random

import pytest

from indexer.full_text import text_items
from mlcore.search import text_lookups, text_tokens
from mlcore.search.like import ilike, like
from mlcore.search.text_tokens import LONG_TEXT_TOKEN, TRIGRAM, WORD, IndexToken, index_tokens
from tests.unit.search.text_matches import found_by

ALPHABET = "aAbB1123 -_#.ßİıſΣσς\u0301é漢\U0001f680%"


def test_the_tokens_of_a_text() -> None:
    assert index_tokens("Ann-9 É") == {
        IndexToken(WORD, "ann"),
        IndexToken(WORD, "9"),
        IndexToken(WORD, "É"),
        *(IndexToken(TRIGRAM, part) for part in ("ann", "nn-", "n-9", "-9 ", "9 É")),
    }
    assert index_tokens("") == frozenset()
    assert index_tokens("x" * (text_tokens.MAX_TEXT_CHARACTERS + 1)) == {LONG_TEXT_TOKEN}


@pytest.mark.parametrize(
    ("operator", "pattern", "expected"),
    [
        ("ILIKE", "%ANN%", ["…ann…"]),
        ("LIKE", "%an%", ["…an…"]),
        ("LIKE", "a_n%x", ["a…", "…n…", "…x"]),
        ("LIKE", "ann", ["ann"]),
        ("LIKE", "ann%", ["ann…"]),
        ("LIKE", "ann-%", ["ann"]),
        ("LIKE", "%x-ab-%", ["ab", "…x"]),
        ("=", "50%", ["50"]),
        ("=", "a b", ["a", "b"]),
        ("!=", "annex", []),
    ],
)
def test_the_words_of_a_pattern(operator: str, pattern: str, expected: list[str]) -> None:
    shown = {
        f"{'' if fragment.begins else '…'}{fragment.text}{'' if fragment.ends else '…'}"
        for fragment in text_tokens.fragments(operator, pattern)
    }
    assert shown == set(expected)


@pytest.mark.parametrize(
    ("field", "operator", "pattern", "expected"),
    [
        ("tags.t", "ILIKE", "%ANN%", ["has ann"]),
        ("tags.t", "LIKE", "%an%", []),
        ("tags.t", "LIKE", "a%nna%", ["begins a", "has nna"]),
        ("tags.t", "LIKE", "ann", ["is ann"]),
        ("tags.t", "=", "50%", ["is 50%"]),
        ("tags.t", "=", "", []),
        ("tags.t", "ILIKE", "%123%", ["has 123 or number"]),
        ("tags.t", "ILIKE", "%12-3%", ["has 12-,2-3"]),
        ("name", "ILIKE", "%Big-ann%", ["begins ann", "has big"]),
        ("name", "ILIKE", "%-Big-%", ["is big"]),
        ("name", "ILIKE", "%b-1%", ["begins 1"]),
        ("name", "LIKE", "%123", ["has 123 or number"]),
        ("content", "LIKE", "%deadbeef%", []),
        ("content", "LIKE", "%dead_x123z%", ["has 23z,x12"]),
    ],
)
def test_how_a_condition_is_looked_up(
    field: str, operator: str, pattern: str, expected: list[str]
) -> None:
    shown = []
    for lookup in text_lookups.lookups_for(field, operator, pattern):
        if lookup.exact is not None:
            shown.append(f"is {lookup.exact}")
        elif lookup.begin is not None:
            shown.append(f"begins {lookup.begin}")
        else:
            shown.append(f"has {','.join(lookup.trigrams)}{' or number' if lookup.numbers else ''}")
    assert shown == expected


def test_every_match_is_found_by_each_lookup_of_its_pattern() -> None:
    rng = random.Random(1)
    matched = looked_up = 0
    for _ in range(40_000):
        whole = "".join(rng.choices(ALPHABET, k=rng.randrange(9)))
        pattern = _pattern(rng, whole)
        field = rng.choice(("name", "tags.t", "content"))
        for operator, test in (("LIKE", like), ("ILIKE", ilike), ("=", whole.__eq__)):
            if operator == "=":
                pattern = whole
            elif not test(pattern)(whole):  # type: ignore[operator]
                continue
            matched += 1
            held = {token for _, token in text_items.postings_of_text(field, whole)}
            for lookup in text_lookups.lookups_for(field, operator, pattern):
                looked_up += 1
                assert any(found_by(lookup, field, token) for token in held), (pattern, whole)
    assert matched > 40_000
    assert looked_up > 20_000


def _pattern(rng: random.Random, whole: str) -> str:
    """A text with some of its characters replaced by wildcards, and some by the other case."""
    made = []
    for character in whole:
        made.append(rng.choice((character,) * 6 + ("_", "%", character.swapcase(), "")))
    return "".join(made) + rng.choice(("", "", "%"))
