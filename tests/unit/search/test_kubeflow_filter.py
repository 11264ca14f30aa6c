"""Kubeflow's filters against a second reading of what they mean: the tree that they are made of."""

from __future__ import annotations

import contextlib
import fnmatch
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mlcore.errors import InvalidParameterValue
from mlcore.search import kubeflow_filter
from mlcore.search.kubeflow_filter import BOOL, DOUBLE, INT, TEXT, PropertySource

KNOWN = {"name": TEXT, "id": INT, "score": DOUBLE}


class Thing(NamedTuple):
    known: dict[str, Any]
    custom: dict[str, tuple[str, Any]]


SOURCE = PropertySource(
    KNOWN,
    lambda thing, name: thing.known.get(name),
    lambda thing, name: thing.custom.get(name),
)

WORDS = st.sampled_from(["a", "b", "A", "", "a'b", 'x"y', "back\\slash", "é", "1", "a%b", "a_b"])
INTS = st.integers(-3, 3)
FLOATS = st.sampled_from([-1.5, 0.0, 1.0, 2.5, 1e-5, 3e10])
LITERALS = WORDS | INTS | FLOATS | st.booleans()
TYPED = st.one_of(
    WORDS.map(lambda value: (TEXT, value)),
    INTS.map(lambda value: (INT, value)),
    FLOATS.map(lambda value: (DOUBLE, value)),
    st.booleans().map(lambda value: (BOOL, value)),
)
THINGS = st.builds(
    Thing,
    st.fixed_dictionaries({}, optional={"name": WORDS, "id": INTS, "score": FLOATS}),
    st.dictionaries(st.sampled_from(["p", "q", "a.b", "to do"]), TYPED, max_size=3),
)
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Filter(NamedTuple):
    text: str
    holds: Callable[[Thing], bool]


def shown(value: Any, quote: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    return quote + re.sub(rf"([\\{quote}])", r"\\\1", value) + quote


def types_of(value: Any) -> set[str]:
    if isinstance(value, bool):
        return {BOOL}
    if isinstance(value, int):
        return {INT, DOUBLE}
    return {DOUBLE} if isinstance(value, float) else {TEXT}


@st.composite
def conditions(draw: st.DrawFn) -> Filter:
    """Of a custom property, whose type decides whether it is compared at all."""
    name = draw(st.sampled_from(["p", "q", "a.b", "to do", "missing"]))
    written = f"`{name}`" if " " in name or draw(st.booleans()) else name
    value = draw(LITERALS)
    quote = draw(st.sampled_from("'\""))
    suffix = draw(st.sampled_from(["", *sorted(types_of(value))]))
    types = {suffix} if suffix else types_of(value)
    # Neither of true and false is the greater.
    signs = ("=", "!=", "<>") if isinstance(value, bool) else sorted(SIGNS)
    sign = draw(st.sampled_from(signs))
    text = f"{written}{'.' * bool(suffix)}{suffix} {sign} {shown(value, quote)}"

    def holds(thing: Thing) -> bool:
        kind, there = thing.custom.get(name, ("", None))
        return kind in types and SIGNS[sign](there, value)

    return Filter(text, holds)


@st.composite
def own_conditions(draw: st.DrawFn) -> Filter:
    name = draw(st.sampled_from(sorted(KNOWN)))
    value: Any = draw({"name": WORDS, "id": INTS, "score": FLOATS | INTS}[name])
    if draw(st.booleans()):
        others = draw(st.lists({"name": WORDS, "id": INTS, "score": FLOATS}[name], max_size=3))
        members = ", ".join(shown(member, "'") for member in others)
        return Filter(f"{name} IN ({members})", lambda thing: thing.known.get(name) in others)
    sign = draw(st.sampled_from(sorted(SIGNS)))
    text = f"{name}{sign}{shown(value, chr(39))}"
    return Filter(text, lambda thing: name in thing.known and SIGNS[sign](thing.known[name], value))


def joined(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    several = st.lists(inner, min_size=1, max_size=3)
    both = several.map(
        lambda filters: Filter(
            " AND ".join(f"({each.text})" for each in filters),
            lambda thing: all(each.holds(thing) for each in filters),
        )
    )
    either = several.map(
        lambda filters: Filter(
            " OR ".join(f"({each.text})" for each in filters),
            lambda thing: any(each.holds(thing) for each in filters),
        )
    )
    return both | either


FILTERS = st.recursive(conditions() | own_conditions(), joined, max_leaves=5)


@given(FILTERS, st.lists(THINGS, max_size=4))
def test_a_filter_means_what_it_is_made_of(made: Filter, things: list[Thing]) -> None:
    test = kubeflow_filter.parse_test(f" {made.text} -- and so on", SOURCE)
    assert [bool(test(thing)) for thing in things] == [made.holds(thing) for thing in things]


@given(st.lists(conditions(), min_size=3, max_size=3), THINGS)
def test_and_binds_closer_than_or(filters: list[Filter], thing: Thing) -> None:
    first, second, third = filters
    text = f"{first.text} OR {second.text} AND {third.text}"
    expected = first.holds(thing) or (second.holds(thing) and third.holds(thing))
    assert kubeflow_filter.parse_test(text, SOURCE)(thing) == expected


@given(st.text("ab%_", max_size=6), st.text("abAB", max_size=6), st.booleans())
def test_patterns(pattern: str, text: str, folded: bool) -> None:
    word = "ILIKE" if folded else "LIKE"
    test = kubeflow_filter.parse_test(f"p {word} '{pattern}'", SOURCE)
    glob = pattern.replace("%", "*").replace("_", "?")
    subject, wanted = (text.lower(), glob.lower()) if folded else (text, glob)
    assert test(Thing({}, {"p": (TEXT, text)})) == fnmatch.fnmatchcase(subject, wanted)


@given(st.text(max_size=30))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidParameterValue):
        kubeflow_filter.parse_test(text, SOURCE)(Thing({"name": "a"}, {"p": (INT, 1)}))


@pytest.mark.parametrize(
    "text",
    [
        *("name", "name =", "= 'a'", "name = 'a' AND", "(name = 'a'", "name = 'a')", "name = a"),
        *("name IN 'a'", "name IN ('a'", "name IN ('a',)", "name like 'a'", "name = 'a' or id = 1"),
        *("NOT name = 'a'", "name BETWEEN 1 AND 2", "name IS NULL", "name == 'a'", "name = 'a"),
        *("id = 'x'", "id = true", "name = 1", "score = 'x'", "p.int_value = 'x'"),
        *(
            "p.bool_value = 1",
            "p < true",
            "p.string_value = 1.5",
            "p.double_value IN (1, 'x')",
            "id = " + "9" * 30,
        ),
        *("(" * 200 + "id = 1" + ")" * 200, " AND ".join(["id = 1"] * 5_000)),
    ],
)
def test_what_is_no_filter(text: str) -> None:
    with pytest.raises(InvalidParameterValue):
        kubeflow_filter.parse_test(text, SOURCE)


def test_a_number_in_a_text_is_one_for_a_number() -> None:
    """As clients ask for ids."""
    thing = Thing({"id": 3}, {"p": (INT, 3)})
    for text in ("id IN ('3', '5')", "id = '3'", "p.int_value = '3'"):
        assert kubeflow_filter.parse_test(text, SOURCE)(thing), text
    assert kubeflow_filter.parse_test("", SOURCE)(thing)
    assert kubeflow_filter.parse_test(" \n", SOURCE)(thing)
    assert not kubeflow_filter.parse_test("id IN ()", SOURCE)(thing)
