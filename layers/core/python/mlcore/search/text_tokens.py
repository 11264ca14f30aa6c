"""Splits texts into the tokens of the full-text index, and patterns into the tokens that a matching
text must have.

A text is indexed by its words or as one whole value. A text longer than :data:`MAX_TEXT_CHARACTERS`
has the single token :data:`LONG_TEXT_TOKEN` instead, so every search has to test the texts with
that token as well. Words and values are found by their trigrams (all parts of three characters).
Words and trigrams have their ASCII letters in lower case, as ILIKE compares; so they also find
everything that LIKE matches.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mlcore.search.like import fold_ascii_case

WORD = "word"
VALUE = "value"
TRIGRAM = "trigram"

MAX_CONTENT_CHARACTERS = 100_000
"""Maximum length of the JSON of a trace's spans from one request that is indexed by its words."""
MAX_TEXT_CHARACTERS = 100
"""Maximum length of any other text that is indexed by its words or as a value."""
RULES_VERSION = 2
"""Version of the rules in this module; increase it with each change of them. A search does not use
an index that was made by another version."""

_WILDCARDS = re.compile("[%_]")
_WORDS = re.compile(r"[^\W_]+")
_SIZE = 3
_HEXADECIMAL = frozenset("0123456789abcdef")


class IndexToken(NamedTuple):
    level: str
    text: str


LONG_TEXT_TOKEN = IndexToken(TRIGRAM, "*")
"""The token of each text that is too long to have tokens of its own."""


def index_tokens(text: str, longest: int = MAX_TEXT_CHARACTERS) -> frozenset[IndexToken]:
    """Returns the words and the trigrams of a text as tokens; only LONG_TEXT_TOKEN if the text has
    more than ``longest`` characters."""
    if len(text) > longest:
        return frozenset((LONG_TEXT_TOKEN,))
    plain = fold_ascii_case(text)
    return word_tokens(text, longest) | {
        IndexToken(TRIGRAM, trigram) for trigram in _trigrams(plain)
    }


def word_tokens(text: str, longest: int = MAX_TEXT_CHARACTERS) -> frozenset[IndexToken]:
    if len(text) > longest:
        return frozenset((LONG_TEXT_TOKEN,))
    return frozenset(IndexToken(WORD, word) for word in _WORDS.findall(fold_ascii_case(text)))


def value_token(text: str) -> IndexToken:
    """Returns the token of a text that is indexed as one whole value; LONG_TEXT_TOKEN if the text
    is too long."""
    return LONG_TEXT_TOKEN if len(text) > MAX_TEXT_CHARACTERS else IndexToken(VALUE, text)


def trigrams_of_token(token: IndexToken) -> frozenset[str]:
    """Returns the trigrams by which the full-text index finds a word or value; none for a number.

    Numbers (ids, counters) would have nearly all trigrams of digits, so they are searched as a
    whole or by their beginning.
    """
    if token == LONG_TEXT_TOKEN or is_number(token.text):
        return frozenset()
    return frozenset(_trigrams(fold_ascii_case(token.text)))


def is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def is_indexed_in_contents(trigram: str) -> bool:
    """Returns whether the index of span contents has this trigram. It leaves out trigrams of
    hexadecimal digits: ids and times contain nearly all of them."""
    return not _HEXADECIMAL.issuperset(trigram)


class Fragment(NamedTuple):
    """A piece of the pattern of a LIKE, ILIKE or = condition: every text that matches the pattern
    has a word that equals, begins with, ends with or contains ``text``, as ``begins`` and ``ends``
    say."""

    text: str
    begins: bool
    """Whether the word begins with ``text``."""
    ends: bool
    """Whether the word ends with ``text``."""

    def is_in(self, word: str) -> bool:
        if self.begins:
            return word == self.text if self.ends else word.startswith(self.text)
        return word.endswith(self.text) if self.ends else self.text in word


def fragments(operator: str, pattern: str) -> list[Fragment]:
    """Returns the word fragments that every text matching the pattern contains, longest first, for
    a search in the full-text index. Operators other than ``=``, ``LIKE`` and ``ILIKE`` give none.

    The index has no words of texts that are too long, so the search must test these as well.
    """
    result: set[Fragment] = set()
    pieces = literals(operator, pattern)
    for position, piece in enumerate(pieces):
        plain = fold_ascii_case(piece)
        for match in _WORDS.finditer(plain):
            # A wildcard next to a word may stand for more characters of that word.
            begins = match.start() > 0 or position == 0
            ends = match.end() < len(plain) or position == len(pieces) - 1
            result.add(Fragment(match.group(), begins, ends))
    return sorted(result, key=lambda fragment: (-len(fragment.text), fragment))


def literals(operator: str, pattern: str) -> list[str]:
    """Returns the pieces between the wildcards of a ``LIKE`` or ``ILIKE`` pattern; for ``=`` the
    whole pattern, for other operators none."""
    if operator == "=":
        return [pattern]
    return _WILDCARDS.split(pattern) if operator in ("LIKE", "ILIKE") else []


def pattern_trigrams(operator: str, pattern: str) -> tuple[str, ...]:
    """Returns, sorted, the trigrams that a text must contain to match a filter's pattern (``LIKE``,
    ``ILIKE``, ``=``)."""
    trigrams = (_trigrams(fold_ascii_case(piece)) for piece in literals(operator, pattern))
    return tuple(sorted(set().union(*trigrams)))


def _trigrams(plain: str) -> set[str]:
    return {plain[at : at + _SIZE] for at in range(len(plain) - _SIZE + 1)}
