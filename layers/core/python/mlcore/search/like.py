"""SQL's LIKE over plain strings: ``%`` is any text, ``_`` one character; owns only that. Nothing is
escaped, but in Kubeflow's filters (:func:`unescaped`).

MLflow on SQLite compares case-sensitively for LIKE and folds ASCII letters, no others, for ILIKE.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LITERALS = {ord("%"): "\ufdd0", ord("_"): "\ufdd1"}
"""What stands for an escaped % or _ of a pattern, and for each in the texts that are compared with
such a pattern; these code points are no characters."""


_FOLD = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def like(pattern: str) -> Callable[[str], bool]:
    """The test of one pattern; its time is text times pattern at worst, never exponential."""
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
    """Like :func:`like`, with A to Z equal to a to z."""
    test = like(folded(pattern))
    return lambda text: test(folded(text))


def folded(text: str) -> str:
    """What ILIKE compares: A to Z as a to z, each character in its place."""
    return text.lower() if text.isascii() else text.translate(_FOLD)


def _general(pattern: str) -> Callable[[str], bool]:
    # The first and the last piece are anchored; each other piece may be taken where it is found
    # first.
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
            found = search(text, position, end)
            if found is None:
                return False
            position = found.end()
        return True

    return matches


def unescaped(pattern: str) -> str:
    """A pattern without the backslashes that escape its characters, for :func:`matching`."""
    return re.sub(r"\\(.)", _literal, pattern, flags=re.DOTALL)


def _literal(escaped: re.Match[str]) -> str:
    return _LITERALS.get(ord(escaped[1]), escaped[1])


def matching(
    pattern: str, test_of: Callable[[str], Callable[[str], bool]]
) -> Callable[[str], bool]:
    """The test of a pattern in which an escaped % or _ stands for itself.

    Args:
        test_of: :func:`like` or :func:`ilike`.
    """
    test = test_of(pattern)
    if not any(literal in pattern for literal in _LITERALS.values()):
        return test
    return lambda text: test(text.translate(_LITERALS))
