"""The filter language: text in, comparisons and orders out; owns what is accepted and never looks
at data.

A filter is a list of comparisons joined by AND; there is no OR, no parenthesis around a comparison,
no arithmetic. An order is one field, then ASC or DESC. Whatever is refused raises
InvalidParameterValue with MLflow's message.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search import tokens as t
from mlcore.search.clauses import (
    COMPARISON,
    IDENTIFIER,
    NULL_CHECK,
    PARENTHESIS,
    Item,
    Reader,
    clauses_of,
    join_aliases,
)
from mlcore.search.fields import ATTRIBUTE, NUMBER, Attribute, Entity, Kind, Operators, valid_keys

Value = str | int | float | tuple[str, ...] | None

_MAX_INT64 = 2**63 - 1
_QUOTABLE = (t.STRING, IDENTIFIER, PARENTHESIS)


class Comparison(NamedTuple):
    """One condition. ``key`` is an entity's own field name for attributes (aliases are resolved).

    ``value``: float for metrics, int or float for numeric attributes, str for texts, a tuple of
    str for IN and NOT IN, None for IS NULL and IS NOT NULL.
    """

    kind: str
    key: str
    operator: str
    value: Value


class OrderBy(NamedTuple):
    kind: str
    key: str
    ascending: bool


def parse_filter(text: str | None, entity: Entity) -> tuple[Comparison, ...]:
    """The comparisons of a filter, all of which must hold; none for an absent or empty filter."""
    # MLflow reads all clauses before it checks the first operator: the same refusal must win.
    clauses = [_clause(item, entity) for item in conditions_of(text, entity.clause, entity.words)]
    return tuple(_checked(comparison, operators) for comparison, operators in clauses)


def conditions_of(text: str | None, clause: str, words: Sequence[str] = ()) -> list[Item]:
    """The COMPARISON and NULL_CHECK items of a filter; ``clause`` shows what is neither, ``words``
    of SQL are names."""
    if not text:
        return []
    t.check_length(text)
    tokens = _tokens(text, words)
    if len(tokens) > t.MAX_TOKENS:
        raise InvalidParameterValue(f"Error on parsing filter '{text}'")
    if all(token.kind == t.SPACE for token in tokens):
        raise InvalidParameterValue(f"Invalid filter '{text}'. Could not be parsed.")
    items = clauses_of(text, tokens)
    strays = [item.text for item in items if item.kind not in (COMPARISON, NULL_CHECK)]
    if strays:
        shown = ", ".join(clause.format(found=stray) for stray in strays)
        raise InvalidParameterValue(f"Invalid clause(s) in filter string: {shown}")
    return items


def _tokens(text: str, words: Sequence[str]) -> list[t.Token]:
    tokens = t.tokenize(text)
    if not words:
        return tokens
    return [
        token._replace(kind=t.NAME) if text[token.start : token.end] in words else token
        for token in tokens
    ]


def parse_order_by(texts: Sequence[str], entity: Entity) -> tuple[OrderBy, ...]:
    """The orders, most significant first; a field named twice counts where it stands first."""
    orders: dict[tuple[str, str], OrderBy] = {}
    for text in texts:
        order = _order(text, entity)
        orders.setdefault((order.kind, order.key), order)
    return tuple(orders.values())


def _clause(item: Item, entity: Entity) -> tuple[Comparison, Operators]:
    left, sign, right = item.parts
    if left.kind != IDENTIFIER:
        raise InvalidParameterValue(
            f"Invalid comparison clause. Expected 'Identifier' found '{left.text}'"
        )
    kind, key = _field(left.text, entity, entity.attributes)
    operator = sign.text.upper() if entity.fold_operators else sign.text
    if item.kind == NULL_CHECK:
        if not kind.nullable:
            raise InvalidParameterValue(entity.not_nullable.format(label=kind.label, key=key))
        return Comparison(kind.name, key, operator, None), kind.operators
    if kind.name != ATTRIBUTE:
        return Comparison(kind.name, key, operator, _kind_value(kind, right)), kind.operators
    attribute = entity.attributes[key]
    value = _attribute_value(kind, key, attribute, right, entity)
    return Comparison(kind.name, attribute.name, operator, value), entity.operators[attribute.type]


def _checked(comparison: Comparison, operators: Operators) -> Comparison:
    operator, value = comparison.operator, comparison.value
    if operator not in operators.allowed:
        raise InvalidParameterValue(operators.refusal.format(operator=operator))
    if isinstance(value, tuple) != (operator in ("IN", "NOT IN")):
        raise InvalidParameterValue(f"Invalid comparator '{operator}' for value {value!r}")
    return comparison


def _field(text: str, entity: Entity, attributes: dict[str, Attribute]) -> tuple[Kind, str]:
    """Resolve ``kind.key`` or a bare attribute; the key without quotes, aliases unresolved."""
    word, dot, key = text.partition(".")
    if not dot:
        word, key = ATTRIBUTE, text
    if entity.quoted_kinds:
        word = without_quotes(word, "`")
    if word not in entity.kinds:
        raise InvalidParameterValue(entity.unknown_kind.format(found=word))
    kind = entity.kinds[word]
    key = without_quotes(without_quotes(key, "'\""), "`")
    if kind.name == ATTRIBUTE and key not in attributes:
        raise InvalidParameterValue(
            entity.unknown_attribute.format(key=key, valid=valid_keys(attributes))
        )
    if kind.keys and key not in kind.keys:
        raise InvalidParameterValue(kind.unknown_key.format(key=key, valid=valid_keys(kind.keys)))
    return kind, key


def _kind_value(kind: Kind, right: Item) -> Value:
    if kind.type == NUMBER:
        if right.kind in (t.INTEGER, t.FLOAT):
            return float(right.text)
    elif right.kind in (t.STRING, IDENTIFIER):
        return quoted(right.text)
    elif kind.lists and right.kind == PARENTHESIS:
        return list_of(right.text)
    raise InvalidParameterValue(kind.expects.format(label=kind.label, found=right.text))


def _attribute_value(
    kind: Kind, key: str, attribute: Attribute, right: Item, entity: Entity
) -> Value:
    if attribute.type == NUMBER and not (entity.quoted_numbers and right.kind in _QUOTABLE):
        return _number(key, right, entity.integers_only)
    if attribute.type == NUMBER and right.kind != PARENTHESIS:
        return _quoted_number(key, right)
    if right.kind in (t.STRING, IDENTIFIER):
        return quoted(right.text)
    if right.kind == PARENTHESIS:
        if key not in entity.list_attributes:
            raise InvalidParameterValue(
                f"Only {sorted(entity.list_attributes)} attributes support comparison with a list"
                " of quoted string values."
            )
        return list_of(right.text)
    if entity.numbers_for and right.kind in (t.INTEGER, t.FLOAT):
        raise InvalidParameterValue(
            f"Only the '{valid_keys(entity.numbers_for)}' attributes support comparison with "
            "numeric values."
        )
    raise InvalidParameterValue(kind.expects.format(found=right.text))


def _quoted_number(key: str, right: Item) -> int:
    text = quoted(right.text)
    try:
        value = int(text)
    except ValueError:
        value = _MAX_INT64 + 1
    if not -_MAX_INT64 - 1 <= value <= _MAX_INT64:
        raise InvalidParameterValue(f"Invalid value for numeric attribute '{key}': {text!r}")
    return value


def _number(key: str, right: Item, integers_only: bool) -> int | float:
    if right.kind == t.INTEGER:
        # An int64 has at most 19 digits; int() itself refuses absurd lengths with another
        # exception.
        value = int(right.text) if len(right.text) < 100 else _MAX_INT64 + 1
        if not -_MAX_INT64 - 1 <= value <= _MAX_INT64:
            raise InvalidParameterValue(
                f"Invalid value for numeric attribute '{key}': {right.text}"
            )
        return value
    if right.kind != t.FLOAT:
        raise InvalidParameterValue(
            f"Expected numeric value type for numeric attribute: {key}. Found {right.text}"
        )
    number = float(right.text)
    if integers_only:
        raise InvalidParameterValue(f"Invalid value for numeric attribute '{key}': {str(number)!r}")
    return number


def quoted(text: str) -> str:
    inner = without_quotes(text, "'\"")
    if inner is text:
        raise InvalidParameterValue(
            "Parameter value is either not quoted or unidentified quote types used for string value"
            f" {text}. Use either single or double quotes."
        )
    return inner


def without_quotes(text: str, quotes: str) -> str:
    """The same object if there are no quotes; those inside, doubled or escaped, stay."""
    if len(text) >= 2 and text[0] in quotes and text[0] == text[-1]:
        return text[1:-1]
    return text


def list_of(text: str) -> tuple[str, ...]:
    """The texts of a parenthesised list, which MLflow reads as a Python literal."""
    about = "While parsing a list in the query, expected "
    try:
        found = ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise InvalidParameterValue(
            f"{about}a non-empty list of string values, but got ill-formed list."
        ) from None
    values = found if isinstance(found, tuple) else (found,)
    if not values:
        raise InvalidParameterValue(f"{about}a non-empty list of string values, but got empty list")
    if not all(isinstance(value, str) for value in values):
        raise InvalidParameterValue(
            f"{about}string value, punctuation, or whitespace,"
            f" but got different type in list: {values}"
        )
    return values


def direction_of(text: str, words: Sequence[str] = ()) -> tuple[str, bool]:
    """The field of an order, and whether it ascends; ``words`` of SQL are names."""
    unreadable = f"Invalid order_by clause '{text}'. Could not be parsed."
    items = join_aliases(text, Reader(text, _tokens(text, words)).items())
    if len(items) != 1 or items[0].kind != IDENTIFIER or items[0].text != text:
        raise InvalidParameterValue(unreadable)
    try:
        words = shlex.split(text.replace("`", '"'))
    except ValueError:
        raise InvalidParameterValue(unreadable) from None
    if len(words) > 2:
        raise InvalidParameterValue(unreadable)
    field, ascending = text, True
    if len(words) == 2:
        field, direction = words[0], words[1].lower()
        if direction not in ("asc", "desc"):
            raise InvalidParameterValue(f"Invalid ordering key in order_by clause '{text}'.")
        ascending = direction == "asc"
    return field.strip(), ascending


def _order(text: str, entity: Entity) -> OrderBy:
    field, ascending = direction_of(text)
    kind, key = _field(field, entity, entity.sortable)
    if not kind.sortable:
        raise InvalidParameterValue(entity.unsortable.format(label=kind.label, key=key))
    if kind.name == ATTRIBUTE:
        key = entity.sortable[key].name
    return OrderBy(kind.name, key, ascending)
