"""RLIKE finds what Python's engine finds, and takes its time for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.errors import InvalidParameterValue
from mlcore.search import rlike

CHARACTERS = (
    "a",
    "b",
    "A",
    "é",
    "_",
    " ",
    r"\n",
    ".",
    r"\w",
    r"\W",
    r"\d",
    "[ab]",
    "[^a]",
    "[A-Z]",
)
ANCHORS = ("^", "$", r"\b", r"\B", r"\A", r"\Z")
FLAGS = ("", "(?i)", "(?m)", "(?s)", "(?a)", "(?im)")


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeats = st.sampled_from(("*", "+", "?", "{2}", "{1,3}", "{0,2}?", "*?", "{2,}"))
    # Python's engine leaves a repeated part as soon as it is empty, with results of its own.
    filled = st.sampled_from(CHARACTERS).flatmap(
        lambda one: parts.map(lambda rest: f"(?:{one}{rest}|{one})")
    )
    return st.one_of(
        st.tuples(parts, parts).map("".join),
        st.tuples(parts, parts).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(filled, repeats).map("".join),
        st.tuples(st.sampled_from(CHARACTERS), repeats).map("".join),
        parts.map("(?={})".format),
        parts.map("(?!{})".format),
        st.sampled_from(CHARACTERS).map("(?<={})".format),
        st.sampled_from(CHARACTERS).map("(?<!{})".format),
        parts.map("(?i:{})".format),
        parts.map("(?-i:{})".format),
    )


EXPRESSIONS = st.recursive(st.sampled_from((*CHARACTERS, *ANCHORS)), joined, max_leaves=8)
TEXTS = st.text("aabAé_ \n1ß", max_size=12)


@pytest.fixture(scope="module", autouse=True)
def all_at_once() -> Iterator[None]:
    """Python's engine is asked about nothing that is known without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rlike, "CHEAP_WAYS", 0)
        yield


@given(flags=st.sampled_from(FLAGS), expression=EXPRESSIONS, texts=st.lists(TEXTS, max_size=4))
@settings(max_examples=300, deadline=None)
def test_it_finds_what_python_finds(flags: str, expression: str, texts: list[str]) -> None:
    test, search = (
        rlike.test(flags + expression, rlike.Budget()),
        re.compile(flags + expression).search,
    )
    for text in texts:
        assert test(text) is (search(text) is not None), (flags + expression, text)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (r"(a+)+$", False),
        (r"^(a|aa)+$", False),
        (r"(.*)*x", False),
        (r"(a|a)*(a|a)*b", True),
        (r"^(?!.*(a+)+c).*b", True),
        (r"(?<=a)b(?:.|\n)*$", True),
        (r"a?" * 40 + "a" * 40, True),
        (r"(a*?)*?b.{3}", False),
        (r"^a{1000000}", False),
        (r"(?:a{2,}){2,}b", True),
    ],
)
def test_what_takes_python_for_ever_is_answered(expression: str, wanted: bool) -> None:
    assert rlike.test(expression, rlike.Budget())("a" * 5_000 + "b") is wanted


@pytest.mark.parametrize("expression", [r"(a+)+\1b", r"(?>a*)*b", "(a|" + "b|" * 600 + "c)+"])
def test_what_would_take_too_long_is_refused(expression: str) -> None:
    assert rlike.test(expression, rlike.Budget())("ac") in (True, False)
    with pytest.raises(InvalidParameterValue, match="too long"):
        rlike.test(expression, rlike.Budget())("a" * 5_000 + "c")


def test_what_is_no_expression_matches_nothing() -> None:
    for expression in ("[", "(?P<a", "a{3,1}", "(" * 5_000):
        assert not rlike.test(expression, rlike.Budget())("a")


def test_all_texts_of_a_search_share_what_it_may_take() -> None:
    """Whichever engine answers, and however many conditions there are."""
    budget = rlike.Budget()
    tests = [rlike.test("(a+)+$", budget), rlike.test(r"(a)b\1", budget)]
    spent = []
    for test in tests:
        left = budget.left
        test("a" * 100 + "b")
        spent.append(left - budget.left)
    assert all(steps > 0 for steps in spent)
    budget.left = spent[0] + spent[1] // 2
    tests[0]("a" * 100 + "b")
    with pytest.raises(InvalidParameterValue, match="so many texts"):
        tests[1]("a" * 100 + "b")
    assert rlike.test("(a+)+$", rlike.Budget())("a" * 100)
