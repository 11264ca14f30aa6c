"""The words of Kubeflow's filter language: text in, tokens out; knows no condition."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search.tokens import MAX_TOKENS

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|--[^\r\n]*)
    | (?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
    | (?P<escaped>`[^`]+`)
    | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<sign>!=|<>|>=|<=|=|<|>)
    | (?P<mark>[(),.])
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = ("AND", "OR", "LIKE", "ILIKE", "IN")


class Token(NamedTuple):
    kind: str
    text: str
    at: int


def refused(why: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"invalid filter query syntax: {why}. Hint: conditions such as name = 'x' are joined by "
        "AND and OR in upper case; texts stand in quotes"
    )


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise refused(f"unexpected {text[position]!r} at {position + 1}")
        if match.lastgroup != "space":
            word = match.group()
            kind = match.lastgroup or ""
            found.append(Token("keyword" if word in _WORDS else kind, word, position + 1))
        position = match.end()
        if len(found) > MAX_TOKENS:
            raise refused("it is too long")
    found.append(Token("end", "the end", len(text) + 1))
    return found
