"""Parses DynamoDB's expressions into syntax trees, and caches the trees."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from botocore.exceptions import ClientError

from local.store.errors import invalid
from local.store.reserved_words import RESERVED_WORDS

MAX_EXPRESSION_BYTES: Final = 4096
MAX_OPERATORS: Final = 300
MAX_IN_OPERANDS: Final = 100
MAX_NESTING: Final = 100
"""How deeply parentheses, NOT and functions may be nested. DynamoDB documents no limit; here
each level takes some frames of Python's stack."""

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<word>[#:]?[A-Za-z0-9_]+)|(?P<sign><>|<=|>=|[=<>(),.+\-\[\]])|(?P<end>$))"
)

Path = tuple[str | int, ...]
"""A document path; a name may be a placeholder such as ``#n``, an index is a number."""


class Operand(NamedTuple):
    """An operand of a DynamoDB expression. ``kind`` is ``path``, ``value`` (a placeholder), or the
    name of a function such as ``size``.
    """

    kind: str
    path: Path = ()
    arguments: tuple[Operand, ...] = ()


class ConditionNode(NamedTuple):
    """A node of a DynamoDB condition expression's tree. ``kind`` is AND, OR, NOT, a comparison,
    BETWEEN, IN, or a function's name.
    """

    kind: str
    conditions: tuple[ConditionNode, ...] = ()
    operands: tuple[Operand, ...] = ()


class Action(NamedTuple):
    """One change in an update expression. ``verb`` is SET, REMOVE, ADD or DELETE; a REMOVE has no
    ``value``. A sum or difference is an operand of kind ``+`` or ``-``.
    """

    verb: str
    path: Path
    value: Operand | None = None


_FUNCTIONS: Final = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
}
_VALUE_FUNCTIONS: Final = {"if_not_exists": 2, "list_append": 2}
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
_VERBS: Final = ("SET", "REMOVE", "ADD", "DELETE")


class _Parser:
    def __init__(self, parameter: str, text: str) -> None:
        self._parameter = parameter
        self._nesting = 0
        if len(text.encode("utf-8", "replace")) > MAX_EXPRESSION_BYTES:
            raise self._error(
                "Expression size has exceeded the maximum allowed size; expression size: "
                f"{len(text)}"
            )
        if not text.strip():
            raise self._error("The expression can not be empty;")
        self._tokens = list(self._split(text))
        self._at = 0
        self._operators = 0

    def _split(self, text: str) -> Iterator[str]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(
                    f'Syntax error; token: "{text[at]}", near: "{text[at : at + 10]}"'
                )
            token = match["word"] or match["sign"]
            if token:
                yield token
            at = match.end()

    def _error(self, message: str) -> ClientError:
        return invalid(f"Invalid {self._parameter}: {message}")

    def _unexpected(self) -> ClientError:
        token = self._peek() or "<EOF>"
        near = " ".join(self._tokens[max(0, self._at - 1) : self._at + 2])
        return self._error(f'Syntax error; token: "{token}", near: "{near}"')

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise self._unexpected()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._peek().upper() != token:
            raise self._unexpected()
        self._at += 1

    def _accepts(self, token: str) -> bool:
        if self._peek().upper() == token:
            self._at += 1
            return True
        return False

    def _operator(self) -> None:
        self._operators += 1
        if self._operators > MAX_OPERATORS:
            raise self._error(
                f"The expression contains too many operators; operator count: {self._operators}"
            )

    @contextlib.contextmanager
    def _nested(self) -> Iterator[None]:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self._error(f"The expression has more than {MAX_NESTING} nesting levels")
        yield
        self._nesting -= 1

    def end(self) -> None:
        if self._peek():
            raise self._unexpected()

    def path(self) -> Path:
        first = self._peek()
        if not first or not (first[0] == "#" or first[0].isalpha() or first[0] == "_"):
            raise self._unexpected()
        parts: list[str | int] = [self._name()]
        while self._peek() in (".", "["):
            if self._take() == ".":
                name = self._peek()
                if not (name[:1] == "#" or name[:1].isalpha() or name[:1] == "_"):
                    raise self._unexpected()
                parts.append(self._name())
            else:
                index = self._take()
                if not index.isdigit():
                    raise self._unexpected()
                parts.append(int(index))
                self._expect("]")
        return tuple(parts)

    def _name(self) -> str:
        name = self._take()
        if name.upper() in RESERVED_WORDS:
            raise self._error(f"Attribute name is a reserved keyword; reserved keyword: {name}")
        return name

    def _arguments(self, count: int, *, in_update: bool) -> tuple[Operand, ...]:
        self._expect("(")
        with self._nested():
            arguments = [self.operand(in_update=in_update)]
            while len(arguments) < count:
                self._expect(",")
                arguments.append(self.operand(in_update=in_update))
        self._expect(")")
        return tuple(arguments)

    def operand(self, *, in_update: bool = False) -> Operand:
        token = self._peek()
        if token.startswith(":"):
            return Operand("value", (self._take(),))
        is_call = self._tokens[self._at + 1 : self._at + 2] == ["("]
        if is_call and not in_update and token == "size":  # noqa: S105 - no secret
            self._take()
            self._operator()
            return Operand("size", (), self._arguments(1, in_update=False))
        if is_call and in_update and token in _VALUE_FUNCTIONS:
            self._take()
            self._operator()
            return Operand(token, (), self._arguments(_VALUE_FUNCTIONS[token], in_update=True))
        if is_call and token not in _FUNCTIONS:
            raise self._error(f"Invalid function name; function: {token}")
        return Operand("path", self.path())

    def condition(self) -> ConditionNode:
        parts = [self._conjunction()]
        while self._accepts("OR"):
            self._operator()
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else ConditionNode("OR", tuple(parts))

    def _conjunction(self) -> ConditionNode:
        parts = [self._negation()]
        while self._accepts("AND"):
            self._operator()
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else ConditionNode("AND", tuple(parts))

    def _negation(self) -> ConditionNode:
        if self._accepts("NOT"):
            self._operator()
            with self._nested():
                return ConditionNode("NOT", (self._negation(),))
        if self._accepts("("):
            if self._peek() == "(" and self._is_redundant():
                raise self._error("The expression has redundant parentheses;")
            with self._nested():
                inner = self.condition()
            self._expect(")")
            return inner
        token = self._peek()
        if token in _FUNCTIONS and self._tokens[self._at + 1 : self._at + 2] == ["("]:
            self._take()
            self._operator()
            return ConditionNode(token, (), self._arguments(_FUNCTIONS[token], in_update=False))
        return self._comparison()

    def _is_redundant(self) -> bool:
        """Returns whether the parenthesis just opened encloses nothing but another pair of
        parentheses, which DynamoDB refuses.
        """
        depth = 0
        for at in range(self._at, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._tokens[at], 0)
            if not depth:
                return self._tokens[at + 1 : at + 2] == [")"]
        return False

    def _comparison(self) -> ConditionNode:
        left = self.operand()
        self._operator()
        if self._accepts("BETWEEN"):
            low = self.operand()
            self._expect("AND")
            return ConditionNode("BETWEEN", (), (left, low, self.operand()))
        if self._accepts("IN"):
            self._expect("(")
            operands = [left, self.operand()]
            while self._accepts(","):
                operands.append(self.operand())
            self._expect(")")
            if len(operands) - 1 > MAX_IN_OPERANDS:
                raise self._error(
                    f"IN takes at most {MAX_IN_OPERANDS} values; number: {len(operands) - 1}"
                )
            return ConditionNode("IN", (), tuple(operands))
        if self._peek() not in _COMPARISONS:
            raise self._unexpected()
        return ConditionNode(self._take(), (), (left, self.operand()))

    def update(self) -> tuple[Action, ...]:
        actions: list[Action] = []
        verbs: set[str] = set()
        while self._peek():
            verb = self._take().upper()
            if verb not in _VERBS:
                self._at -= 1
                raise self._unexpected()
            if verb in verbs:
                raise self._error(
                    f'The "{verb}" section can only be used once in an update expression;'
                )
            verbs.add(verb)
            actions.append(self._action(verb))
            while self._accepts(","):
                actions.append(self._action(verb))
        return tuple(actions)

    def _action(self, verb: str) -> Action:
        path = self.path()
        if verb == "REMOVE":
            return Action(verb, path)
        if verb == "SET":
            self._expect("=")
            value = self.operand(in_update=True)
            sign = self._peek()
            if sign in ("+", "-"):
                self._take()
                self._operator()
                value = Operand(sign, (), (value, self.operand(in_update=True)))
            return Action(verb, path, value)
        value = self.operand()
        if value.kind != "value":
            raise self._unexpected()
        return Action(verb, path, value)

    def projection(self) -> tuple[Path, ...]:
        paths = [self.path()]
        while self._accepts(","):
            paths.append(self.path())
        return tuple(paths)


@functools.lru_cache(2048)
def parse_condition(parameter: str, text: str) -> ConditionNode:
    """Parses DynamoDB's condition, filter or key condition expression into a tree.

    Args:
        parameter: the request's parameter that holds the text; error messages name it.

    Raises:
        ClientError: ValidationException, if the text is not a valid condition or exceeds a limit.
    """
    parser = _Parser(parameter, text)
    condition = parser.condition()
    parser.end()
    return condition


@functools.lru_cache(2048)
def parse_update(text: str) -> tuple[Action, ...]:
    """Parses an update expression into its changes. Raises ClientError like
    :func:`parse_condition`.
    """
    return _Parser("UpdateExpression", text).update()


@functools.lru_cache(2048)
def parse_projection(text: str) -> tuple[Path, ...]:
    """Parses a projection expression into document paths. Raises ClientError like
    :func:`parse_condition`.
    """
    parser = _Parser("ProjectionExpression", text)
    paths = parser.projection()
    parser.end()
    return paths
