"""The searchable fields of MCP servers, their versions and access endpoints; see
:mod:`mlcore.search.fields`.

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

OPERATORS: Final = frozenset(("=", "!=", "<", "<=", ">", ">=", "LIKE", "ILIKE", "IN", "NOT IN"))
"""The operators that attributes and tags allow."""

_ANY: Final = Operators(OPERATORS | {"IS NULL", "IS NOT NULL", "RLIKE", "<>", "=="}, "")
_TIMES: Final = {
    "created_at": SearchableAttribute("created_at", NUMBER),
    "last_updated_at": SearchableAttribute("last_updated_at", NUMBER),
}


def _texts(*names: str) -> dict[str, SearchableAttribute]:
    return {name: SearchableAttribute(name, STRING) for name in names}


def _kind(kind: FieldKind) -> FieldKind:
    return kind._replace(operators=_ANY, sortable=False)


def _entity(
    name: str,
    attributes: dict[str, SearchableAttribute],
    lists: tuple[str, ...],
    sortable: dict[str, SearchableAttribute],
    tie_break: tuple[tuple[str, bool], ...],
) -> SearchableEntity:
    return RUN._replace(
        name=name,
        kinds={word: _kind(kind) for word, kind in RUN.kinds.items()},
        attributes=attributes,
        sortable=sortable,
        operators={STRING: _ANY, NUMBER: _ANY},
        list_attributes=lists,
        integers_only=True,
        default_order=tie_break,
        tie_break=tie_break,
    )


MCP_SERVER: Final = _entity(
    "MCP server",
    {**_texts("name", "display_name", "status", "has_access_endpoints"), **_TIMES},
    ("name", "status"),
    {**_texts("name"), **_TIMES},
    (("name", True),),
)

MCP_SERVER_VERSION: Final = _entity(
    "MCP server version",
    {**_texts("name", "version", "status"), **_TIMES},
    ("status",),
    {**_texts("precedence", "version"), **_TIMES},
    (("created_at", True), ("version", True)),
)._replace(words=("version",))

MCP_SERVER_VERSION_MATCHED: Final = MCP_SERVER_VERSION._replace(
    attributes={**MCP_SERVER_VERSION.attributes, **_texts("precedence")}
)
"""The fields of :data:`MCP_SERVER_VERSION`, and ``precedence``, by which versions are compared."""

MCP_ACCESS_ENDPOINT: Final = _entity(
    "MCP access endpoint",
    {**_texts("status", "server_name", "transport_type"), **_TIMES},
    ("server_name",),
    {**_texts("endpoint_id", "server_name"), **_TIMES},
    (("endpoint_id", True),),
)._replace(words=("server_name",))
