"""RLIKE: whether a regular expression of Python's is found in a text, in bounded time; owns nothing
of filters.

Python's engine tries one way after another, and an expression such as ``(a+)+$`` makes it try more
of them than there will ever be time for. It is asked only where the number of ways is small.
Elsewhere all ways are followed at once: a set of positions of the text is a number with a bit for
each, and each part of the expression turns the set where it may begin into the set where it may
end (read backwards: the other way round). See ``docs/adr/0021``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, Final

from mlcore.errors import InvalidParameterValue

CHEAP_WAYS: Final = 20_000
"""Python's engine tries so many in less than a millisecond."""
WAYS_OF_A_STEP: Final = 100
"""What Python's engine may try in the time of a step."""
MOST_WAYS: Final = 3_000_000
"""So many it may try where nothing else knows the expression."""
MOST_STEPS: Final = 100_000
"""Of an expression in a text; a step is about a microsecond, or one for each 8,000 characters."""
SEARCH_STEPS: Final = 10_000_000
"""Of all expressions of a search in all texts: less than the time that a request has."""
MOST_CHARACTERS: Final = 1_000
"""Of an expression."""

_Node = tuple[Any, Any]
_Parsed = Sequence[_Node]
_REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_ASSERTIONS: Final = (_constants.ASSERT, _constants.ASSERT_NOT)
_SINGLE: Final = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)
_KNOWN: Final = (
    *_REPEATS,
    *_ASSERTIONS,
    *_SINGLE,
    _constants.AT,
    _constants.BRANCH,
    _constants.SUBPATTERN,
)
_TOO_MANY: Final = 10
"""An exponent that no text is short enough for."""


class Budget:
    """The steps that are left to all expressions of one search."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = SEARCH_STEPS

    def take(self, steps: int) -> None:
        """Raises InvalidParameterValue when nothing is left."""
        self.left -= steps
        if self.left < 0:
            raise InvalidParameterValue(
                "The regular expressions of the search take too long in so many texts. Narrow the "
                "search by other conditions, or use LIKE."
            )


def test(expression: str, budget: Budget) -> Callable[[str], bool]:
    """The test whether an expression is found in a text; one that cannot be compiled never is.

    The test raises InvalidParameterValue for what would take too long.
    """
    try:
        search = re.compile(expression).search
        parsed = _parser.parse(expression)
        degree, factor = _ways(parsed)
        known = _is_known(parsed) and len(expression) <= MOST_CHARACTERS
    except (re.error, OverflowError, RecursionError):
        return lambda _: False
    compiled, begin = _Expression(parsed), _begin(parsed)

    def test(text: str) -> bool:
        starts = len(text) + 1
        if begin:
            starts = text.count(begin) * len(begin)
            if not starts:
                return False
        ways = factor * starts * (len(text) + 1) ** degree
        if ways <= (CHEAP_WAYS if known else MOST_WAYS):
            budget.take(1 + ways // WAYS_OF_A_STEP)
            return search(text) is not None
        if not known:
            raise InvalidParameterValue(
                "The regular expression takes too long: one with back references, conditions, "
                "atomic or possessive parts can repeat little, and none can have more than "
                f"{MOST_CHARACTERS} characters."
            )
        return _Search(compiled, text, budget).succeeds()

    return test


def _ways(parsed: _Parsed) -> tuple[int, int]:
    """How many ways there are at most from one place: an exponent of the text's length, and a
    factor."""
    degree, factor = 0, 1
    for operator, argument in parsed:
        if operator in _REPEATS or operator is _constants.POSSESSIVE_REPEAT:
            least, most, body = argument
            inside, choices = _ways(body)
            if most > 1 and (inside or choices > 1):
                inside = _TOO_MANY
            degree += inside + (least != most)
            factor *= choices
        else:
            parts = _parts(operator, argument)
            if operator is _constants.BRANCH:
                factor *= len(parts)
            for part in parts:
                inside, choices = _ways(part)
                degree += inside
                factor *= choices
    return min(degree, _TOO_MANY), min(factor, MOST_WAYS + 1)


def _begin(parsed: Any) -> str:
    """What everything that is found begins with."""
    if parsed.state.flags & re.IGNORECASE:
        return ""
    codes = itertools.takewhile(lambda node: node[0] is _constants.LITERAL, parsed)
    return "".join([chr(code) for _, code in codes])


def _is_known(parsed: _Parsed) -> bool:
    return all(
        operator in _KNOWN and all(map(_is_known, _parts(operator, argument)))
        for operator, argument in parsed
    )


def _parts(operator: Any, argument: Any) -> list[_Parsed]:
    """The expressions that one consists of."""
    if operator in _REPEATS or operator is _constants.POSSESSIVE_REPEAT:
        return [argument[2]]
    if operator is _constants.BRANCH:
        return list(argument[1])
    if operator is _constants.SUBPATTERN:
        return [argument[3]]
    if operator in _ASSERTIONS:
        return [argument[1]]
    if operator is _constants.ATOMIC_GROUP:
        return [argument]
    if operator is _constants.GROUPREF_EXISTS:
        return [part for part in argument[1:] if part is not None]
    return []


class _Members(dict[int, str]):
    """For ``str.translate``: which characters a single-character expression accepts."""

    def __init__(self, node: _Node, flags: int) -> None:
        state = _parser.State()
        state.flags = flags
        self._match = _compiler.compile(_parser.SubPattern(state, [node]), flags).match

    def __missing__(self, code: int) -> str:
        accepted = self[code] = "1" if self._match(chr(code)) else "0"
        return accepted


class _Expression:
    def __init__(self, parsed: Any) -> None:
        self.parsed: _Parsed = parsed
        self.flags: int = parsed.state.flags
        self._members: dict[tuple[int, int], _Members] = {}

    def members(self, node: _Node, flags: int) -> _Members:
        place = id(node), flags
        if place not in self._members:
            self._members[place] = _Members(node, flags)
        return self._members[place]


_WORD: Final[_Node] = (_constants.IN, [(_constants.CATEGORY, _constants.CATEGORY_WORD)])


class _Search:
    """Of one expression in one text. Bit *i* of a set stands for the place before character *i*."""

    def __init__(self, expression: _Expression, text: str, budget: Budget) -> None:
        self._budget = budget
        self._expression = expression
        self._text = text
        self._reversed = text[::-1]
        self._everywhere = (1 << (len(text) + 1)) - 1
        self._masks: dict[tuple[int, int], int] = {}
        self._left = MOST_STEPS
        self._price = 1 + len(text) // 8_000

    def succeeds(self) -> bool:
        expression = self._expression
        try:
            return bool(
                self._through(expression.parsed, self._everywhere, expression.flags, back=False)
            )
        finally:
            self._budget.take(MOST_STEPS - self._left)

    def _through(self, parsed: _Parsed, places: int, flags: int, *, back: bool) -> int:
        for node in reversed(parsed) if back else parsed:
            if not places:
                return 0
            places = self._past(node, places, flags, back=back)
        return places

    def _past(self, node: _Node, places: int, flags: int, *, back: bool) -> int:
        self._left -= self._price
        if self._left < 0:
            raise InvalidParameterValue("The regular expression takes too long.")
        operator, argument = node
        if operator in _SINGLE:
            mask = self._mask(node, flags)
            return (places >> 1) & mask if back else (places & mask) << 1
        if operator in _REPEATS:
            return self._repeated(argument, places, flags, back=back)
        if operator is _constants.AT:
            return places & self._where(argument, flags)
        if operator is _constants.BRANCH:
            ends = 0
            for branch in argument[1]:
                ends |= self._through(branch, places, flags, back=back)
            return ends
        if operator is _constants.SUBPATTERN:
            _, added, removed, body = argument
            return self._through(body, places, (flags | added) & ~removed, back=back)
        direction, body = argument
        there = self._through(body, self._everywhere, flags, back=direction > 0)
        return places & (there if operator is _constants.ASSERT else ~there)

    def _repeated(self, argument: Any, places: int, flags: int, *, back: bool) -> int:
        least, most, body = argument
        for _ in range(least):
            further = self._through(body, places, flags, back=back)
            if further == places:
                break
            places = further
        if most is _constants.MAXREPEAT and len(body) == 1 and body[0][0] in _SINGLE:
            return self._filled(places, self._mask(body[0], flags), back=back)
        reached, front, times = places, places, least
        while front and times < most:
            front = self._through(body, front, flags, back=back) & ~reached
            reached |= front
            times += 1
        return reached

    def _filled(self, places: int, mask: int, *, back: bool) -> int:
        """All that can be reached through any number of the mask's characters: twice as far with
        each step."""
        width, distance = len(self._text), 1
        open_ = mask if back else mask << 1
        while distance <= width and open_:
            self._left -= self._price
            places |= open_ & (places >> distance if back else places << distance)
            open_ &= open_ >> distance if back else open_ << distance
            distance *= 2
        return places

    def _mask(self, node: _Node, flags: int) -> int:
        """The places before the characters that an expression of one character accepts."""
        place = id(node), flags
        mask = self._masks.get(place)
        if mask is None:
            members = self._expression.members(node, flags)
            mask = int(self._reversed.translate(members) or "0", 2)
            self._masks[place] = mask
        return mask

    def _where(self, condition: Any, flags: int) -> int:
        """The places of an anchor."""
        end = 1 << len(self._text)
        lines = self._lines() if flags & re.MULTILINE else 0
        if condition is _constants.AT_BEGINNING:
            return 1 | lines << 1
        if condition is _constants.AT_BEGINNING_STRING:
            return 1
        if condition is _constants.AT_END:
            return end | lines | (end >> 1 if self._text.endswith("\n") else 0)
        if condition is _constants.AT_END_STRING:
            return end
        words = self._mask(_WORD, flags)
        boundaries = words ^ words << 1
        if condition is _constants.AT_BOUNDARY:
            return boundaries
        return self._everywhere & ~boundaries if self._text else 0

    def _lines(self) -> int:
        return int(self._reversed.translate(_Newlines()) or "0", 2)


class _Newlines(dict[int, str]):
    def __missing__(self, code: int) -> str:
        return "1" if code == 10 else "0"
