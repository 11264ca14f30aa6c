"""SQL's LIKE and ILIKE on strings: ``%`` matches any text, ``_`` one character.

Patterns have no escapes, except in Kubeflow's filters (:func:`unescape`). As in MLflow on SQLite,
LIKE is case-sensitive and ILIKE ignores the case of ASCII letters only.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LITERALS = {ord("%"): "\ufdd0", ord("_"): "\ufdd1"}
"""Placeholders for an escaped % or _ in a pattern. In a text that is compared with such a pattern,
each % and _ is replaced by the same placeholder. They are noncharacters of Unicode, which texts are
not supposed to contain."""


_FOLD = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def like(pattern: str) -> Callable[[str], bool]:
    """Compiles a LIKE pattern to a function that says whether a text matches. The function takes at
    worst time proportional to (length of text × length of pattern)."""
    if "_" not in pattern:
        pieces = pattern.split("%")
        if len(pieces) == 1:
            return pattern.__eq__
        if len(pieces) == 3 and not pieces[0] and not pieces[2]:
            middle = pieces[1]
            return lambda text: middle in text
        if len(pieces) == 2:
            head, tail = pieces
            least = len(head) + len(tail)
            return lambda text: len(text) >= least and text.startswith(head) and text.endswith(tail)
    return _general(pattern)


def ilike(pattern: str) -> Callable[[str], bool]:
    """Compiles an ILIKE pattern to a function that says whether a text matches, ignoring the case
    of ASCII letters."""
    test = like(fold_ascii_case(pattern))
    return lambda text: test(fold_ascii_case(text))


def fold_ascii_case(text: str) -> str:
    """Returns the text with A to Z in lower case and all other characters unchanged."""
    return text.lower() if text.isascii() else text.translate(_FOLD)


def _general(pattern: str) -> Callable[[str], bool]:
    # The first and the last piece are anchored. For each piece between, the first occurrence is
    # enough.
    pieces = [
        re.compile("".join("." if char == "_" else re.escape(char) for char in piece), re.DOTALL)
        for piece in pattern.split("%")
    ]
    lengths = [len(piece) for piece in pattern.split("%")]
    if len(pieces) == 1:
        whole = pieces[0].fullmatch
        return lambda text: whole(text) is not None
    first, last, tail = pieces[0].match, pieces[-1].fullmatch, lengths[-1]
    middle = [piece.search for piece in pieces[1:-1] if piece.pattern]

    def matches(text: str) -> bool:
        if len(text) < lengths[0] + tail or first(text) is None:
            return False
        end = len(text) - tail
        if last(text, end) is None:
            return False
        position = lengths[0]
        for search in middle:
            occurrence = search(text, position, end)
            if occurrence is None:
                return False
            position = occurrence.end()
        return True

    return matches


def unescape(pattern: str) -> str:
    """Returns the LIKE pattern without backslashes. A wildcard (% or _) after a backslash becomes a
    placeholder, which :func:`with_escapes` matches literally."""
    return re.sub(r"\\(.)", _literal, pattern, flags=re.DOTALL)


def _literal(escaped: re.Match[str]) -> str:
    return _LITERALS.get(ord(escaped[1]), escaped[1])


def with_escapes(
    pattern: str, test_of: Callable[[str], Callable[[str], bool]]
) -> Callable[[str], bool]:
    """Compiles a LIKE pattern from :func:`unescape` to a function that says if a text matches.
    Escaped % and _ match only themselves.

    Args:
        test_of: the operator: :func:`like` or :func:`ilike`.
    """
    test = test_of(pattern)
    if not any(literal in pattern for literal in _LITERALS.values()):
        return test
    return lambda text: test(text.translate(_LITERALS))
