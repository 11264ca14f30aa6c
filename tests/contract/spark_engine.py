"""A database with the small tables of ``tests/contract/spark``, asked through the gate of SQL."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

ANSWERS = Path(__file__).with_name("spark")


class Engine:
    """Statements through the gate, in a database with the small tables."""

    def __init__(self) -> None:
        self.gate = pytest.importorskip("mltables.statement_check")
        from mltables.dialect import macros  # noqa: PLC0415
        from mltables.duckdb_connection import connect  # noqa: PLC0415

        self.connection = connect(None)
        self.connection.execute("CREATE SCHEMA mlflow")
        self.made: set[str] = set()
        macros.set_arithmetic_errors(self.connection)
        self._fill()

    def _fill(self) -> None:
        from mltables.table_definitions import TABLES  # noqa: PLC0415
        from mltables.views import VIEWS  # noqa: PLC0415

        rows = json.loads((ANSWERS / "tables.json").read_text("utf-8"))
        for table in TABLES:
            kinds = ", ".join(f"{name} {kind}" for name, kind, *_ in table.columns)
            self.connection.execute(f"CREATE TABLE mlflow.{table.name} ({kinds})")
            places = ", ".join("?" for _ in table.columns)
            for row in rows.get(table.name, []):
                self.connection.execute(
                    f"INSERT INTO mlflow.{table.name} VALUES ({places})", list(map(_value, row))
                )
        for table in TABLES:
            if table.derived:
                derived = ", ".join(f"{sql} AS {column}" for column, sql in table.derived)
                self.connection.execute(
                    f"CREATE VIEW mlflow.{table.derived_view} AS "
                    f"SELECT *, {derived} FROM mlflow.{table.name}"
                )
        for name, view in VIEWS.items():
            sql = view.definition("mlflow", view.columns)
            self.connection.execute(f"CREATE VIEW mlflow.{name} AS {sql}")

    def ask(self, sql: str, **parameters: Any) -> dict[str, Any]:
        from mltables import result_encoding  # noqa: PLC0415
        from mltables.dialect import macros  # noqa: PLC0415

        prepared = self.gate.translate(sql)
        macros.create_macros(self.connection, prepared.sql, self.made)
        cursor = self.connection.execute(prepared.sql, parameters)
        result: dict[str, Any] = result_encoding.encode_json(cursor, 10_000, 4 << 20)
        return result

    def failure(self, sql: str) -> str | None:
        """What is said of a statement that has no answer."""
        import duckdb  # noqa: PLC0415

        from mltables.statement_execution import error_text  # noqa: PLC0415

        try:
            self.ask(sql)
        except self.gate.StatementRefused as refused:
            return str(refused)
        except duckdb.Error as error:
            return error_text(error)
        return None


def _value(value: Any) -> Any:
    """A value of ``tables.json`` for a parameter of DuckDB."""
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        if "metric_name" in value:
            return {name: _value(item) for name, item in value.items()}
        return {"key": list(value), "value": list(value.values())}
    return math.nan if value == "NaN" else value
