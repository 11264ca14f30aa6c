"""Starts an export to a database of MLflow: finds the address of this product's server, opens the
database, and runs MLflow's own server on it."""

from __future__ import annotations

import argparse
import contextlib
import os
from hashlib import blake2b
from importlib import import_module
from pathlib import Path

from local import environment, runner_record
from local.command_line import default_data_folder
from operate import source_address, temporary_servers
from operate.export.stock_store import StockStore
from operate.module_loading import CannotRun, load_modules

PARTS = ("runs", "models", "traces", "evaluation", "artifacts")


def run(given: argparse.Namespace) -> int:
    """Runs ``export``: copies this product's data to the database and files of MLflow's own server.
    Returns 0 if that server then shows the same data, otherwise 1.

    Raises:
        CannotRun: MLflow is missing, an argument is wrong, or a server or the database is unusable.
    """
    parts = [part for part in given.parts.split(",") if part]
    if unknown := set(parts) - set(PARTS):
        raise CannotRun(f"--with takes {', '.join(PARTS)}, not {sorted(unknown)[0]!r}")
    database = _database(given.database)
    folder = given.files.expanduser().resolve()
    os.environ.setdefault("TABLE_NAME", environment.DEFAULT_TABLE_NAME)
    load_modules()
    workspace_export = import_module("operate.export.workspace_export")
    journal = given.journal
    if journal is None:
        name = blake2b(database.encode(), digest_size=8).hexdigest()
        journal = (given.data or default_data_folder()).expanduser() / f"export-{name}.jsonl"
    with contextlib.ExitStack() as stack:
        source = given.source or _served(stack, given.data)
        _check_answers(source)
        folder.mkdir(parents=True, exist_ok=True)
        store = StockStore(database, "mlflow-artifacts:/")
        stock_url = stack.enter_context(temporary_servers.stock_server(database, folder))
        options = workspace_export.ExportOptions(
            source=source,
            workspace=given.workspace,
            database=database,
            files=folder,
            experiments=given.experiment,
            parts=parts,
            journal=journal,
        )
        code: int = workspace_export.run(options, stock_url, store)
    return code


def _check_answers(source: str) -> None:
    """Checks that the source server can be read, before a database is created.

    Raises:
        CannotRun: the source cannot be read.
    """
    source_address.check(source)
    mlflow_client = import_module("operate.transfer.mlflow_client")
    try:
        server = mlflow_client.Server(source)
        server.post("api/2.0/mlflow/experiments/search", max_results=1)
    except mlflow_client.SourceFailed as failed:
        raise CannotRun(str(failed)) from failed


def _database(text: str) -> str:
    """Returns the database's URI. A path without a scheme becomes the URI of a SQLite file. Raises
    CannotRun if its folder does not exist."""
    if "://" in text:
        return text
    path = Path(text).expanduser().resolve()
    if not path.parent.is_dir():
        raise CannotRun(f"--to {text}: there is no folder {path.parent}")
    return f"sqlite:///{path}"


def _served(stack: contextlib.ExitStack, data: Path | None) -> str:
    """Returns the address of the runner that serves the data folder; starts a runner for the
    duration of the export if there is none. Raises CannotRun if the folder does not exist."""
    folder = (data or default_data_folder()).expanduser().resolve()
    running = runner_record.running(folder)
    if running is not None:
        return running.url
    if not folder.is_dir():
        raise CannotRun(
            f"there is no folder {folder}; name one with --data, or a server with --from"
        )
    return stack.enter_context(temporary_servers.product(folder))
