"""How a condition on a text is looked up in full text; knows no key and no table.

Names of entities and what spans hold are looked for by their words, all other texts as whole
values. A lookup names *at least* every text that meets the condition, but those of
:data:`mlcore.search.text.LONG`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from mlcore.search import text, text_fields
from mlcore.search.fields import TAG
from mlcore.search.grammar import Comparison
from mlcore.search.match import value_test
from mlcore.search.text import VALUE, WORD, Fragment

MOST = 3
"""Lookups of one condition, which are begun side by side."""


class Lookup(NamedTuple):
    level: str
    condition: Fragment | Comparison
    """What a word or a value has to meet."""
    exact: str | None = None
    """It is this one."""
    begin: str | None = None
    """It begins so."""
    stretches: tuple[str, ...] = ()
    """It has all of these, or is a number."""
    numbers: bool = False
    """It may be a number, which has no stretches."""

    def test(self) -> Callable[[str], bool]:
        """Whether a word or a value meets the condition."""
        condition = self.condition
        return condition.is_in if isinstance(condition, Fragment) else value_test(condition)


def of(field: str, operator: str, pattern: str) -> tuple[Lookup, ...]:
    """Each of them is enough; none if nothing is sure to be found."""
    made = _by_words if text_fields.has_words(field) else _by_value
    return tuple(made(field, operator, pattern))[:MOST]


def _by_words(field: str, operator: str, pattern: str) -> Iterator[Lookup]:
    found = text.fragments(operator, pattern)
    for fragment in found:
        if fragment.begins and fragment.ends:
            yield Lookup(WORD, fragment, exact=fragment.text)
    for fragment in found:
        if fragment.begins and not fragment.ends:
            yield Lookup(WORD, fragment, begin=fragment.text)
        elif not fragment.begins:
            yield from _within(field, fragment)


def _within(field: str, fragment: Fragment) -> Iterator[Lookup]:
    asked = text.pattern_stretches("=", fragment.text)
    if field == text_fields.CONTENT:
        asked = tuple(filter(text.in_contents, asked))
    if asked:
        numbers = text.is_number(fragment.text)
        yield Lookup(WORD, fragment, stretches=asked, numbers=numbers)


def _by_value(field: str, operator: str, pattern: str) -> Iterator[Lookup]:
    pieces = text.literals(operator, pattern)
    if not pieces or not pattern:  # an empty text is not held
        return
    condition = Comparison(TAG, field, operator, pattern)
    if operator == "=" or (operator == "LIKE" and len(pieces) == 1):
        yield Lookup(VALUE, condition, exact=pattern)
        return
    if operator == "LIKE" and pieces[0]:
        yield Lookup(VALUE, condition, begin=pieces[0])
    asked = text.pattern_stretches(operator, pattern)
    if asked:
        numbers = all(text.is_number(piece) for piece in pieces if piece)
        yield Lookup(VALUE, condition, stretches=asked, numbers=numbers)
