"""A place for the system tables, and what they hold read past the product, by polars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

from lander import app as lander
from mlcore import artifacts
from mlcore.system_tables import storage
from sql import execution
from tests.contract.conftest import Store
from tests.contract.streams import Stream, following

QUERIES = Path(__file__).parents[2] / "examples/system_tables"


class Tables:
    """The tables of one test: lands the records of its stream and publishes them."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        self.folder, self.stream = folder, stream

    def follow(self) -> Any:
        """Lands what was written since the last call, and publishes it."""
        from mltables import publisher  # noqa: PLC0415

        if records := self.stream.fresh():
            lander.handler({"Records": records}, None)
        return publisher.publish()

    def frame(self, table: str) -> polars.DataFrame:
        """All rows, by a reader that is not ours."""
        return polars.scan_delta(storage.table_uri(table)).collect()

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.frame(table).to_dicts()

    def ask(self, sql: str, workspaces: list[str] | None = None, **parameters: Any) -> Any:
        return execution.run_query({"sql": sql, "parameters": parameters, "workspaces": workspaces})

    def counts(
        self, statements: Iterable[str], workspaces: list[str] | None, **permitted: Any
    ) -> list[Any]:
        """What statements of one row and one column answer, in one query: each query starts two
        processes. An error of one of them is the error of the query.

        Args:
            permitted: ``audited``, the workspaces of the audit log.
        """
        columns = ", ".join(f"({sql}) AS answer_{n}" for n, sql in enumerate(statements))
        query = {"sql": f"SELECT {columns}", "parameters": {}, "workspaces": workspaces}
        ((*numbers,),) = execution.run_query({**query, **permitted})["rows"]
        return numbers

    def seed(self, name: str, **parameters: Any) -> list[list[Any]]:
        """The rows of one of the sample queries, verbatim."""
        rows: list[list[Any]] = self.ask((QUERIES / f"{name}.sql").read_text(), **parameters)[
            "rows"
        ]
        return rows


@pytest.fixture
def tables(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    monkeypatch.setenv(storage.FOLDER, str(tmp_path / "tables"))
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "artifacts"))
    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / "scratch"))
    storage.store.cache_clear()
    artifacts.store.cache_clear()
    with following(store) as stream:
        yield Tables(tmp_path / "tables", stream)
    artifacts.store.cache_clear()
    storage.store.cache_clear()
