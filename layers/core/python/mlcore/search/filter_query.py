"""Kubeflow's filter language: text in, a test of one entity out; owns what is accepted and what it
means, and knows no entity.

Conditions are joined by AND and OR, with parentheses. A name that the entity's kind does not know
is a custom property; a condition holds only where the property is there. LIKE and the signs are
those of MLflow's filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search.filter_tokens import Token, refused, tokens
from mlcore.search.like import ilike, like, matching, unescaped
from mlcore.search.match import COMPARE
from mlcore.search.tokens import check_length

Value = str | int | float | bool
Test = Callable[[Any], bool]

TEXT: Final = "string_value"
INT: Final = "int_value"
DOUBLE: Final = "double_value"
BOOL: Final = "bool_value"
TEXTS: Final = "array"
"""A list of texts, which equals each of its members; not one that is unequal to it."""

SUFFIXES: Final = (TEXT, DOUBLE, INT, BOOL)
_MAX_DEPTH: Final = 100
_MISMATCH: Final = "invalid filter query, type mismatch or invalid value in comparison"

_SIGNS: Final = {"<>": "!="}


class Source(NamedTuple):
    """How the values of an entity are found."""

    known: Mapping[str, str]
    """The kind's own properties, and which of the types each has."""
    attribute: Callable[[Any, str], Any]
    """The value of such a property; None where the entity has none."""
    custom: Callable[[Any, str], tuple[str, Any] | None]
    """(type, value) of a custom property."""
    parts: Parts | None = None


class Parts(NamedTuple):
    """Entities that belong to one: conditions on them that AND joins hold of the same one."""

    prefix: str
    """What the names of their properties begin with."""
    of: Callable[[Any], Iterable[Any]]
    source: Source


Condition = tuple[str, str, Any]
"""A property, an operator (``NOT IN`` too), and a value or a list of them."""


class Leaf(NamedTuple):
    """Met where the entity has a value of one of some types that passes the test of its type."""

    name: str
    known: bool
    """Whether it is a property of the kind; its type is then "", whatever it is."""
    tests: Mapping[str, Test]
    equal: Value | None = None
    """What the value of a known property must be, where the condition is that it equals one."""


class Opposite(NamedTuple):
    node: Node


class Every(NamedTuple):
    nodes: tuple[Node, ...]


class Either(NamedTuple):
    nodes: tuple[Node, ...]


class SomePart(NamedTuple):
    """Met where one part meets all."""

    nodes: tuple[Node, ...]


Node = Leaf | Opposite | Every | Either | SomePart
"""What a filter says."""

NOTHING: Final = Every(())
"""What a blank filter says: it is always met."""


def all_of(conditions: Iterable[Condition], source: Source) -> Node:
    """That all conditions hold. Raises InvalidParameterValue."""
    found = []
    for name, operator, value in conditions:
        operand = tuple(value) if isinstance(value, list | tuple) else value
        base, _, suffix = name.rpartition(".")
        kind = suffix if base and suffix in SUFFIXES else None
        unlike = operator == "NOT IN"
        sign = "IN" if unlike else _SIGNS.get(operator, operator)
        if (sign == "IN") != isinstance(operand, tuple):
            raise InvalidParameterValue(_MISMATCH)
        node, of_part = _placed(base if kind else name, kind, sign, operand, source)
        found.append((Opposite(node) if unlike else node, of_part))
    return _joined(found)


def _placed(
    name: str, kind: str | None, operator: str, operand: Value | tuple[Value, ...], source: Source
) -> tuple[Node, bool]:
    """What a condition says, and whether it is one of a part."""
    parts = source.parts
    if parts is not None and name.startswith(parts.prefix):
        name = name.removeprefix(parts.prefix)
        return _condition(name, kind, operator, operand, parts.source), True
    return _condition(name, kind, operator, operand, source), False


def _joined(nodes: list[tuple[Node, bool]]) -> Node:
    """That all hold, those of parts of the same one."""
    own = [node for node, of_part in nodes if not of_part]
    of_parts = tuple(node for node, of_part in nodes if of_part)
    if of_parts:
        own.append(SomePart(of_parts))
    return own[0] if len(own) == 1 else Every(tuple(own))


def demanded(node: Node) -> Iterator[Leaf]:
    """The conditions that all hold of whatever meets a filter."""
    if isinstance(node, Leaf):
        yield node
    elif isinstance(node, Every):
        for each in node.nodes:
            yield from demanded(each)


def compiled(node: Node, source: Source) -> Test:
    """The test of one entity."""
    match node:
        case Leaf():
            return _leaf(node, source)
        case Opposite(inner):
            test = compiled(inner, source)
            return lambda item: not test(item)
        case Either(nodes):
            tests = [compiled(one, source) for one in nodes]
            return lambda item: any(test(item) for test in tests)
        case SomePart(nodes) if source.parts is not None:
            parts = source.parts
            every = compiled(Every(nodes), parts.source)
            return lambda item: any(map(every, parts.of(item)))
        case _:
            tests = [compiled(one, source) for one in node.nodes]
            return tests[0] if len(tests) == 1 else lambda item: all(test(item) for test in tests)


def _leaf(leaf: Leaf, source: Source) -> Test:
    name = leaf.name
    if leaf.known:
        holds = leaf.tests[""]
        get = source.attribute
        return lambda item: (value := get(item, name)) is not None and holds(value)
    tests, custom = leaf.tests, source.custom

    def meets(item: Any) -> bool:
        found = custom(item, name)
        return found is not None and found[0] in tests and tests[found[0]](found[1])

    return meets


def parse(text: str, source: Source) -> Test:
    """The test that a filter asks for; one that is always met for a blank filter.

    Raises:
        InvalidParameterValue: the text is no filter, or compares what cannot be compared.
    """
    return compiled(read(text, source), source)


def read(text: str, source: Source) -> Node:
    """What a filter says. Raises InvalidParameterValue, as :func:`parse`."""
    if not text.strip():
        return NOTHING
    check_length(text)
    reader = _Reader(tokens(text), source)
    node = reader.either(0)
    reader.end()
    return node


class _Reader:
    def __init__(self, tokens: list[Token], source: Source) -> None:
        self._tokens = tokens
        self._at = 0
        self._source = source

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _takes(self, text: str) -> bool:
        token = self._tokens[self._at]
        if token.kind in ("keyword", "mark") and token.text == text:
            self._at += 1
            return True
        return False

    def end(self) -> None:
        token = self._tokens[self._at]
        if token.kind != "end":
            raise refused(f"unexpected {token.text!r} at {token.at}")

    def either(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise refused("it is nested too deeply")
        nodes = [self._all(depth)]
        while self._takes("OR"):
            nodes.append(self._all(depth))
        return nodes[0] if len(nodes) == 1 else Either(tuple(nodes))

    def _all(self, depth: int) -> Node:
        nodes = [self._term(depth)]
        while self._takes("AND"):
            nodes.append(self._term(depth))
        return _joined(nodes)

    def _term(self, depth: int) -> tuple[Node, bool]:
        """A condition, and whether it is one of a part of the entity."""
        if self._takes("("):
            node = self.either(depth + 1)
            self._demand(")")
            return node, False
        name, kind = self._property()
        operator = self._next()
        if operator.text == "IN" and operator.kind == "keyword":
            return _placed(name, kind, "IN", tuple(self._list()), self._source)
        if operator.kind == "sign" or operator.text in ("LIKE", "ILIKE"):
            sign = _SIGNS.get(operator.text, operator.text)
            value = self._value() if operator.kind == "sign" else self._pattern()
            return _placed(name, kind, sign, value, self._source)
        raise refused(f"unexpected {operator.text!r} at {operator.at}")

    def _demand(self, text: str) -> None:
        if not self._takes(text):
            token = self._tokens[self._at]
            raise refused(f"expected {text!r} at {token.at}, found {token.text!r}")

    def _property(self) -> tuple[str, str | None]:
        """A name, and the type that its suffix demands."""
        token = self._next()
        if token.kind not in ("word", "escaped"):
            raise refused(f"unexpected {token.text!r} at {token.at}")
        parts = [token.text.strip("`")]
        while self._takes("."):
            token = self._next()
            if token.kind not in ("word", "escaped", "keyword"):
                raise refused(f"unexpected {token.text!r} at {token.at}")
            parts.append(token.text.strip("`"))
        if len(parts) > 1 and parts[-1] in SUFFIXES:
            return ".".join(parts[:-1]), parts[-1]
        return ".".join(parts), None

    def _list(self) -> list[Value]:
        self._demand("(")
        values: list[Value] = []
        if self._takes(")"):
            return values
        values.append(self._value())
        while self._takes(","):
            values.append(self._value())
        self._demand(")")
        return values

    def _pattern(self) -> Value:
        """What LIKE compares with: an escaped % or _ stands for itself."""
        token = self._next()
        if token.kind != "text":
            raise InvalidParameterValue(_MISMATCH)
        return unescaped(token.text[1:-1])

    def _value(self) -> Value:
        token = self._next()
        if token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
        if token.kind == "number":
            return _number(token)
        if token.kind == "word" and token.text in ("true", "false"):
            return token.text == "true"
        raise refused(f"unexpected {token.text!r} at {token.at}")


def _number(token: Token) -> int | float:
    if re.fullmatch(r"[-+]?\d+", token.text):
        if len(token.text) > 25:
            raise InvalidParameterValue(_MISMATCH)
        return int(token.text)
    return float(token.text)


def _condition(
    name: str, kind: str | None, operator: str, operand: Value | tuple[Value, ...], source: Source
) -> Leaf:
    if name in source.known:
        wanted = source.known[name]
        if wanted == TEXTS:
            return Leaf(name, True, {"": _membership(operator, operand)})
        value = _converted(operand, wanted)
        equal = value if operator == "=" and not isinstance(value, tuple) else None
        return Leaf(name, True, {"": _test(operator, value)}, equal)
    tests: dict[str, Test] = {}
    members = operand if isinstance(operand, tuple) else (operand,)
    for wanted in (kind,) if kind else SUFFIXES:
        if operator == "IN" and kind is None:
            fitting = tuple(each for each in members if wanted in _types(each))
            tests[wanted] = _test(operator, fitting)
        elif kind is not None or all(wanted in _types(each) for each in members):
            tests[wanted] = _test(operator, _converted(operand, wanted))
    return Leaf(name, False, tests)


def _membership(operator: str, operand: Value | tuple[Value, ...]) -> Test:
    holds = _test(operator, _converted(operand, TEXT))
    every = all if operator == "!=" else any
    return lambda values: every(map(holds, values))


def _types(value: Value) -> tuple[str, ...]:
    """The types of custom properties that a literal without a suffix is compared with."""
    if isinstance(value, bool):
        return (BOOL,)
    if isinstance(value, int):
        return (INT, DOUBLE)
    return (DOUBLE,) if isinstance(value, float) else (TEXT,)


def _converted(operand: Value | tuple[Value, ...], wanted: str) -> Value | tuple[Value, ...]:
    if isinstance(operand, tuple):
        return tuple(_as(each, wanted) for each in operand)
    return _as(operand, wanted)


def _as(value: Value, wanted: str) -> Value:
    if wanted == TEXT and isinstance(value, str):
        return value
    if wanted == BOOL and isinstance(value, bool):
        return value
    if wanted in (INT, DOUBLE) and not isinstance(value, bool):
        if not isinstance(value, str):
            return value
        try:
            return int(value) if wanted == INT else float(value)
        except ValueError:
            pass
    raise InvalidParameterValue(_MISMATCH)


def _test(operator: str, operand: Value | tuple[Value, ...]) -> Callable[[Any], bool]:
    if isinstance(operand, tuple):
        members = frozenset(operand)
        return members.__contains__
    if operator in ("LIKE", "ILIKE"):
        if not isinstance(operand, str):
            raise InvalidParameterValue(_MISMATCH)
        return matching(operand, ilike if operator == "ILIKE" else like)
    if isinstance(operand, bool) and operator not in ("=", "!="):
        raise InvalidParameterValue(_MISMATCH)
    compare = COMPARE[operator]
    return lambda value: compare(value, operand)
