"""Replacers of redaction rules: functions that find and replace parts of texts, by kinds of
entities or by regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mlcore.process_cache import ProcessCache
from mlcore.redaction import detectors
from mlcore.redaction.detectors import Searched
from mlcore.search.rlike import compiled

DEFAULT_REPLACEMENT: Final = "[REDACTED]"
PATTERN_SECONDS: Final = 0.1
"""Maximum CPU time for one expression in one text."""
MAX_PATTERN_REPETITIONS: Final = 1_000
"""Product of the minimum counts of ``{n}`` in one expression."""
_expressions: ProcessCache[str, Any] = ProcessCache("expression of redaction")
_AT_BORDERS: Final = re.compile(r"\\[^bdDwWsS.+*?()\[\]{}|/@:,_-]|[$^]|\(\?(?!i?:|i\))|[*+?}]\+")
"""Matches parts of an expression by which a match may depend on more than the matched characters:
anchors, lookarounds, references to groups, possessive repeats. It also matches harmless parts, such
as ``^`` in a set. It does not match ``\\b``, which behaves the same at the end of a line and of a
text."""
_CREDENTIALS: Final = ("aws_key", "bearer_token")


class Replacer(NamedTuple):
    """Replaces the parts of a text that a redaction rule matches. If a text cannot be searched in
    time, ``replacement`` replaces all of it. ``replace`` and ``matches`` may raise TimeoutError."""

    replace: Callable[[str], str]
    matches: Callable[[Searched], bool]
    """Whether :attr:`replace` may change the text. False is certain, True is not."""
    replacement: str
    timed: bool
    """Whether its time counts towards :data:`.redactor.TOTAL_SECONDS` (regular expressions of
    rules), and not towards the time of detectors."""
    line_by_line: bool = False
    """Whether texts must be searched one by one, because a match depends on the begin or end of a
    text, or on characters around the match. Otherwise many texts are searched as lines of one."""
    finds_credentials: bool = False
    """Whether it finds credentials: keys and tokens with which programs log in."""


def of_entity(kind: str, replacement: str | None) -> Replacer:
    """Returns the replacer of all personal data or credentials of a kind, such as ``email``, that a
    detector finds in a text.

    Args:
        replacement: the text that replaces each of them; None for one that names the kind.

    Raises:
        KeyError: the kind is unknown.
    """
    new = replacement or f"[REDACTED {kind.replace('_', ' ')}]"
    detect = detectors.DETECTORS[kind]
    return Replacer(
        lambda text: detectors.replaced(kind, text, new),
        lambda searched: next(iter(detect(searched)), None) is not None,
        new,
        timed=False,
        finds_credentials=kind in _CREDENTIALS,
    )


def of_pattern(pattern: str, replacement: str | None) -> Replacer:
    """Returns the replacer of a redaction rule: of all non-empty matches of a regular expression.

    Args:
        replacement: stands for a match; if None or empty, :data:`DEFAULT_REPLACEMENT` does.

    Raises:
        InvalidParameterValue: the expression is not valid or repeats too much.
    """
    new = replacement or DEFAULT_REPLACEMENT
    expression = _compiled(pattern)

    def replace(text: str) -> str:
        text = expression.sub(
            lambda match: new if match.group() else "", text, timeout=PATTERN_SECONDS
        )
        return str(text)

    def matches(searched: Searched) -> bool:
        return expression.search(searched.text, timeout=PATTERN_SECONDS) is not None

    return Replacer(
        replace, matches, new, timed=True, line_by_line=_AT_BORDERS.search(pattern) is not None
    )


def _compiled(pattern: str) -> Any:
    """Compiles an expression. Processes read the setting every minute, and need not compile its
    expressions again."""
    expression = _expressions.get(pattern)
    if expression is None:
        expression = compiled(pattern, MAX_PATTERN_REPETITIONS)
        _expressions.put(pattern, expression)
    return expression
