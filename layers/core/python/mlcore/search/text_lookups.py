"""Turns a condition on a text (``tags.team LIKE 'a%'``) into lookups in the full-text index.

Names of entities and contents of spans are indexed by word, all other texts as whole values. A
lookup finds *at least* every indexed text that meets the condition. In addition, the search must
test all texts that are too long to be indexed (:data:`mlcore.search.text_tokens.LONG_TEXT_TOKEN`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from mlcore.search import text_fields, text_tokens
from mlcore.search.fields import TAG
from mlcore.search.grammar import Comparison
from mlcore.search.match import value_test
from mlcore.search.text_tokens import VALUE, WORD, Fragment

MAX_LOOKUPS = 3
"""Maximum number of lookups for one condition; they run in parallel."""


class FullTextLookup(NamedTuple):
    """A search in the full-text index for the words or whole values (as ``level`` says) that meet a
    condition. They are found by the exact text, by its beginning, or by trigrams."""

    level: str
    condition: Fragment | Comparison
    """The condition that a word or value must meet."""
    exact: str | None = None
    """The word or value equals this text."""
    begin: str | None = None
    """The word or value begins with this text."""
    trigrams: tuple[str, ...] = ()
    """The word or value contains all of these trigrams, or is a number."""
    numbers: bool = False
    """Whether the word or value may be a number; numbers have no trigrams in the index."""

    def test(self) -> Callable[[str], bool]:
        """Returns a function that says whether a word or value found in the full-text index meets
        the search's condition."""
        condition = self.condition
        return condition.is_in if isinstance(condition, Fragment) else value_test(condition)


def lookups_for(field: str, operator: str, pattern: str) -> tuple[FullTextLookup, ...]:
    """Returns up to ``MAX_LOOKUPS`` lookups in the full-text index for a condition on a field. Each
    lookup alone finds all matches, so the search may use any of them. An empty tuple means that the
    index cannot answer the condition."""
    made = _by_words if text_fields.has_words(field) else _by_value
    return tuple(made(field, operator, pattern))[:MAX_LOOKUPS]


def _by_words(field: str, operator: str, pattern: str) -> Iterator[FullTextLookup]:
    fragments = text_tokens.fragments(operator, pattern)
    for fragment in fragments:
        if fragment.begins and fragment.ends:
            yield FullTextLookup(WORD, fragment, exact=fragment.text)
    for fragment in fragments:
        if fragment.begins and not fragment.ends:
            yield FullTextLookup(WORD, fragment, begin=fragment.text)
        elif not fragment.begins:
            yield from _by_trigrams(field, fragment)


def _by_trigrams(field: str, fragment: Fragment) -> Iterator[FullTextLookup]:
    trigrams = text_tokens.pattern_trigrams("=", fragment.text)
    if field == text_fields.CONTENT:
        trigrams = tuple(filter(text_tokens.is_indexed_in_contents, trigrams))
    if trigrams:
        numbers = text_tokens.is_number(fragment.text)
        yield FullTextLookup(WORD, fragment, trigrams=trigrams, numbers=numbers)


def _by_value(field: str, operator: str, pattern: str) -> Iterator[FullTextLookup]:
    pieces = text_tokens.literals(operator, pattern)
    if not pieces or not pattern:  # the index has no empty texts
        return
    condition = Comparison(TAG, field, operator, pattern)
    if operator == "=" or (operator == "LIKE" and len(pieces) == 1):
        yield FullTextLookup(VALUE, condition, exact=pattern)
        return
    if operator == "LIKE" and pieces[0]:
        yield FullTextLookup(VALUE, condition, begin=pieces[0])
    trigrams = text_tokens.pattern_trigrams(operator, pattern)
    if trigrams:
        numbers = all(text_tokens.is_number(piece) for piece in pieces if piece)
        yield FullTextLookup(VALUE, condition, trigrams=trigrams, numbers=numbers)
