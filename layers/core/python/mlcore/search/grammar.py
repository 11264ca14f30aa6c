"""Parses MLflow's filters and orders into comparisons and orderings.

A filter is a list of comparisons joined by AND; there is no OR, no parenthesis around a comparison,
no arithmetic. An order is one field, then ASC or DESC. Invalid input raises InvalidParameterValue
with MLflow's message.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Container, Sequence
from typing import Final, NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search import filter_tokens as t
from mlcore.search.clauses import (
    COMPARISON,
    IDENTIFIER,
    NULL_CHECK,
    PARENTHESIS,
    ClauseItem,
    ClauseReader,
    join_aliases,
    parse_clauses,
)
from mlcore.search.fields import (
    ATTRIBUTE,
    NUMBER,
    FieldKind,
    Operators,
    SearchableAttribute,
    SearchableEntity,
    valid_keys,
)

Value = str | int | float | tuple[str, ...] | None

MAX_ORDERINGS: Final = 100
"""Maximum number of ``order_by`` entries. MLflow's server joins a table for each metric, param or
tag in them, and its databases join at most 64."""
MAX_ORDERING_CHARACTERS: Final = 2_000
"""Maximum length of an ``order_by`` entry, which names one field: keys have at most 250."""
_MAX_INT64 = 2**63 - 1
_QUOTABLE = (t.STRING, IDENTIFIER, PARENTHESIS)


class Comparison(NamedTuple):
    """A condition of a filter. For attributes, ``key`` is the entity's field name, with aliases
    resolved.

    ``value``: float for metrics, int or float for numeric attributes, str for texts, a tuple of str
    for IN and NOT IN, None for IS NULL and IS NOT NULL.
    """

    kind: str
    key: str
    operator: str
    value: Value


class OrderBy(NamedTuple):
    kind: str
    key: str
    ascending: bool


def parse_filter(text: str | None, entity: SearchableEntity) -> tuple[Comparison, ...]:
    """Parses the filter of a search for ``entity`` to its comparisons, all of which must hold;
    returns () for an absent or empty filter."""
    # MLflow reads all clauses before it checks the first operator: the same refusal must win.
    clauses = [
        _clause(item, entity) for item in parse_conditions(text, entity.clause, entity.words)
    ]
    return tuple(_checked(comparison, operators, entity) for comparison, operators in clauses)


def parse_conditions(text: str | None, clause: str, words: Container[str] = ()) -> list[ClauseItem]:
    """Returns the COMPARISON and NULL_CHECK items of a filter.

    Args:
        clause: format of an invalid item in the error message; ``{found}`` is its text.
        words: SQL keywords to read as names.
    """
    if not text:
        return []
    t.check_length(text)
    tokens = _tokens(text, words)
    if len(tokens) > t.MAX_TOKENS:
        raise InvalidParameterValue(f"Error on parsing filter '{text}'")
    if all(token.kind == t.SPACE for token in tokens):
        raise InvalidParameterValue(f"Invalid filter '{text}'. Could not be parsed.")
    items = parse_clauses(text, tokens)
    strays = [item.text for item in items if item.kind not in (COMPARISON, NULL_CHECK)]
    if strays:
        shown = ", ".join(clause.format(found=stray) for stray in strays)
        raise InvalidParameterValue(f"Invalid clause(s) in filter string: {shown}")
    return items


def _tokens(text: str, words: Container[str]) -> list[t.Token]:
    tokens = t.tokenize(text)
    if not words:
        return tokens
    return [
        token._replace(kind=t.NAME) if text[token.start : token.end] in words else token
        for token in tokens
    ]


def parse_order_by(texts: Sequence[str], entity: SearchableEntity) -> tuple[OrderBy, ...]:
    """Parses the entries of a search's ``order_by`` to orderings, most significant first. Of a
    repeated field only the first entry counts. Raises InvalidParameterValue for a malformed entry,
    and for more than MAX_ORDERINGS entries."""
    check_ordering_count(texts)
    orders: dict[tuple[str, str], OrderBy] = {}
    for text in texts:
        order = _order(text, entity)
        orders.setdefault((order.kind, order.key), order)
    return tuple(orders.values())


def check_ordering_count(entries: Sequence[object]) -> None:
    """Checks that an ``order_by`` has at most MAX_ORDERINGS entries. Raises InvalidParameterValue
    otherwise."""
    if len(entries) > MAX_ORDERINGS:
        raise InvalidParameterValue(
            f"A search has at most {MAX_ORDERINGS} order_by entries; this one has {len(entries)}."
        )


def _clause(item: ClauseItem, entity: SearchableEntity) -> tuple[Comparison, Operators]:
    left, sign, right = item.parts
    if left.kind != IDENTIFIER:
        raise InvalidParameterValue(
            f"Invalid comparison clause. Expected 'Identifier' found '{left.text}'"
        )
    kind, key = _field(left.text, entity, entity.attributes)
    operator = sign.text.upper()
    if item.kind == NULL_CHECK:
        if not kind.nullable:
            raise InvalidParameterValue(entity.not_nullable.format(label=kind.label, key=key))
        return Comparison(kind.name, key, operator, None), kind.operators
    if kind.name != ATTRIBUTE:
        return Comparison(kind.name, key, operator, _kind_value(kind, right)), kind.operators
    attribute = entity.attributes[key]
    value = _attribute_value(kind, key, attribute, right, entity)
    return Comparison(kind.name, attribute.name, operator, value), entity.operators[attribute.type]


def _checked(comparison: Comparison, operators: Operators, entity: SearchableEntity) -> Comparison:
    kind, key, operator, value = comparison
    if operator not in operators.allowed:
        raise InvalidParameterValue(operators.refusal.format(operator=operator))
    value_is_list = isinstance(value, tuple)
    if value_is_list != (operator in ("IN", "NOT IN")):
        raise InvalidParameterValue(
            entity.list_refusal.format(
                operator=operator,
                kind=kind,
                key=key,
                value=value,
                expected="a single value" if value_is_list else "a parenthesized list of values",
            )
        )
    return comparison


def _field(
    text: str, entity: SearchableEntity, attributes: dict[str, SearchableAttribute]
) -> tuple[FieldKind, str]:
    """Returns the kind and the key of a field that a filter names as ``kind.key``, or as the bare
    name of an attribute. The key has no quotes; an alias stays as it is. Raises
    InvalidParameterValue if the entity has no such field."""
    word, dot, key = text.partition(".")
    if not dot:
        word, key = ATTRIBUTE, text
    if entity.quoted_kinds:
        word = strip_quotes(word, "`")
    if word not in entity.kinds:
        raise InvalidParameterValue(entity.unknown_kind.format(found=word, field=text))
    kind = entity.kinds[word]
    key = strip_quotes(strip_quotes(key, "'\""), "`")
    if kind.name == ATTRIBUTE and key not in attributes:
        raise InvalidParameterValue(
            entity.unknown_attribute.format(key=key, valid=valid_keys(attributes))
        )
    if kind.keys and key not in kind.keys:
        raise InvalidParameterValue(kind.unknown_key.format(key=key, valid=valid_keys(kind.keys)))
    return kind, key


def _kind_value(kind: FieldKind, right: ClauseItem) -> Value:
    if kind.type == NUMBER:
        if right.kind in (t.INTEGER, t.FLOAT):
            return float(right.text)
    elif right.kind in (t.STRING, IDENTIFIER):
        return unquote_required(right.text)
    elif kind.lists and right.kind == PARENTHESIS:
        return parse_list(right.text)
    raise InvalidParameterValue(kind.expects.format(label=kind.label, found=right.text))


def _attribute_value(
    kind: FieldKind,
    key: str,
    attribute: SearchableAttribute,
    right: ClauseItem,
    entity: SearchableEntity,
) -> Value:
    if entity.quotes_optional:
        return strip_quotes(right.text, "'\"").strip()
    if attribute.type == NUMBER and not (entity.quoted_numbers and right.kind in _QUOTABLE):
        return _number(key, right, entity.integers_only)
    if attribute.type == NUMBER and right.kind != PARENTHESIS:
        return _quoted_number(key, right)
    if right.kind in (t.STRING, IDENTIFIER):
        return unquote_required(right.text)
    if right.kind == PARENTHESIS:
        if key not in entity.list_attributes:
            raise InvalidParameterValue(
                entity.unlisted.format(valid=sorted(entity.list_attributes), key=key)
            )
        return parse_list(right.text)
    if entity.numbers_for and right.kind in (t.INTEGER, t.FLOAT):
        raise InvalidParameterValue(
            f"Only the '{valid_keys(entity.numbers_for)}' attributes support comparison with "
            "numeric values."
        )
    raise InvalidParameterValue(kind.expects.format(found=right.text))


def _quoted_number(key: str, right: ClauseItem) -> int:
    text = unquote_required(right.text)
    try:
        value = int(text)
    except ValueError:
        value = _MAX_INT64 + 1
    if not -_MAX_INT64 - 1 <= value <= _MAX_INT64:
        raise InvalidParameterValue(f"Invalid value for numeric attribute '{key}': {text!r}")
    return value


def _number(key: str, right: ClauseItem, integers_only: bool) -> int | float:
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


def unquote_required(text: str) -> str:
    """Returns a filter's value without its quotes. Raises InvalidParameterValue if it has none."""
    inner = strip_quotes(text, "'\"")
    if inner is text:
        raise InvalidParameterValue(
            "Parameter value is either not quoted or unidentified quote types used for string value"
            f" {text}. Use either single or double quotes."
        )
    return inner


def strip_quotes(text: str, quotes: str) -> str:
    """Returns a text of a filter or an order without its surrounding quotes; the same object if it
    has none.

    Quotes inside the text, doubled or escaped, are kept.
    """
    if len(text) >= 2 and text[0] in quotes and text[0] == text[-1]:
        return text[1:-1]
    return text


def parse_list(text: str) -> tuple[str, ...]:
    """Returns the strings of a filter's list in parentheses, which MLflow reads as a Python
    literal."""
    about = "While parsing a list in the query, expected "
    try:
        literal = ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise InvalidParameterValue(
            f"{about}a non-empty list of string values, but got ill-formed list."
        ) from None
    values = literal if isinstance(literal, tuple) else (literal,)
    if not values:
        raise InvalidParameterValue(f"{about}a non-empty list of string values, but got empty list")
    if not all(isinstance(value, str) for value in values):
        raise InvalidParameterValue(
            f"{about}string value, punctuation, or whitespace,"
            f" but got different type in list: {values}"
        )
    return values


def parse_direction(text: str, words: Container[str] = ()) -> tuple[str, bool]:
    """Returns the field of an ``order_by`` entry, and whether the order is ascending. ``words`` are
    SQL keywords to read as names. Raises InvalidParameterValue for an entry that is not one field,
    perhaps with ``asc`` or ``desc``, or is longer than MAX_ORDERING_CHARACTERS."""
    if len(text) > MAX_ORDERING_CHARACTERS:  # shlex takes time in proportion to its square
        raise InvalidParameterValue(
            f"An order_by entry has at most {MAX_ORDERING_CHARACTERS} characters; this one has "
            f"{len(text)}."
        )
    unreadable = f"Invalid order_by clause '{text}'. Could not be parsed."
    items = join_aliases(text, ClauseReader(text, _tokens(text, words)).items())
    if len(items) != 1 or items[0].kind != IDENTIFIER or items[0].text != text:
        raise InvalidParameterValue(unreadable)
    try:
        parts = shlex.split(text.replace("`", '"'))
    except ValueError:
        raise InvalidParameterValue(unreadable) from None
    if len(parts) > 2:
        raise InvalidParameterValue(unreadable)
    field, ascending = text, True
    if len(parts) == 2:
        field, direction = parts[0], parts[1].lower()
        if direction not in ("asc", "desc"):
            raise InvalidParameterValue(f"Invalid ordering key in order_by clause '{text}'.")
        ascending = direction == "asc"
    return field.strip(), ascending


def _order(text: str, entity: SearchableEntity) -> OrderBy:
    field, ascending = parse_direction(text)
    kind, key = _field(field, entity, entity.sortable)
    if not kind.sortable:
        raise InvalidParameterValue(entity.unsortable.format(label=kind.label, key=key))
    if kind.name == ATTRIBUTE:
        key = entity.sortable[key].name
    return OrderBy(kind.name, key, ascending)
