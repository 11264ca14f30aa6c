"""Key conditions of DynamoDB's Query: one partition, and a range of its sort key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from local.store.attribute_values import Raw
from local.store.conditions import placeholders
from local.store.errors import invalid
from local.store.parser import ConditionNode, Operand, parse_condition
from local.store.placeholders import Placeholders
from local.store.schema import Index

_PARAMETER = "KeyConditionExpression"
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class KeyBound(NamedTuple):
    text: str
    inclusive: bool


class KeyRange(NamedTuple):
    """The part of a partition that a Query reads: the entries between two bounds of the sort key.
    None means no bound.
    """

    partition: str
    low: KeyBound | None
    high: KeyBound | None

    def holds(self, text: str) -> bool:
        """Whether a sort key is within the bounds of this range of a Query."""
        low, high = self.low, self.high
        if low and not (_order(low.text) < _order(text) or (low.inclusive and low.text == text)):
            return False
        return (
            not high or _order(text) < _order(high.text) or (high.inclusive and high.text == text)
        )


def key_range(request: Raw, index: Index, given: Placeholders) -> KeyRange:
    """Parses the key condition of a Query request for an index or the table. Returns the value of
    the partition key and the bounds of the sort key.

    Raises:
        ClientError: the condition is missing or invalid, has no equality of the partition key, or
            has more parts than DynamoDB allows.
    """
    text = request.get(_PARAMETER)
    if text is None:
        raise invalid(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the "
            "request."
        )
    tree = parse_condition(_PARAMETER, text)
    parts = tree.conditions if tree.kind == "AND" else (tree,)
    operands = [operand for part in parts for operand in part.operands]
    given.use(
        _PARAMETER,
        placeholders(operand.path for operand in operands if operand.kind == "path"),
        [str(operand.path[0]) for operand in operands if operand.kind == "value"],
    )
    partition: str | None = None
    low: KeyBound | None = None
    high: KeyBound | None = None
    has_range = False
    for name, kind, texts in _comparisons(parts, index, given):
        if name == index.partition:
            if kind != "=":
                raise invalid("Query key condition not supported")
            if partition is not None:
                raise _too_many()
            if not texts[0]:
                raise invalid(
                    "One or more parameter values are not valid. The AttributeValue for a key "
                    f"attribute cannot contain an empty string value. Key: {name}"
                )
            partition = texts[0]
        elif name == index.sort:
            if has_range:
                raise _too_many()
            has_range = True
            low, high = _bounds(kind, texts)
        else:
            raise invalid(f"Query condition missed key schema element: {index.sort}")
    if partition is None:
        raise invalid(f"Query condition missed key schema element: {index.partition}")
    return KeyRange(partition, low, high)


def _too_many() -> Exception:
    return invalid("KeyConditionExpressions must only contain one condition per key")


def _comparisons(
    parts: tuple[ConditionNode, ...], index: Index, given: Placeholders
) -> Iterator[tuple[str, str, list[str]]]:
    """Yields (attribute name, comparison operator, compared texts) for each part of a key
    condition.
    """
    for part in parts:
        kind, operands = part.kind, part.operands
        if kind in _MIRRORED and operands[0].kind == "value":
            kind, operands = _MIRRORED[kind], operands[::-1]
        if kind not in (*_MIRRORED, "BETWEEN", "begins_with"):
            raise invalid(f"Invalid operator used in KeyConditionExpression: {kind}")
        path, *values = operands
        if path.kind != "path" or len(path.path) != 1 or any(v.kind != "value" for v in values):
            raise invalid(
                "Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on "
                "nested attributes"
            )
        name = str(given.names.get(path.path[0], path.path[0]))
        texts = [_text(name, index, operand, given) for operand in values]
        yield name, kind, texts


def _text(name: str, index: Index, operand: Operand, given: Placeholders) -> str:
    value = given.values[operand.path[0]]
    if "S" not in value:
        if name not in (index.partition, index.sort):
            raise invalid(f"Query condition missed key schema element: {index.sort}")
        raise invalid(
            "One or more parameter values were invalid: Condition parameter type does not match "
            "schema type"
        )
    text: str = value["S"]
    return text


def _bounds(kind: str, texts: list[str]) -> tuple[KeyBound | None, KeyBound | None]:
    first = texts[0]
    if kind == "=":
        return KeyBound(first, True), KeyBound(first, True)
    if kind == "BETWEEN":
        if _order(texts[1]) < _order(first):
            raise invalid(
                "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be "
                "greater than or equal to lower bound; lower bound operand: AttributeValue: "
                f"{{S:{first}}}, upper bound operand: AttributeValue: {{S:{texts[1]}}}"
            )
        return KeyBound(first, True), KeyBound(texts[1], True)
    if kind == "begins_with":
        end = _after_prefix(first)
        return KeyBound(first, True), None if end is None else KeyBound(end, False)
    bound = KeyBound(first, kind.endswith("="))
    return (bound, None) if kind.startswith(">") else (None, bound)


def _order(text: str) -> bytes:
    """Returns the text's UTF-8 bytes. Their order is the sort order of DynamoDB and SQLite."""
    return text.encode()


def _after_prefix(prefix: str) -> str | None:
    """Returns the smallest text that sorts after all texts with this prefix; None if there is
    none."""
    last_code_point, before_surrogates, after_surrogates = 0x10FFFF, 0xD7FF, 0xE000
    kept = prefix.rstrip(chr(last_code_point))
    if not kept:
        return None
    code = ord(kept[-1])
    following = after_surrogates if code == before_surrogates else code + 1
    return kept[:-1] + chr(following)
