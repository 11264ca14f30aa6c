"""``python -m local.admin``: verifies or rebuilds what the indexer derives; decides nothing itself.

    python -m local.admin verify  [--experiment ID | --all] [--data DIR]
    python -m local.admin reindex [--experiment ID | --all] [--data DIR]

Works on the engine that AWS_ENDPOINT_URL_DYNAMODB names, such as that of a running runner; else on
a data folder that no runner uses; with TABLE_NAME and no folder, on that table in AWS, with the
credentials of the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from local import environment
from local.command_line import default_data_folder
from local.engine import Engine, EngineFailed
from local.engine_file import EngineFile
from local.folder import DataFolder, FolderInUse

_FUNCTIONS = Path(__file__).resolve().parent.parent / "functions"

SHOWN = 100
"""Findings of an experiment that are printed one by one."""


class CannotRun(Exception):
    """The message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all is as it should be, 1 when something was wrong or could not be done."""
    given = _parse(arguments)
    try:
        with _table(given.data):
            return _run(given.command, given.experiment)
    except (CannotRun, EngineFailed, FolderInUse) as error:
        print(f"local.admin: {error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m local.admin", description="Look after what the indexer derives."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, does in (
        ("verify", "list derived items that are missing, stale or too many; change nothing"),
        ("reindex", "write derived items anew from their sources, while everything runs"),
    ):
        command = commands.add_parser(name, help=does, description=does)
        which = command.add_mutually_exclusive_group()
        which.add_argument("--experiment", metavar="ID", help="one experiment")
        which.add_argument("--all", action="store_true", help="every experiment (default)")
        command.add_argument(
            "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
        )
    return parser.parse_args(arguments)


@contextlib.contextmanager
def _table(folder: Path | None) -> Iterator[None]:
    """The environment names a table while the block runs."""
    foreign = environment.foreign_engine()
    if foreign:
        environment.prepare((), foreign, own_engine=False)
        yield
        return
    if folder is None and os.environ.get("TABLE_NAME"):
        os.environ.setdefault("AWS_DEFAULT_REGION", environment.region())
        yield
        return
    path = (folder or default_data_folder()).expanduser().resolve()
    if not path.is_dir():
        raise CannotRun(f"there is no folder {path}; name one with --data")
    with contextlib.ExitStack() as stack:
        place = DataFolder(path)
        stack.callback(place.close)
        if not place.database.is_file():
            raise CannotRun(f"{path} holds no data; name another folder with --data")
        engine = Engine(place)
        stack.callback(engine.stop)
        environment.prepare((), engine.endpoint, own_engine=True)
        EngineFile(place.database, environment.table_name()).index_stream()
        yield


def _run(command: str, experiment_id: str | None) -> int:
    if str(_FUNCTIONS) not in sys.path:
        sys.path.insert(0, str(_FUNCTIONS))
    # Not before the environment is complete: these read it.
    rebuild: Any = import_module("indexer.rebuild")
    errors: Any = import_module("mlcore.errors")
    act = {"verify": rebuild.verify, "reindex": rebuild.reindex}[command]
    wrong = failed = 0
    try:
        wanted: Iterable[str] = [experiment_id] if experiment_id else rebuild.experiment_ids()
        for one in wanted:
            try:
                report = act(one)
            except (errors.ResourceDoesNotExist, errors.TemporarilyUnavailable) as error:
                failed += 1
                print(f"experiment {one}: {error.message}", file=sys.stderr)
            else:
                _show(report)
                wrong += len(report.findings)
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error
    did = "wrong" if command == "verify" else "repaired"
    print(f"{wrong} derived items {did}")
    return 1 if failed or (command == "verify" and wrong) else 0


def _show(report: Any) -> None:
    print(
        f"experiment {report.experiment_id}: {report.runs} runs, {report.items} derived items, "
        f"{len(report.findings)} findings; {report.pending} writes on their way, "
        f"{report.batches} metric batches to unpack"
    )
    for finding in report.findings[:SHOWN]:
        print(f"  {finding.problem:9} {finding.place.sk}")
    if len(report.findings) > SHOWN:
        print(f"  and {len(report.findings) - SHOWN} more")


if __name__ == "__main__":
    sys.exit(main())
