"""Metadata queries of SQL tools: SHOW, DESCRIBE and ``system.information_schema``. The results are
the same for every caller and depend on neither rows nor workspaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import exp

from mltables.dialect.parser import Reader
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.result_types import databricks_type
from mltables.table_definitions import TABLES
from mltables.views import VIEWS

CATALOG: Final = "system"
SCHEMA: Final = "mlflow"
INFORMATION: Final = "information_schema"
_VIEWS: Final = {
    view: [(name, kind, True) for name, kind in VIEWS[view].columns.items()] for view in VIEWS
}
_COLUMNS: Final = dict(
    sorted(
        {
            **{
                table.name: [(name, kind, null) for name, kind, _, null in table.columns]
                for table in TABLES
            },
            **_VIEWS,
        }.items()
    )
)
"""(name, type in DuckDB, nullable) of the columns of each table and view, by name."""

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def unknown_table(name: str) -> StatementRefused:
    *names, last = (f"{CATALOG}.{SCHEMA}.{table}" for table in _COLUMNS)
    return StatementRefused(f"There is no table {name}. There are {', '.join(names)} and {last}.")


def metadata_query(text: str) -> str | None:
    """Translates an SQL statement SHOW or DESCRIBE to a query for DuckDB; None for any other
    statement. Raises StatementRefused if the statement names something that does not exist or is
    not supported."""
    words = [token.text for token in Reader().tokenize(text)]
    if len(words) > 1 and words[0].upper() == "SHOW":
        # sqlglot reads the rest of the statement as one token.
        words = ["SHOW", *(token.text for token in Reader().tokenize(words[1]))]
    while words and words[-1] == ";":
        words.pop()
    if not words:
        return None
    verb, rest = words[0].upper(), words[1:]
    if verb == "SHOW" and rest:
        return _query(*_shown(rest))
    if verb in {"DESCRIBE", "DESC"} and rest:
        return _query(*_described(rest))
    return None


def information_schema_table(name: str) -> exp.Expr | None:
    """Returns a table of ``information_schema`` as a subquery; None if the name is unknown."""
    rows = _INFORMATION.get(name)
    if rows is None:
        return None
    from mltables.dialect.row_generators import Duck  # noqa: PLC0415 -- which asks here for no table

    return exp.Subquery(this=Duck(this=_query(*rows()), expressions=[]))


def _shown(words: Sequence[str]) -> Rows:
    kind, rest = words[0].upper(), list(words[1:])
    if kind == "TABLES":
        relation, pattern = _name_and_pattern(rest, ["IN", "FROM"])
        if relation not in ((), (SCHEMA,), (CATALOG, SCHEMA)):
            raise StatementRefused(
                f"There is no schema {'.'.join(relation)}. There is system.mlflow."
            )
        rows = [(SCHEMA, name, False) for name in _COLUMNS if _is_like(name, pattern)]
        return ("database", "tableName", "isTemporary"), rows
    if kind == "COLUMNS" and rest and rest[0].upper() in {"IN", "FROM"}:
        for at in range(1, len(rest)):
            # SHOW COLUMNS IN runs_latest IN system.mlflow
            if rest[at].upper() in {"IN", "FROM"}:
                rest = [rest[0], *rest[at + 1 :], ".", *rest[1:at]]
                break
        name, _ = _name_and_pattern(rest, ["IN", "FROM"])
        return ("col_name",), [(column,) for column, *_ in _columns_of(name)]
    if kind in {"SCHEMAS", "DATABASES"}:
        relation, pattern = _name_and_pattern(rest, ["IN", "FROM"])
        if relation not in ((), (CATALOG,)):
            raise StatementRefused(f"There is no catalog {'.'.join(relation)}. There is system.")
        schemas = [name for name in (INFORMATION, SCHEMA) if _is_like(name, pattern)]
        return ("databaseName",), [(name,) for name in schemas]
    if kind == "CATALOGS":
        return ("catalog",), [(CATALOG,)]
    if kind == "VIEWS":
        names = ("namespace", "viewName", "isTemporary", "isMaterialized")
        return names, [(SCHEMA, name, False, False) for name in _VIEWS]
    raise StatementRefused("SHOW knows TABLES, COLUMNS, SCHEMAS, CATALOGS and VIEWS here.")


def _described(words: Sequence[str]) -> Rows:
    rest = list(words)
    while rest and rest[0].upper() in {"TABLE", "EXTENDED", "FORMATTED"}:
        rest = rest[1:]
    if not rest or rest[0].upper() in {"QUERY", "SELECT", "WITH", "FUNCTION", "HISTORY", "DETAIL"}:
        raise StatementRefused(
            "DESCRIBE takes one of the tables, such as system.mlflow.runs_latest."
        )
    names = ("col_name", "data_type", "comment")
    if rest[0].upper() in {"SCHEMA", "DATABASE"}:
        relation, _ = _name_and_pattern(["IN", *rest[1:]], ["IN"])
        if relation not in ((SCHEMA,), (CATALOG, SCHEMA)):
            raise StatementRefused(
                f"There is no schema {'.'.join(relation)}. There is system.mlflow."
            )
        facts = [("Catalog Name", CATALOG), ("Namespace Name", SCHEMA), ("Comment", "")]
        return ("database_description_item", "database_description_value"), facts
    name, _ = _name_and_pattern(["IN", *rest], ["IN"])
    rows = [(column, databricks_type(kind).lower(), None) for column, kind, _ in _columns_of(name)]
    return names, rows


def _name_and_pattern(
    words: Sequence[str], before: Sequence[str]
) -> tuple[tuple[str, ...], str | None]:
    """Parses the rest of a SHOW or DESCRIBE statement. Returns the dotted name after one of the
    words ``before`` (IN, FROM), and the pattern (LIKE before it is optional; None without a
    pattern)."""
    rest, name = list(words), []
    if rest and rest[0].upper() in before:
        rest = rest[1:]
        while rest:
            name.append(rest.pop(0).lower())
            if not rest or rest[0] != ".":
                break
            rest.pop(0)
    if rest and rest[0].upper() == "LIKE":
        rest = rest[1:]
    if len(rest) > 1:
        raise StatementRefused(f"This cannot be read: {' '.join(rest)[:100]}")
    return tuple(name), rest[0] if rest else None


def _is_like(name: str, pattern: str | None) -> bool:
    """Whether a name matches a pattern of SHOW: ``*`` is any text, ``|`` separates alternatives."""
    if pattern is None:
        return True
    import re  # noqa: PLC0415 -- of this rare statement alone

    choices = (
        re.escape(alternative).replace(r"\*", ".*") for alternative in pattern.lower().split("|")
    )
    return any(re.fullmatch(choice, name) for choice in choices)


def _columns_of(relation: tuple[str, ...]) -> list[tuple[str, str, bool]]:
    if relation[:-1] not in ((), (SCHEMA,), (CATALOG, SCHEMA)) or relation[-1:] == ():
        raise unknown_table(".".join(relation))
    if relation[-1] not in _COLUMNS:
        raise unknown_table(".".join(relation))
    return _COLUMNS[relation[-1]]


def _tables() -> Rows:
    names = (
        "table_catalog",
        "table_schema",
        "table_name",
        "table_type",
        "is_insertable_into",
        "commit_action",
        "table_owner",
        "comment",
        "data_source_format",
    )
    rows = [
        (
            *(CATALOG, SCHEMA, name, "VIEW" if name in _VIEWS else "MANAGED", "NO", "PRESERVE"),
            *("System user", None, "UNKNOWN_DATA_SOURCE_FORMAT" if name in _VIEWS else "DELTA"),
        )
        for name in _COLUMNS
    ]
    return names, rows


def _columns() -> Rows:
    names = (
        "table_catalog",
        "table_schema",
        "table_name",
        "column_name",
        "ordinal_position",
        "column_default",
        "is_nullable",
        "full_data_type",
        "data_type",
        "comment",
    )
    rows = []
    for table, columns in _COLUMNS.items():
        for index, (column, kind, nullable) in enumerate(columns):
            full = databricks_type(kind).lower()
            shown = full.split("<")[0].upper().replace("BIGINT", "LONG")
            null = "YES" if nullable else "NO"
            rows.append((CATALOG, SCHEMA, table, column, index, None, null, full, shown, None))
    return names, rows


def _schemata() -> Rows:
    names = ("catalog_name", "schema_name", "schema_owner", "comment")
    return names, [(CATALOG, name, "System user", None) for name in (INFORMATION, SCHEMA)]


def _catalogs() -> Rows:
    return ("catalog_name", "catalog_owner", "comment"), [(CATALOG, "System user", None)]


_INFORMATION: Final[dict[str, Callable[[], Rows]]] = {
    "tables": _tables,
    "columns": _columns,
    "schemata": _schemata,
    "catalogs": _catalogs,
}


def _query(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """Returns a DuckDB query for the rows, in their order."""
    listed = ", ".join(f'"{name}"' for name in names)
    kinds = dict.fromkeys(range(len(names)), "VARCHAR")
    if not rows:
        empty = ", ".join(f'CAST(NULL AS VARCHAR) AS "{name}"' for name in names)
        return f"SELECT {empty} WHERE false"
    for index, value in enumerate(rows[0]):
        if isinstance(value, bool):
            kinds[index] = "BOOLEAN"
        elif isinstance(value, int):
            kinds[index] = "INTEGER"
    values = ", ".join(
        "(" + ", ".join(f"CAST({_constant(v)} AS {kinds[p]})" for p, v in enumerate(row)) + ")"
        for row in rows
    )
    return f"SELECT {listed} FROM (VALUES {values}) AS inner_rows({listed})"


def _constant(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower()
