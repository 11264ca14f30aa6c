"""What full text is made of: tokens of texts, stretches of tokens, and what of them a pattern is
sure to find; knows no item, field or entity.

A text is held by its words, or as it is, as one value; a text longer than a limit
(:data:`LONGEST_TEXT`) by :data:`LONG` alone: whoever looks for any token must look at the texts of
``LONG`` as well. Words and values are found by all their stretches of three characters. Letters A
to Z count as a to z there, no others, which is how ILIKE compares; so what LIKE finds is found,
too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mlcore.search.like import folded

WORD = "word"
VALUE = "value"
TRIGRAM = "trigram"

LONGEST_CONTENT = 100_000
"""Characters of a trace's spans that came together."""
LONGEST_TEXT = 100
"""Characters."""
RULES = 2
"""The number of these rules. An index made by others must not be trusted; change it with them."""

_WILDCARDS = re.compile("[%_]")
_WORDS = re.compile(r"[^\W_]+")
_SIZE = 3
_HEXADECIMAL = frozenset("0123456789abcdef")


class Token(NamedTuple):
    level: str
    text: str


LONG = Token(TRIGRAM, "*")
"""Of a text that is too long to have its own."""


def tokens(text: str, longest: int = LONGEST_TEXT) -> frozenset[Token]:
    """The words of a text and all its stretches."""
    if len(text) > longest:
        return frozenset((LONG,))
    plain = folded(text)
    return words(text, longest) | {Token(TRIGRAM, stretch) for stretch in _trigrams(plain)}


def words(text: str, longest: int = LONGEST_TEXT) -> frozenset[Token]:
    if len(text) > longest:
        return frozenset((LONG,))
    return frozenset(Token(WORD, word) for word in _WORDS.findall(folded(text)))


def value(text: str) -> Token:
    """The text as it is."""
    return LONG if len(text) > LONGEST_TEXT else Token(VALUE, text)


def stretches(token: Token) -> frozenset[str]:
    """By which a word or a value is found. A number has none: ids and counters have nearly all of
    them, and are looked for as they are or by what they begin with."""
    if token == LONG or is_number(token.text):
        return frozenset()
    return frozenset(_trigrams(folded(token.text)))


def is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def in_contents(stretch: str) -> bool:
    """Whether words in contents of spans are found by a stretch. Those of digits are not: ids and
    times have nearly all of them."""
    return not _HEXADECIMAL.issuperset(stretch)


class Fragment(NamedTuple):
    """A word that a pattern finds, or a part of one."""

    text: str
    begins: bool
    """The word begins with it."""
    ends: bool
    """The word ends with it."""

    def is_in(self, word: str) -> bool:
        if self.begins:
            return word == self.text if self.ends else word.startswith(self.text)
        return word.endswith(self.text) if self.ends else self.text in word


def fragments(operator: str, pattern: str) -> list[Fragment]:
    """Every text, but those of :data:`LONG`, that ``operator`` (``=``, ``LIKE``, ``ILIKE``) accepts
    has a word for each; none for any other operator. Longest first."""
    found: set[Fragment] = set()
    pieces = literals(operator, pattern)
    for position, piece in enumerate(pieces):
        plain = folded(piece)
        for match in _WORDS.finditer(plain):
            # A wildcard beside a word may stand for more of it.
            begins = match.start() > 0 or position == 0
            ends = match.end() < len(plain) or position == len(pieces) - 1
            found.add(Fragment(match.group(), begins, ends))
    return sorted(found, key=lambda one: (-len(one.text), one))


def literals(operator: str, pattern: str) -> list[str]:
    """The pieces of a pattern between its wildcards."""
    if operator == "=":
        return [pattern]
    return _WILDCARDS.split(pattern) if operator in ("LIKE", "ILIKE") else []


def pattern_stretches(operator: str, pattern: str) -> tuple[str, ...]:
    """Stretches of every text that ``operator`` accepts."""
    found = (_trigrams(folded(piece)) for piece in literals(operator, pattern))
    return tuple(sorted(set().union(*found)))


def _trigrams(plain: str) -> set[str]:
    return {plain[at : at + _SIZE] for at in range(len(plain) - _SIZE + 1)}
