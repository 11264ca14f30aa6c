"""Compiles the filter patterns of Lambda's event source mappings into predicates over stream
records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from local.template_definitions import RecordRequirement, TemplateError
from mlcore.models.base import Item

Predicate = Callable[[Any], bool]

_ABSENT = object()
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": lambda value, bound: value == bound,
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
}


def compile_filters(patterns: Iterable[str]) -> Predicate:
    """Returns a predicate that is true when any pattern matches; always true without patterns. The
    rules are Lambda's: all fields of a pattern have to match, the values of one field are
    alternatives, and an array in the record matches if any of its elements does. Raises
    TemplateError if a pattern is malformed or uses an unknown operator."""
    compiled = []
    for text in patterns:
        try:
            pattern = json.loads(text)
        except ValueError as error:
            raise TemplateError(f"filter pattern {text!r} is not JSON: {error}") from error
        compiled.append(_compile_object(pattern, text))
    if not compiled:
        return lambda _: True
    if len(compiled) == 1:
        return compiled[0]
    return lambda record: any(predicate(record) for predicate in compiled)


def record_requirements(patterns: Iterable[str]) -> tuple[RecordRequirement, ...] | None:
    """Returns, for each of an event source mapping's filter patterns, properties that every stream
    record has that the pattern matches; None if a pattern does not limit the types of items, or if
    there is no pattern."""
    requirements = [_record_requirement(json.loads(pattern)) for pattern in patterns]
    known = tuple(requirement for requirement in requirements if requirement is not None)
    return known if known and len(known) == len(requirements) else None


def _record_requirement(pattern: dict[str, Any]) -> RecordRequirement | None:
    dynamodb = pattern.get("dynamodb", {})
    for name in ("NewImage", "OldImage"):
        image = dynamodb.get(name, {})
        types = image.get(Item.type.attr_name, {}).get("S")
        if types and _are_texts(types):
            events = pattern.get("eventName")
            present = tuple(
                (attribute, kind)
                for attribute, rules in image.items()
                if isinstance(rules, dict)
                for kind, rule in rules.items()
                if rule == [{"exists": True}]
            )
            kinds = frozenset(events) if events and _are_texts(events) else None
            return RecordRequirement(kinds, name, frozenset(types), present)
    return None


def _are_texts(rules: list[Any]) -> bool:
    return all(isinstance(rule, str) for rule in rules)


def _compile_object(pattern: Any, text: str) -> Predicate:
    if not isinstance(pattern, dict) or not pattern:
        raise TemplateError(f"filter pattern {text!r}: an object is expected at {pattern!r}")
    fields: list[tuple[str, Predicate]] = []
    alternatives: list[list[Predicate]] = []
    for name, rule in pattern.items():
        if name == "$or":
            if not isinstance(rule, list) or not rule:
                raise TemplateError(f"filter pattern {text!r}: $or takes a list of objects")
            alternatives.append([_compile_object(item, text) for item in rule])
        elif isinstance(rule, list):
            fields.append((name, _compile_values(rule, text)))
        else:
            fields.append((name, _compile_object(rule, text)))

    def matches(record: Any) -> bool:
        if isinstance(record, list):
            return any(matches(element) for element in record)
        known = record if isinstance(record, dict) else {}
        for name, predicate in fields:
            if not predicate(known.get(name, _ABSENT)):
                return False
        return all(any(choice(record) for choice in choices) for choices in alternatives)

    return matches


def _compile_values(rules: list[Any], text: str) -> Predicate:
    if not rules:
        raise TemplateError(f"filter pattern {text!r}: an empty list matches nothing")
    if all(isinstance(rule, str) for rule in rules):
        texts = frozenset(rules)
        return _of_elements(lambda candidate: isinstance(candidate, str) and candidate in texts)
    predicates = [_compile_value(rule, text) for rule in rules]

    def matches(value: Any) -> bool:
        return any(predicate(value) for predicate in predicates)

    return matches


def _compile_value(rule: Any, text: str) -> Predicate:
    if not isinstance(rule, dict):
        return _of_elements(_equal(rule))
    if len(rule) != 1:
        raise TemplateError(f"filter pattern {text!r}: one operator is expected in {rule!r}")
    operator, argument = next(iter(rule.items()))
    if operator == "exists" and isinstance(argument, bool):
        # Only leaves exist: an object in this place does not count.
        return lambda value: (value is not _ABSENT and not isinstance(value, dict)) is argument
    if operator == "anything-but":
        inner = _excluded(argument, text)
        return lambda value: (
            value is not _ABSENT and _of_elements(lambda candidate: not inner(candidate))(value)
        )
    if operator == "numeric":
        return _of_elements(_numeric(argument, text))
    if isinstance(argument, str):
        if operator == "prefix":
            return _of_elements(
                lambda candidate: isinstance(candidate, str) and candidate.startswith(argument)
            )
        if operator == "suffix":
            return _of_elements(
                lambda candidate: isinstance(candidate, str) and candidate.endswith(argument)
            )
        if operator == "equals-ignore-case":
            folded = argument.casefold()
            return _of_elements(
                lambda candidate: isinstance(candidate, str) and candidate.casefold() == folded
            )
    raise TemplateError(f"filter pattern {text!r}: cannot read {rule!r}")


def _of_elements(predicate: Predicate) -> Predicate:
    def matches(value: Any) -> bool:
        if value is _ABSENT or isinstance(value, dict):
            return False
        if isinstance(value, list):
            return any(predicate(element) for element in value)
        return predicate(value)

    return matches


def _equal(expected: Any) -> Predicate:
    # JSON's true is not its 1, Python's is.
    boolean = isinstance(expected, bool)
    return lambda value: value == expected and isinstance(value, bool) is boolean


def _excluded(argument: Any, text: str) -> Predicate:
    if isinstance(argument, dict):
        return _compile_value(argument, text)
    alternatives = [
        _equal(item) for item in (argument if isinstance(argument, list) else [argument])
    ]
    return lambda value: any(equal(value) for equal in alternatives)


def _numeric(argument: Any, text: str) -> Predicate:
    if not isinstance(argument, list) or len(argument) not in {2, 4}:
        raise TemplateError(f"filter pattern {text!r}: numeric takes one or two comparisons")
    bounds = []
    for name, bound in zip(argument[::2], argument[1::2], strict=True):
        if name not in _COMPARISONS or not _is_number(bound):
            raise TemplateError(f"filter pattern {text!r}: cannot read numeric {argument!r}")
        bounds.append((_COMPARISONS[name], bound))
    return lambda value: _is_number(value) and all(holds(value, bound) for holds, bound in bounds)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
