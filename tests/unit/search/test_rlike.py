"""RLIKE matches what ``re`` matches, in bounded time."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.errors import InvalidParameterValue
from mlcore.search import rlike
from tests.examples import number_of

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
    # `re` leaves a repeated part as soon as it matches nothing, with results of its own.
    filled = st.sampled_from(CHARACTERS).flatmap(
        lambda first: parts.map(lambda rest: f"(?:{first}{rest}|{first})")
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
# In an empty text `regex` and `re` differ about \B.
TEXTS = st.text("aabAé_ \n1ß", min_size=1, max_size=12)


@given(flags=st.sampled_from(FLAGS), expression=EXPRESSIONS, texts=st.lists(TEXTS, max_size=4))
@settings(max_examples=number_of(300), deadline=None)
def test_it_matches_what_re_matches(flags: str, expression: str, texts: list[str]) -> None:
    budget = rlike.TimeBudget()
    matches = rlike.matcher(flags + expression, budget)
    search = re.compile(flags + expression).search
    for text in texts:
        assert matches(text) is (search(text) is not None), (flags + expression, text)


@pytest.mark.parametrize(
    ("expression", "text", "matched"),
    [
        ("a{e<=1}", "b", False),
        ("a{e<=1}", "a{e<=1}", True),
        ("[a[b]", "[", True),
        ("[]a]", "]", True),
        (r"[\]\[]x", "[x", True),
        (r"\N{LATIN SMALL LETTER A}{2}", "aa", True),
        ("a{,2}b", "aab", True),
    ],
)
def test_extensions_of_the_package_are_not_syntax(
    expression: str, text: str, matched: bool
) -> None:
    assert (re.search(expression, text) is not None) is matched
    assert rlike.matcher(expression, rlike.TimeBudget())(text) is matched


def test_posix_classes_are_plain_sets_as_in_re() -> None:
    with pytest.warns(FutureWarning, match="nested set"):
        matches = rlike.matcher("[[:alpha:]]", rlike.TimeBudget())
    assert matches("a]")
    assert not matches("z")


@pytest.mark.parametrize(
    ("expression", "matched"),
    [
        (r"(.*)*x", False),
        (r"(a|a)*(a|a)*b", True),
        (r"(?<=a)b(?:.|\n)*$", True),
        (r"a?" * 40 + "a" * 40, True),
        (r"(?:a{2,}){2,}b", True),
        (r"(?>a*)*b", True),
    ],
)
def test_many_expressions_that_re_never_finishes_are_answered(
    expression: str, matched: bool
) -> None:
    assert rlike.matcher(expression, rlike.TimeBudget())("a" * 5_000 + "b") is matched


@pytest.mark.parametrize("expression", [r"(a+)+$", r"^(a|aa)+$", r"(a*?)*?b.{3}"])
def test_an_expression_that_takes_too_long_on_a_text_is_refused(expression: str) -> None:
    matches = rlike.matcher(expression, rlike.TimeBudget())
    assert matches("ac") in (True, False)
    started = time.process_time()
    with pytest.raises(InvalidParameterValue, match="seconds on one text"):
        matches("a" * 5_000 + "bc")
    assert time.process_time() - started < 10 * rlike.MATCH_SECONDS


@pytest.mark.parametrize(
    "expression",
    [
        *("^a{1000000}", "(?:a{1000}){1000}", "(?:a{1000,}){1000}"),
        *("a" * (rlike.MAX_CHARACTERS + 1), f"[{{{'9' * 4_900}}}]"),
    ],
)
def test_an_expression_that_takes_too_long_to_compile_is_refused(expression: str) -> None:
    with pytest.raises(InvalidParameterValue):
        rlike.matcher(expression, rlike.TimeBudget())


@pytest.mark.parametrize(
    "expression", [r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "a{0,1000000}b"]
)
def test_counts_of_usual_size_are_answered(expression: str) -> None:
    assert not rlike.matcher(expression, rlike.TimeBudget())("z")


@pytest.mark.parametrize(
    "expression",
    ["[", "(?P<a", "a{3,1}", "(" * 4_000, r"\p{L}", "(?R)", f"a{{{'9' * 4_900}}}"],
)
def test_an_expression_that_re_cannot_compile_matches_nothing(expression: str) -> None:
    assert not rlike.matcher(expression, rlike.TimeBudget())("a")


def test_all_expressions_of_a_search_share_one_budget() -> None:
    budget = rlike.TimeBudget()
    matchers = [rlike.matcher("a+$", budget), rlike.matcher(r"(a)b\1", budget)]
    for matches in matchers:
        left = budget.seconds_left
        matches("a" * 100 + "b")
        assert budget.seconds_left < left
    budget.seconds_left = 0
    for matches in matchers:
        with pytest.raises(InvalidParameterValue, match="more than 5 seconds"):
            matches("a")
    with pytest.raises(InvalidParameterValue, match="more than 5 seconds"):
        rlike.matcher("b", budget)


def test_the_package_is_imported_by_a_filter_with_rlike_only() -> None:
    code = "import sys, mlcore.search.trace_match; sys.exit('regex' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
