"""The operator RLIKE: whether a regular expression matches somewhere in a text, in bounded time.

The syntax is that of Python's ``re``, as in MLflow on SQLite. The search itself is done by the
package ``regex``, whose search can be given a timeout; ``re`` has none. See ``docs/adr/0021``.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from typing import Any, Final

from mlcore.errors import InvalidParameterValue

MATCH_SECONDS: Final = 0.1
"""Maximum CPU time for one expression in one text."""
SEARCH_SECONDS: Final = 5.0
"""Maximum time for all expressions of one search in all texts together."""
MAX_CHARACTERS: Final = 5_000
"""Maximum length of an expression: a longer one takes too long to compile."""
MAX_REPETITIONS: Final = 100_000
"""Maximum product of the minimum counts of ``{n}`` in one expression, because ``regex`` compiles
``a{n}`` to n nodes of about 0.4 KB each."""

_COUNT: Final = re.compile(r"\{(\d+)(?:,\d*)?\}")
_DIFFERENT_SYNTAX: Final = re.compile(
    r"\\N\{[^}]*\}|\\."  # an escape, copied
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a set of characters
    r"|\{(?!\d*,?\d*\})",  # a brace that is no count
    re.DOTALL,
)
_ESCAPE_OR_BRACKET: Final = re.compile(r"\\.|\[", re.DOTALL)


class TimeBudget:
    """The time in seconds that all RLIKE conditions of one search may still take."""

    __slots__ = ("seconds_left",)

    def __init__(self) -> None:
        self.seconds_left = SEARCH_SECONDS

    def check(self) -> None:
        """Checks that the search has time left for RLIKE conditions. Raises InvalidParameterValue
        otherwise."""
        if self.seconds_left <= 0:
            raise InvalidParameterValue(
                f"The RLIKE conditions of the search took more than {SEARCH_SECONDS:g} seconds. "
                "Narrow the search with other conditions, or use LIKE."
            )


def matcher(expression: str, budget: TimeBudget) -> Callable[[str], bool]:
    """Compiles a regular expression to a function that says whether it matches somewhere in a text.

    As in MLflow, an expression that ``re`` cannot compile matches no text.

    Args:
        budget: shared by all expressions of one search; each compilation and each text takes its
            time from the budget.

    Raises:
        InvalidParameterValue: the expression is too long, repeats too much or cannot be searched
            for. The returned function raises this error when the expression takes too long on a
            text, or when the budget is spent.
    """
    if len(expression) > MAX_CHARACTERS:
        raise InvalidParameterValue(
            f"A regular expression of RLIKE can have at most {MAX_CHARACTERS} characters; this one "
            f"has {len(expression)}."
        )
    budget.check()
    started = time.perf_counter()
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError, ValueError):
        return lambda _: False
    search: Callable[..., object] = compiled(expression).search
    budget.seconds_left -= time.perf_counter() - started

    def matches(text: str) -> bool:
        budget.check()
        started = time.perf_counter()
        try:
            return search(text, timeout=MATCH_SECONDS) is not None
        except (TimeoutError, MemoryError):
            raise InvalidParameterValue(
                f"The regular expression {expression!r} takes more than {MATCH_SECONDS:g} seconds "
                "on one text. Avoid repeats inside of repeats, such as (a+)+, or use LIKE."
            ) from None
        finally:
            budget.seconds_left -= time.perf_counter() - started

    return matches


def compiled(expression: str, max_repetitions: int = MAX_REPETITIONS) -> Any:
    """Compiles an expression that ``re`` accepts by the package ``regex``, whose methods ``search``
    and ``sub`` take a timeout.

    Raises InvalidParameterValue if ``regex`` does not support the expression or its counts are too
    large.
    """
    import regex  # noqa: PLC0415 - imported only if a search uses an expression

    try:
        repetitions: float = math.prod(max(1, int(count)) for count in _COUNT.findall(expression))
    except ValueError:  # more digits than Python converts
        repetitions = math.inf
    if repetitions > max_repetitions:
        raise InvalidParameterValue(
            f"The counts of the regular expression {expression!r}, multiplied, are more than "
            f"{max_repetitions}. Use smaller counts, or + or *."
        )
    try:
        # Not cached by regex: a compiled expression may take 40 MB.
        return regex.compile(_without_extensions(expression), cache_pattern=False)
    except (regex.error, OverflowError, RecursionError, MemoryError):
        raise InvalidParameterValue(
            f"The regular expression {expression!r} is not supported."
        ) from None


def _without_extensions(expression: str) -> str:
    """Escapes in an expression the characters that are literal in ``re``, but have a meaning in
    ``regex``: a ``{`` that begins no count, and a ``[`` inside a set (``[[:alpha:]]``)."""
    return _DIFFERENT_SYNTAX.sub(_escaped, expression)


def _escaped(part: re.Match[str]) -> str:
    text = part.group()
    if text == "{":
        return r"\{"
    if text[0] == "[":
        return "[" + _ESCAPE_OR_BRACKET.sub(
            lambda match: r"\[" if match.group() == "[" else match.group(), text[1:]
        )
    return text
