"""Evaluates DynamoDB's condition and filter expressions on items. Caches compiled texts."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from local.store.attribute_values import Raw, decimal, decoded
from local.store.condition_validation import ORDERED, Check, Given, checks_of
from local.store.parser import ConditionNode, Operand, Path, parse_condition

Evaluate = Callable[[Raw, Given, Given], Any]
"""A function that takes an item, the names and the values of placeholders, and returns a value
or None."""

Holds = Callable[[Raw, Given, Given], bool]


class CompiledCondition(NamedTuple):
    """A compiled condition expression of DynamoDB. ``names`` and ``values`` are the placeholders in
    the expression, ``paths`` the document paths in it.
    """

    holds: Holds
    names: frozenset[str]
    values: frozenset[str]
    paths: tuple[Path, ...]
    checks: tuple[Check, ...]


_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MEMBERS: Final = {"SS": "S", "NS": "N", "BS": "B"}


def value_at(item: Raw, path: Path, names: Given) -> Raw | None:
    """Returns the value that an item has at a document path; None if there is none."""
    first = path[0]
    value: Raw | None = item.get(names.get(first, first))
    for part in path[1:]:
        if value is None:
            return None
        if isinstance(part, int):
            members = value.get("L", ())
            value = members[part] if part < len(members) else None
        else:
            value = value.get("M", {}).get(names.get(part, part))
    return value


def placeholders(paths: Iterator[Path]) -> frozenset[str]:
    """Returns the placeholders for attribute names, such as ``#n``, that occur in these document
    paths."""
    return frozenset(
        part for path in paths for part in path if isinstance(part, str) and part[0] == "#"
    )


def operands_of(condition: ConditionNode) -> Iterator[Operand]:
    """Yields all operands of a condition expression, including nested ones."""
    for inner in condition.conditions:
        yield from operands_of(inner)
    for operand in condition.operands:
        yield from nested_operands(operand)


def nested_operands(operand: Operand) -> Iterator[Operand]:
    """Yields an operand of a condition or update expression and the operands that are its
    arguments, recursively."""
    yield operand
    for argument in operand.arguments:
        yield from nested_operands(argument)


@functools.lru_cache(2048)
def compiled_condition(parameter: str, text: str) -> CompiledCondition:
    """Compiles the text of a DynamoDB condition. ``parameter`` is the request parameter that holds
    the text, such as ``FilterExpression``; error messages name this parameter.

    Raises:
        ClientError: ValidationException, if the text is not a valid condition.
    """
    tree = parse_condition(parameter, text)
    operands = list(operands_of(tree))
    paths = tuple(operand.path for operand in operands if operand.kind == "path")
    return CompiledCondition(
        _compile(tree),
        placeholders(iter(paths)),
        frozenset(str(operand.path[0]) for operand in operands if operand.kind == "value"),
        paths,
        checks_of(tree),
    )


def _compile(condition: ConditionNode) -> Holds:
    kind = condition.kind
    if kind in ("AND", "OR"):
        return _joined(kind, tuple(map(_compile, condition.conditions)))
    if kind == "NOT":
        inner = _compile(condition.conditions[0])
        return lambda item, names, values: not inner(item, names, values)
    operands = tuple(map(evaluation, condition.operands))
    if kind == "attribute_exists":
        return lambda item, names, values: operands[0](item, names, values) is not None
    if kind == "attribute_not_exists":
        return lambda item, names, values: operands[0](item, names, values) is None
    if kind == "IN":
        return lambda item, names, values: _is_in(
            *(operand(item, names, values) for operand in operands)
        )
    if kind == "BETWEEN":
        return lambda item, names, values: _is_between(
            *(operand(item, names, values) for operand in operands)
        )
    decide = _DECISIONS.get(kind) or functools.partial(_compares, _COMPARE[kind])
    left, right = operands
    return lambda item, names, values: decide(left(item, names, values), right(item, names, values))


def _joined(kind: str, parts: tuple[Holds, ...]) -> Holds:
    ends_with = kind == "OR"

    def holds(item: Raw, names: Given, values: Given) -> bool:
        for part in parts:
            if part(item, names, values) == ends_with:
                return ends_with
        return not ends_with

    return holds


def evaluation(operand: Operand) -> Evaluate:
    """Returns a function that computes the value of a path, a placeholder or the function ``size``
    from an item and the request's ExpressionAttributeNames and ExpressionAttributeValues."""
    path = operand.path
    if operand.kind == "value":
        placeholder = path[0]
        return lambda _, __, values: values[placeholder]
    if operand.kind == "size":
        inner = evaluation(operand.arguments[0])
        return lambda item, names, values: _length(inner(item, names, values))
    if len(path) == 1:
        name = path[0]
        return lambda item, names, _: item.get(names.get(name, name))
    return lambda item, names, _: value_at(item, path, names)


def _length(value: Raw | None) -> Raw | None:
    """Returns the result of DynamoDB's function ``size``, as a number value: the UTF-16 units of a
    text (as the engines dynoxide and ExtendDB count), the bytes of binary content, or the number of
    members. Returns None for other types; a comparison with None is false.
    """
    if value is None:
        return None
    ((kind, content),) = value.items()
    if kind in ("N", "BOOL", "NULL"):
        return None
    if kind == "B":
        return {"N": str(len(decoded(content)))}
    if kind == "S" and not content.isascii():
        return {"N": str(len(content.encode("utf-16-le")) // 2)}
    return {"N": str(len(content))}


def _equals(left: Raw | None, right: Raw | None) -> bool:
    return left is not None and left == right


def _differs(left: Raw | None, right: Raw | None) -> bool:
    return not _equals(left, right)


def _comparable(value: Raw) -> tuple[str, Any]:
    ((kind, content),) = value.items()
    if kind == "S":
        return kind, content if content.isascii() else content.encode()
    if kind == "N":
        return kind, decimal(content)
    return kind, decoded(content) if kind == "B" else content


def _compares(compare: Callable[[Any, Any], bool], left: Raw | None, right: Raw | None) -> bool:
    if left is None or right is None:
        return False
    (kind, content), (other_kind, other) = _comparable(left), _comparable(right)
    if kind != other_kind or kind not in ORDERED:
        return False
    if isinstance(content, str) != isinstance(other, str):  # one is ASCII, the other UTF-8
        content, other = left[kind].encode(), right[kind].encode()
    return compare(content, other)


def _is_between(value: Raw | None, low: Raw | None, high: Raw | None) -> bool:
    return _compares(operator.ge, value, low) and _compares(operator.le, value, high)


def _is_in(value: Raw | None, *members: Raw | None) -> bool:
    return value is not None and value in members


def _has_type(value: Raw | None, kind: Raw | None) -> bool:
    return value is not None and kind is not None and kind["S"] in value


def _begins_with(value: Raw | None, prefix: Raw | None) -> bool:
    if value is None or prefix is None:
        return False
    if "S" in value and "S" in prefix:
        return bool(value["S"].startswith(prefix["S"]))
    if "B" in value and "B" in prefix:
        return decoded(value["B"]).startswith(decoded(prefix["B"]))
    return False


def _contains(value: Raw | None, member: Raw | None) -> bool:
    if value is None or member is None:
        return False
    ((kind, content),) = value.items()
    if kind == "L":
        return member in content
    ((member_kind, part),) = member.items()
    if kind in _MEMBERS:
        return _MEMBERS[kind] == member_kind and part in content
    if kind != member_kind or kind not in ("S", "B"):
        return False
    return decoded(part) in decoded(content) if kind == "B" else part in content


_DECISIONS: Final[dict[str, Callable[[Raw | None, Raw | None], bool]]] = {
    "=": _equals,
    "<>": _differs,
    "attribute_type": _has_type,
    "begins_with": _begins_with,
    "contains": _contains,
}
