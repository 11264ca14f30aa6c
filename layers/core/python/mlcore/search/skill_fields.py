"""The searchable fields of skills and their versions; see :mod:`mlcore.search.fields`.

MLflow parses the whole filter before it checks operators and kinds. So these fields accept all
operators, and the search itself refuses the wrong ones.
"""

from __future__ import annotations

from typing import Final

from mlcore.search.fields import (
    NUMBER,
    RUN,
    STRING,
    FieldKind,
    Operators,
    SearchableAttribute,
    SearchableEntity,
)

TAG_OPERATORS: Final = frozenset(("=", "!=", "LIKE", "ILIKE"))
TEXT_OPERATORS: Final = TAG_OPERATORS | {"IN", "NOT IN"}
NUMBER_OPERATORS: Final = frozenset(("=", "!=", "<", "<=", ">", ">="))

NULLABLE: Final = {
    name: f"{name}_order" for name in ("description", "status", "source_type", "digest")
}
"""Attributes that may be missing, and for each the field by which results are ordered; a missing
value is less than any other."""

_ANY: Final = Operators(
    TEXT_OPERATORS | NUMBER_OPERATORS | {"IS NULL", "IS NOT NULL", "RLIKE", "<>", "=="}, ""
)


class _AnyCase(frozenset[str]):
    """A set of lower-case words that contains a word in any case."""

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and super().__contains__(word.lower())


def _kind(kind: FieldKind) -> FieldKind:
    return kind._replace(operators=_ANY, sortable=False)


def _entity(
    name: str, texts: tuple[str, ...], numbers: tuple[str, ...], tie_break: tuple[str, ...]
) -> SearchableEntity:
    attributes = {
        **{text: SearchableAttribute(text, STRING) for text in texts},
        **{number: SearchableAttribute(number, NUMBER) for number in numbers},
    }
    ascending = tuple((field, True) for field in tie_break)
    return RUN._replace(
        name=name,
        kinds={word: _kind(kind) for word, kind in RUN.kinds.items()},
        attributes=attributes,
        sortable={NULLABLE.get(name, name): attribute for name, attribute in attributes.items()},
        operators={STRING: _ANY, NUMBER: _ANY},
        list_attributes=("status",),
        default_order=ascending,
        tie_break=ascending,
        words=_AnyCase(("organization", "version")),
        unlisted="Only 'status' supports IN and NOT IN comparisons, got '{key}'.",
        list_refusal=(
            "Comparator '{operator}' for {kind} '{key}' requires {expected}, got {value!r}."
        ),
    )


SKILL: Final = _entity(
    "skill",
    ("name", "organization", "description", "search_text", "status", "source_type"),
    ("created_at", "last_updated_at"),
    ("organization", "name"),
)
SKILL_VERSION: Final = _entity(
    "skill version",
    ("status", "organization", "source_type", "digest"),
    ("version", "created_at", "last_updated_at"),
    ("version",),
)
