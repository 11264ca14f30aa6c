"""Splits ``filterQuery``, the filter language of Kubeflow's model registry, into tokens."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search.filter_tokens import MAX_TOKENS

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


class KubeflowToken(NamedTuple):
    kind: str
    text: str
    at: int
    """Position in the filter, from 1."""


def syntax_error(why: str) -> InvalidParameterValue:
    """Returns the error to raise for a malformed Kubeflow filter; the message includes ``why``."""
    return InvalidParameterValue(
        f"invalid filter query syntax: {why}. Hint: conditions such as name = 'x' are joined by "
        "AND and OR in upper case; texts stand in quotes"
    )


def tokenize(text: str) -> list[KubeflowToken]:
    """Splits a filter of Kubeflow's API into tokens, without spaces and comments. A token of kind
    ``end`` follows the last.

    Raises InvalidParameterValue for an unknown character and for too many tokens.
    """
    tokens: list[KubeflowToken] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise syntax_error(f"unexpected {text[position]!r} at {position + 1}")
        if match.lastgroup != "space":
            word = match.group()
            kind = match.lastgroup or ""
            tokens.append(KubeflowToken("keyword" if word in _WORDS else kind, word, position + 1))
        position = match.end()
        if len(tokens) > MAX_TOKENS:
            raise syntax_error("it is too long")
    tokens.append(KubeflowToken("end", "the end", len(text) + 1))
    return tokens
