"""Tokens of a text and the tokens that a pattern is sure to find; owns what full text is made of
and knows no item, field or entity.

A text has two levels of tokens: its words, and all its stretches of three characters. Letters A to
Z count as a to z, no others, which is how ILIKE compares; so what LIKE finds is found, too. A
pattern guarantees the tokens of its literal pieces: each text that matches has them all. So the
texts of *any one* of a pattern's tokens hold every match, and more.

A text longer than a limit (:data:`LONGEST_TEXT`) has the one token :data:`LONG` in place of its
own: whoever looks for any token must look at the texts of ``LONG`` as well. A pattern without a
token (a piece shorter than three characters and no whole word) can be answered by looking at all
texts only.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mlcore.search.like import folded

WORD = "word"
TRIGRAM = "trigram"

LONGEST_CONTENT = 100_000
"""Characters of a trace's spans that came together."""
LONGEST_TEXT = 100
"""Characters."""
RULES = 1
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
    """All tokens of a text, which an index has one entry for each of."""
    if len(text) > longest:
        return frozenset((LONG,))
    plain = folded(text)
    words = {Token(WORD, word) for word in _WORDS.findall(plain)}
    return frozenset(words | _trigrams(plain))


def content_tokens(content: str) -> frozenset[Token]:
    """The tokens of what spans hold, which is JSON: as :func:`tokens`, but with another limit and
    without those of :func:`in_contents`."""
    return frozenset(filter(in_contents, tokens(content, LONGEST_CONTENT)))


def in_contents(token: Token) -> bool:
    """Whether contents of spans are looked for by a token. Stretches of digits are not: ids and
    times have nearly all of them."""
    return token == LONG or token.level == WORD or not _HEXADECIMAL.issuperset(token.text)


def guaranteed(operator: str, pattern: str) -> tuple[Token, ...]:
    """The tokens of every text, but those of :data:`LONG`, that ``operator`` (``=``, ``LIKE``,
    ``ILIKE``) accepts; those that are likely to be rare first, and none for any other operator."""
    if operator == "=":
        pieces = [pattern]
    elif operator in ("LIKE", "ILIKE"):
        pieces = _WILDCARDS.split(pattern)
    else:
        return ()
    found: set[Token] = set()
    for position, piece in enumerate(pieces):
        plain = folded(piece)
        found |= _trigrams(plain)
        for match in _WORDS.finditer(plain):
            # A wildcard beside a word may stand for more of it.
            begins = match.start() > 0 or position == 0
            ends = match.end() < len(plain) or position == len(pieces) - 1
            if begins and ends:
                found.add(Token(WORD, match.group()))
    # Long words, then trigrams, then words that are no rarer than a trigram.
    return tuple(sorted(found, key=lambda token: (-_promise(token), token.text)))


def _trigrams(plain: str) -> set[Token]:
    return {Token(TRIGRAM, plain[at : at + _SIZE]) for at in range(len(plain) - _SIZE + 1)}


def _promise(token: Token) -> float:
    return len(token.text) + (0.5 if token.level == WORD else 0.0)
