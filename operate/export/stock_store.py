"""Writes rows into the database of MLflow's own server, by the table definitions of the installed
MLflow.

MLflow's store would give all entities but traces and spans new ids and times, so rows are written
into its tables directly; only traces and spans are first written by the store's own methods
(:meth:`StockStore.writing`). Columns that the installed version lacks are left out.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from local import program_name
from mlcore import errors
from operate.module_loading import CannotRun

Row = Mapping[str, Any]

MISSING_MLFLOW: Final = (
    "export needs MLflow itself, whose tables it writes and whose server it reads them with: "
    f"{program_name.mlflow_installation()}"
)


class StockStore:
    """The tracking store of MLflow's own server on a database. If the database is empty, MLflow's
    tables are created."""

    def __init__(self, database: str, files_root: str) -> None:
        """
        Args:
            database: any URI that the installed MLflow takes.

        Raises:
            CannotRun: MLflow is not installed, or it cannot use the database.
        """
        try:
            from mlflow.exceptions import MlflowException  # noqa: PLC0415 - not always installed
            from mlflow.store.db.base_sql_model import Base  # noqa: PLC0415
            from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: PLC0415
            from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415
        except ImportError as error:
            raise CannotRun(MISSING_MLFLOW) from error
        try:
            self.store = SqlAlchemyStore(database, files_root)
        except (MlflowException, SQLAlchemyError, ImportError) as error:
            raise CannotRun(f"MLflow cannot use the database: {error}") from error
        self.tables = Base.metadata.tables
        self._one_writer = threading.Lock()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Context manager: yields a transaction in the database of MLflow's own server, and commits
        it at the end of the block. Threads take turns, because SQLite allows one writer.

        Raises:
            TemporarilyUnavailable: a statement or the commit failed; the message has the reason.
        """
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        try:
            with self._one_writer, self.store.engine.begin() as connection:
                yield Transaction(connection, self.tables)
        except SQLAlchemyError as error:
            raise errors.TemporarilyUnavailable(str(error.__cause__ or error)) from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[Any]:
        """Context manager: yields MLflow's own store object. Only one thread at a time gets it.

        Raises:
            TemporarilyUnavailable: MLflow's store raised an error.
        """
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        try:
            with self._one_writer:
                yield self.store
        except MlflowException as error:
            raise errors.TemporarilyUnavailable(error.message) from error

    def has(self, table: str, **key: Any) -> bool:
        with self.transaction() as rows:
            return rows.first(table, **key) is not None

    def number_after_inserts(self, table: str, column: str) -> None:
        """Sets the counter (a PostgreSQL sequence) that numbers new rows of a column to the
        greatest inserted number, so that MLflow gives the next row a free number. Other databases
        need no such step."""
        import sqlalchemy  # noqa: PLC0415

        if self.store.engine.dialect.name != "postgresql":
            return
        with self.store.engine.begin() as connection:
            connection.execute(
                sqlalchemy.text(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'),"  # noqa: S608
                    f" (SELECT GREATEST(MAX({column}), 1) FROM {table}))"
                )
            )


class Transaction:
    """Reads and writes rows of the database of MLflow's own server within one transaction."""

    def __init__(self, connection: Any, tables: Mapping[str, Any]) -> None:
        self._connection = connection
        self._tables = tables

    def first(self, table: str, **key: Any) -> Row | None:
        return next(iter(self.all(table, **key)), None)

    def all(self, table: str, **key: Any) -> list[Row]:
        """Returns the rows of a table of MLflow's database whose columns have the values that the
        keyword arguments name."""
        target = self._tables[table]
        rows = self._connection.execute(target.select().where(*self._conditions(target, key)))
        return [dict(row) for row in rows.mappings()]

    def delete(self, table: str, **key: Any) -> None:
        target = self._tables.get(table)
        if target is not None:
            self._connection.execute(target.delete().where(*self._conditions(target, key)))

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        target = self._tables[table]
        known = [self._known(target, row) for row in rows]
        if known:
            self._connection.execute(target.insert(), known)

    def update(self, table: str, values: Row, **key: Any) -> None:
        target = self._tables[table]
        changed = target.update().where(*self._conditions(target, key))
        self._connection.execute(changed.values(**self._known(target, values)))

    def put(self, table: str, key: Row, values: Row) -> None:
        """Inserts into a table of MLflow's database a row with this key and these values, or
        updates the row that has the key."""
        if self.first(table, **key) is None:
            self.insert(table, [{**key, **values}])
        else:
            self.update(table, values, **key)

    def replace(self, table: str, key: Row, rows: Iterable[Row]) -> None:
        """Deletes the rows of a table of MLflow's database whose columns have the values in
        ``key``, and inserts ``rows`` instead."""
        self.delete(table, **key)
        self.insert(table, [{**key, **row} for row in rows])

    @staticmethod
    def _conditions(target: Any, key: Row) -> list[Any]:
        return [target.c[name] == value for name, value in key.items()]

    @staticmethod
    def _known(target: Any, row: Row) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name in target.c}
