"""Stock MLflow's server on SQLite with the runs of the search bench, written into its tables."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.search_rows import Row
from tests.engines import memory_folder
from tests.servers import Server, start_stock, stopped

_RUN = (
    "INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status,"
    " start_time, source_version, lifecycle_stage, artifact_uri, experiment_id)"
    " VALUES (?, ?, 'UNKNOWN', '', '', '', 'RUNNING', ?, '', 'active', ?, ?)"
)
_METRIC = "INSERT INTO {} (key, value, timestamp, step, is_nan, run_uuid) VALUES (?, ?, 1, 0, 0, ?)"
_TEXT = "INSERT INTO {} (key, value, run_uuid) VALUES (?, ?, ?)"


class Stock:
    """A running server and the file of its tables."""

    def __init__(self, server: Server, database: Path) -> None:
        self.url = server.url
        self._database = database

    def load(self, experiment_id: str, rows: Iterable[Row]) -> None:
        """Writes the runs past the server, which takes minutes for ten thousand of them."""
        connection = sqlite3.connect(self._database, timeout=60)
        with contextlib.closing(connection), connection:
            for row in rows:
                place = f"mlflow-artifacts:/{experiment_id}/{row.run_id}/artifacts"
                about = (row.run_id, row.name, row.position, place, int(experiment_id))
                connection.execute(_RUN, about)
                values = [(key, value, row.run_id) for key, value in row.metrics.items()]
                connection.executemany(_METRIC.format("metrics"), values)
                connection.executemany(_METRIC.format("latest_metrics"), values)
                for table, texts in (("params", row.params), ("tags", row.tags)):
                    pairs = [(key, text, row.run_id) for key, text in texts.items()]
                    connection.executemany(_TEXT.format(table), pairs)


@contextlib.contextmanager
def running() -> Iterator[Stock]:
    with memory_folder() as folder, stopped(start_stock(folder)) as server:
        yield Stock(server, folder / "mlflow.db")
