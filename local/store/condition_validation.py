"""Checks that a condition satisfies DynamoDB's rules beyond its grammar, before an item is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from local.store.attribute_values import decimal, decoded
from local.store.errors import invalid
from local.store.parser import ConditionNode, Operand, Path

Given = dict[Any, Any]
"""Names or values of placeholders, by placeholder."""

Check = Callable[[str, Given, Given], None]
"""A function that takes the request's parameter, for error messages, and the names and values of
placeholders. It raises ClientError if its rule is broken."""

TYPES: Final = frozenset(("S", "N", "B", "SS", "NS", "BS", "M", "L", "BOOL", "NULL"))
ORDERED: Final = frozenset("SNB")
_SIZED: Final = TYPES - {"N", "BOOL", "NULL"}
_PATH_FUNCTIONS: Final = ("attribute_exists", "attribute_not_exists")
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
_RANGES: Final = ("<", "<=", ">", ">=", "BETWEEN")
_TWO_OPERANDS: Final = (*_COMPARISONS, "begins_with", "contains", "attribute_type")


def checks_of(condition: ConditionNode) -> tuple[Check, ...]:
    """Returns the checks that a condition must pass, and those of all conditions nested in it:
    functions that verify DynamoDB's rules."""
    return tuple(_checks(condition))


def _checks(condition: ConditionNode) -> Iterator[Check]:
    for inner in condition.conditions:
        yield from _checks(inner)
    kind, operands = condition.kind, condition.operands
    if kind in _PATH_FUNCTIONS and operands[0].kind != "path":
        yield _needs_path(kind)
    if kind == "attribute_type":
        yield _type_check(operands[1])
    if kind in _TWO_OPERANDS and all(operand.kind == "path" for operand in operands):
        yield _distinct_check(kind, operands[0].path, operands[1].path)
    allowed = ORDERED if kind in _RANGES else frozenset("SB") if kind == "begins_with" else None
    for operand in operands:
        if allowed and operand.kind == "value":
            yield _kind_check(kind, operand, allowed)
        if operand.kind == "size" and operand.arguments[0].kind == "value":
            yield _kind_check("size", operand.arguments[0], _SIZED)
    if kind == "BETWEEN" and operands[1].kind == operands[2].kind == "value":
        yield _bounds_check(operands[1], operands[2])


def _needs_path(function: str) -> Check:
    def check(parameter: str, _: Given, __: Given) -> None:
        raise invalid(
            f"Invalid {parameter}: Operator or function requires a document path; operator or "
            f"function: {function}"
        )

    return check


def _kind_check(function: str, operand: Operand, allowed: frozenset[str]) -> Check:
    def check(parameter: str, _: Given, values: Given) -> None:
        kind = next(iter(values[operand.path[0]]))
        if kind not in allowed:
            raise invalid(
                f"Invalid {parameter}: Incorrect operand type for operator or function; "
                f"operator or function: {function}, operand type: {kind}"
            )

    return check


def _type_check(operand: Operand) -> Check:
    def check(parameter: str, _: Given, values: Given) -> None:
        value = values[operand.path[0]] if operand.kind == "value" else {"a path": None}
        kind = next(iter(value))
        if kind != "S":
            raise invalid(
                f"Invalid {parameter}: Incorrect operand type for operator or function; "
                f"operator or function: attribute_type, operand type: {kind}"
            )
        if value["S"] not in TYPES:
            raise invalid(
                f"Invalid {parameter}: Invalid attribute type name found; type: {value['S']}, "
                "valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"
            )

    return check


def _distinct_check(operator: str, first: Path, second: Path) -> Check:
    def check(parameter: str, names: Given, _: Given) -> None:
        path, other = ([names.get(part, part) for part in each] for each in (first, second))
        if path == other:
            shown = ", ".join(f"[{part}]" if isinstance(part, int) else part for part in path)
            raise invalid(
                f"Invalid {parameter}: The first operand must be distinct from the remaining "
                f"operands for this operator or function; operator: {operator}, first operand: "
                f"[{shown}]"
            )

    return check


def _bounds_check(low: Operand, high: Operand) -> Check:
    def check(parameter: str, _: Given, values: Given) -> None:
        lower, upper = values[low.path[0]], values[high.path[0]]
        ((kind, content),), ((other_kind, other),) = lower.items(), upper.items()
        wrong = None
        if kind != other_kind:
            wrong = "same data type for lower and upper bounds"
        elif _ordered(kind, other) < _ordered(kind, content):
            wrong = "upper bound to be greater than or equal to lower bound"
        if wrong:
            raise invalid(
                f"Invalid {parameter}: The BETWEEN operator requires {wrong}; lower bound "
                f"operand: AttributeValue: {{{kind}:{content}}}, upper bound operand: "
                f"AttributeValue: {{{other_kind}:{other}}}"
            )

    return check


def _ordered(kind: str, content: str) -> Any:
    if kind == "N":
        return decimal(content)
    return content.encode() if kind == "S" else decoded(content)
