"""Parses ``filterQuery``, the filter language of Kubeflow's model registry, and tests entities with
it.

A filter is parsed to a tree of nodes: conditions on one property each (:class:`PropertyTest`),
joined by AND and OR, with parentheses. A name that is not a property of the entity's kind is a
custom property. A condition is false if the property is missing. LIKE and the comparison operators
mean the same as in MLflow's filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search.filter_tokens import check_length
from mlcore.search.kubeflow_tokens import KubeflowToken, syntax_error, tokenize
from mlcore.search.like import ilike, like, unescape, with_escapes
from mlcore.search.match import COMPARE

Value = str | int | float | bool
Test = Callable[[Any], bool]

TEXT: Final = "string_value"
INT: Final = "int_value"
DOUBLE: Final = "double_value"
BOOL: Final = "bool_value"
TEXTS: Final = "array"
"""Type of a list of texts. ``=`` is true for a text in the list, ``!=`` for a text that is not in
the list."""

SUFFIXES: Final = (TEXT, DOUBLE, INT, BOOL)
_MAX_DEPTH: Final = 100
_MISMATCH: Final = "invalid filter query, type mismatch or invalid value in comparison"

_SIGNS: Final = {"<>": "!="}


class PropertySource(NamedTuple):
    """How to read the properties of an entity, and of its parts, that a Kubeflow filter names."""

    known: Mapping[str, str]
    """The properties of the kind, and the type of each."""
    attribute: Callable[[Any, str], Any]
    """Takes entity and property; returns the value, or None if the entity has none."""
    custom: Callable[[Any, str], tuple[str, Any] | None]
    """Takes entity and name of a custom property; returns (type, value), or None."""
    parts: PartSource | None = None


class PartSource(NamedTuple):
    """How a filter tests the parts of an entity, such as the artifacts of a model version, by their
    properties. Conditions on parts that AND joins directly must all hold for one part."""

    prefix: str
    """Prefix of the names of the parts' properties in a filter."""
    of: Callable[[Any], Iterable[Any]]
    source: PropertySource


PropertyCondition = tuple[str, str, Any]
"""(property, operator, value or list of values); ``NOT IN`` is an operator here."""


class PropertyTest(NamedTuple):
    """A node of a parsed Kubeflow filter: true if the entity's property has a value of a type in
    ``tests`` that passes this type's test."""

    name: str
    known: bool
    """Whether it is a property of the kind, not a custom one; ``tests`` then has the one key ""."""
    tests: Mapping[str, Test]
    equal: Value | None = None
    """The value of a condition ``known property = value``; None for any other condition."""


class Not(NamedTuple):
    node: Node


class AllOf(NamedTuple):
    nodes: tuple[Node, ...]


class AnyOf(NamedTuple):
    nodes: tuple[Node, ...]


class AnyPart(NamedTuple):
    """A Kubeflow filter's node: true if any part (artifact) of an entity meets all ``nodes``."""

    nodes: tuple[Node, ...]


Node = PropertyTest | Not | AllOf | AnyOf | AnyPart
"""A node of a parsed filter."""

NOTHING: Final = AllOf(())
"""The node of a blank filter: always true."""


def all_of(conditions: Iterable[PropertyCondition], source: PropertySource) -> Node:
    """Makes the filter node that is true if all these (property, operator, value) conditions hold.
    ``NOT IN`` also holds if the property is missing. Raises InvalidParameterValue for a value that
    does not fit the operator or the property.
    """
    nodes = []
    for name, operator, value in conditions:
        operand = tuple(value) if isinstance(value, list | tuple) else value
        base, _, suffix = name.rpartition(".")
        kind = suffix if base and suffix in SUFFIXES else None
        unlike = operator == "NOT IN"
        sign = "IN" if unlike else _SIGNS.get(operator, operator)
        if (sign == "IN") != isinstance(operand, tuple):
            raise InvalidParameterValue(_MISMATCH)
        node, of_part = _condition_node(base if kind else name, kind, sign, operand, source)
        nodes.append((Not(node) if unlike else node, of_part))
    return _joined_by_and(nodes)


def _condition_node(
    name: str,
    kind: str | None,
    operator: str,
    operand: Value | tuple[Value, ...],
    source: PropertySource,
) -> tuple[Node, bool]:
    """Returns a condition as a node, and True if the condition is on the parts of the entity, such
    as ``artifacts.uri = '…'`` on the artifacts of a version."""
    parts = source.parts
    if parts is not None and name.startswith(parts.prefix):
        name = name.removeprefix(parts.prefix)
        return _condition(name, kind, operator, operand, parts.source), True
    return _condition(name, kind, operator, operand, source), False


def _joined_by_and(nodes: list[tuple[Node, bool]]) -> Node:
    """Joins nodes by AND. Those with True are conditions on parts; one part must meet them all."""
    own = [node for node, of_part in nodes if not of_part]
    of_parts = tuple(node for node, of_part in nodes if of_part)
    if of_parts:
        own.append(AnyPart(of_parts))
    return own[0] if len(own) == 1 else AllOf(tuple(own))


def required_tests(node: Node) -> Iterator[PropertyTest]:
    """Yields the conditions of a parsed filter of Kubeflow's API that every match must meet: those
    that AND joins at the top of the filter."""
    if isinstance(node, PropertyTest):
        yield node
    elif isinstance(node, AllOf):
        for each in node.nodes:
            yield from required_tests(each)


def compile_test(node: Node, source: PropertySource) -> Test:
    """Returns a function that says whether an entity meets a parsed filter of Kubeflow's API."""
    match node:
        case PropertyTest():
            return _leaf(node, source)
        case Not(inner):
            test = compile_test(inner, source)
            return lambda item: not test(item)
        case AnyOf(nodes):
            tests = [compile_test(child, source) for child in nodes]
            return lambda item: any(test(item) for test in tests)
        case AnyPart(nodes) if source.parts is not None:
            parts = source.parts
            every = compile_test(AllOf(nodes), parts.source)
            return lambda item: any(map(every, parts.of(item)))
        case _:
            tests = [compile_test(child, source) for child in node.nodes]
            return tests[0] if len(tests) == 1 else lambda item: all(test(item) for test in tests)


def _leaf(leaf: PropertyTest, source: PropertySource) -> Test:
    name = leaf.name
    if leaf.known:
        holds = leaf.tests[""]
        get = source.attribute
        return lambda item: (value := get(item, name)) is not None and holds(value)
    tests, custom = leaf.tests, source.custom

    def meets(item: Any) -> bool:
        typed_value = custom(item, name)
        if typed_value is None:
            return False
        kind, value = typed_value
        return kind in tests and tests[kind](value)

    return meets


def parse_test(text: str, source: PropertySource) -> Test:
    """Parses a filter in Kubeflow's language and returns a function that says whether an entity of
    Kubeflow's registry meets it. Every entity meets a blank filter.

    Raises:
        InvalidParameterValue: invalid syntax, or a value that does not fit the property's type.
    """
    return compile_test(parse_node(text, source), source)


def parse_node(text: str, source: PropertySource) -> Node:
    """Parses a Kubeflow filter to a tree for :func:`compile_test`; raises as :func:`parse_test`."""
    if not text.strip():
        return NOTHING
    check_length(text)
    reader = _Reader(tokenize(text), source)
    node = reader.either(0)
    reader.end()
    return node


class _Reader:
    def __init__(self, tokens: list[KubeflowToken], source: PropertySource) -> None:
        self._tokens = tokens
        self._at = 0
        self._source = source

    def _next(self) -> KubeflowToken:
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
            raise syntax_error(f"unexpected {token.text!r} at {token.at}")

    def either(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise syntax_error("it is nested too deeply")
        nodes = [self._all(depth)]
        while self._takes("OR"):
            nodes.append(self._all(depth))
        return nodes[0] if len(nodes) == 1 else AnyOf(tuple(nodes))

    def _all(self, depth: int) -> Node:
        nodes = [self._term(depth)]
        while self._takes("AND"):
            nodes.append(self._term(depth))
        return _joined_by_and(nodes)

    def _term(self, depth: int) -> tuple[Node, bool]:
        """Reads a condition or a group in parentheses; True if it is a condition on a part."""
        if self._takes("("):
            node = self.either(depth + 1)
            self._demand(")")
            return node, False
        name, kind = self._property()
        operator = self._next()
        if operator.text == "IN" and operator.kind == "keyword":
            return _condition_node(name, kind, "IN", tuple(self._list()), self._source)
        if operator.kind == "sign" or operator.text in ("LIKE", "ILIKE"):
            sign = _SIGNS.get(operator.text, operator.text)
            value = self._value() if operator.kind == "sign" else self._pattern()
            return _condition_node(name, kind, sign, value, self._source)
        raise syntax_error(f"unexpected {operator.text!r} at {operator.at}")

    def _demand(self, text: str) -> None:
        if not self._takes(text):
            token = self._tokens[self._at]
            raise syntax_error(f"expected {text!r} at {token.at}, found {token.text!r}")

    def _property(self) -> tuple[str, str | None]:
        """Reads a name such as ``p.int_value``; returns the name and the type in its suffix, or
        None."""
        token = self._next()
        if token.kind not in ("word", "escaped"):
            raise syntax_error(f"unexpected {token.text!r} at {token.at}")
        parts = [token.text.strip("`")]
        while self._takes("."):
            token = self._next()
            if token.kind not in ("word", "escaped", "keyword"):
                raise syntax_error(f"unexpected {token.text!r} at {token.at}")
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
        """Reads a LIKE pattern, and returns it after :func:`unescape` of the string."""
        token = self._next()
        if token.kind != "text":
            raise InvalidParameterValue(_MISMATCH)
        return unescape(token.text[1:-1])

    def _value(self) -> Value:
        token = self._next()
        if token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
        if token.kind == "number":
            return _number(token)
        if token.kind == "word" and token.text in ("true", "false"):
            return token.text == "true"
        raise syntax_error(f"unexpected {token.text!r} at {token.at}")


def _number(token: KubeflowToken) -> int | float:
    if re.fullmatch(r"[-+]?\d+", token.text):
        if len(token.text) > 25:
            raise InvalidParameterValue(_MISMATCH)
        return int(token.text)
    return float(token.text)


def _condition(
    name: str,
    kind: str | None,
    operator: str,
    operand: Value | tuple[Value, ...],
    source: PropertySource,
) -> PropertyTest:
    if name in source.known:
        wanted = source.known[name]
        if wanted == TEXTS:
            return PropertyTest(name, True, {"": _membership(operator, operand)})
        value = _converted(operand, wanted)
        equal = value if operator == "=" and not isinstance(value, tuple) else None
        return PropertyTest(name, True, {"": _test(operator, value)}, equal)
    tests: dict[str, Test] = {}
    members = operand if isinstance(operand, tuple) else (operand,)
    for wanted in (kind,) if kind else SUFFIXES:
        if operator == "IN" and kind is None:
            fitting = tuple(member for member in members if wanted in _types(member))
            tests[wanted] = _test(operator, fitting)
        elif kind is not None or all(wanted in _types(member) for member in members):
            tests[wanted] = _test(operator, _converted(operand, wanted))
    return PropertyTest(name, False, tests)


def _membership(operator: str, operand: Value | tuple[Value, ...]) -> Test:
    holds = _test(operator, _converted(operand, TEXT))
    every = all if operator == "!=" else any
    return lambda values: every(map(holds, values))


def _types(value: Value) -> tuple[str, ...]:
    """Returns the types of custom properties to compare with a literal that has no type suffix."""
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
        return with_escapes(operand, ilike if operator == "ILIKE" else like)
    if isinstance(operand, bool) and operator not in ("=", "!="):
        raise InvalidParameterValue(_MISMATCH)
    compare = COMPARE[operator]
    return lambda value: compare(value, operand)
