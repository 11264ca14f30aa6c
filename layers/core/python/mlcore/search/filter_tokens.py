"""The tokenizer of MLflow's filter language. It does not interpret the tokens.

MLflow reads filters with a SQL lexer, so the lexical rules here are SQL's: what is a number, a
quoted text or a word decides whether a filter is accepted, down to ``metrics.3d`` being a key and
``metrics.12d`` not.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search.sql_words import SQL_WORDS

SPACE = "space"
NAME = "name"
SYMBOL = "symbol"
STRING = "string"
INTEGER = "integer"
FLOAT = "float"
HEXADECIMAL = "hexadecimal"
COMPARISON = "comparison"
ARITHMETIC = "arithmetic"
WILDCARD = "wildcard"
KEYWORD = "keyword"
ORDER = "order"
PLACEHOLDER = "placeholder"
OTHER = "other"

# More tokens than this (a space counts) are refused: the limit of MLflow's parser, which also
# bounds our work.
MAX_TOKENS = 10_000

MAX_CHARACTERS = 500_000
"""Maximum length of a filter; a list with as many values as MAX_TOKENS allows still fits."""

_LETTER = "A-ZÀ-Ü"

# The order matters: the first alternative that matches wins.
_TOKEN = re.compile(
    rf"""
      (?P<other>(?:--|\#\ ).*?(?:\r\n|\r|\n|$))                      # comments: always refused
    | (?P<space>\r\n|\s)
    | (?P<wildcard>\*)
    | (?P<name>`(?:``|[^`])*` | ´(?:´´|[^´])*´)
    | (?P<placeholder>\? | %(?:\(\w+\))?s | (?<!\w)[$:]\w+)
    | (?P<command>\\\w+)
    | (?P<keyword>(?:CASE|IN|VALUES|USING|FROM|AS)\b)
    | (?P<word>[@\#]\#?[{_LETTER}]\w+
        | [{_LETTER}]\w*(?=\s*\.(?!\d))                              # even a keyword is a name
        | (?<=\.)[{_LETTER}]\w*                                      # before and after a dot
        | [{_LETTER}]\w*(?=\())
    | (?P<hexadecimal>-?0x[\dA-F]+)
    | (?P<float>-?\d+(?:\.\d+)?E-?\d+ | (?![_{_LETTER}])-?(?:\d+\.\d*|\.\d+)(?![_{_LETTER}]))
    | (?P<integer>-?\d+(?![_{_LETTER}]))
    | (?P<string>'(?:''|\\'|[^'])*')
    | (?P<symbol>"(?:""|\\"|[^"])*")
    | (?P<bracketed>(?<![\w\])])\[[^\]\[]+\])
    | (?P<not_null>NOT\s+NULL\b)
    | (?P<order>(?:ASC|DESC)(?:\s+NULLS\s+(?:FIRST|LAST))?\b)
    | (?P<comparison>(?:NOT\s+)?(?:LIKE|ILIKE|RLIKE)\b | (?:NOT\s+)?REGEXP(?:\s+BINARY)?\b)
    | (?P<bare>\w[$\#\w]*)
    | (?P<punctuation>[;:()\[\],.])
    | (?P<arrow>->>?|\#>>?|@>|<@|-|\#-)
    | (?P<sign>[<>=~!]+)
    | (?P<arithmetic>[+/@\#%^&|]+)
    """,
    re.IGNORECASE | re.VERBOSE,
)

_KINDS = {
    "command": OTHER,
    "word": NAME,
    "bracketed": NAME,
    "not_null": KEYWORD,
    "arrow": ARITHMETIC,
    "sign": COMPARISON,
}


class Token(NamedTuple):
    """The part ``text[start:end]`` of a filter; ``word`` is that text, in upper case if it is a
    keyword."""

    kind: str
    word: str
    start: int
    end: int


def check_length(text: str) -> None:
    """Checks that a search's filter string has at most MAX_CHARACTERS characters. Raises
    InvalidParameterValue otherwise."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidParameterValue(
            f"The filter string has {len(text)} characters; at most {MAX_CHARACTERS} are allowed."
        )


def tokenize(text: str) -> list[Token]:
    """Splits a filter into tokens, spaces included. A character that no rule matches becomes one
    OTHER token.

    At most ``MAX_TOKENS + 1`` tokens are returned, so that the caller can recognize a filter with
    too many.
    """
    tokens: list[Token] = []
    position, length = 0, len(text)
    match = _TOKEN.match
    while position < length and len(tokens) <= MAX_TOKENS:
        matched = match(text, position)
        if matched is None or matched.end() == position:
            end, kind = position + 1, OTHER
            word = text[position]
        else:
            end = matched.end()
            name = matched.lastgroup or OTHER
            word = matched.group()
            kind = _KINDS.get(name, name)
            if name == "bare":
                kind = KEYWORD if word.upper() in SQL_WORDS else NAME
            if kind == KEYWORD:
                word = word.upper()
        tokens.append(Token(kind, word, position, end))
        position = end
    return tokens
