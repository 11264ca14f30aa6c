"""``python -m local.admin``: looks after a table from outside; decides nothing itself.

    python -m local.admin verify  [--experiment ID | --all] [--data DIR]
    python -m local.admin reindex [--experiment ID | --all] [--data DIR]
    python -m local.admin sizes   [--experiment ID | --all] [--data DIR]
    python -m local.admin replay  --queue URL
    python -m local.admin create-admin [--name NAME] [--replace] [--data DIR]
    python -m local.admin import  --from URL [--experiment NAME …] [--with PART,…] [--data DIR]
    python -m local.admin compare --from URL [--experiment NAME …] [--with PART,…] [--data DIR]
    python -m local.admin config  list | get KEY | set KEY JSON | unset KEY [--data DIR]
    python -m local.admin gc      [--older-than 30d] [--experiment ID] [--data DIR]
    python -m local.admin sql     SELECT [--parameter NAME=VALUE …] [--url URL | --data DIR]
    python -m local.admin alert   SELECT --when CONDITION [--url URL | --data DIR]
    python -m local.admin report  --html FILE [--experiment ID …] [--url URL | --data DIR]
    python -m local.admin system-tables backfill [--land] | publish | verify [--data DIR]

Works on the engine that AWS_ENDPOINT_URL_DYNAMODB names, such as that of a running runner; else on
a data folder that no runner uses; with TABLE_NAME and no folder, on that table in AWS, with the
credentials of the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from local import environment
from local.command_line import default_data_folder
from local.engine.engine import Engine, EngineFailed
from local.engine.file import EngineFile
from local.engine.table import client, ensure
from local.folder import DataFolder, FolderInUse
from local.template import read
from operate import (
    administrators,
    garbage,
    replay,
    report,
    settings,
    sizes,
    system_tables,
    verification,
)
from operate.arguments import PARTS, TRANSFERS, parse
from operate.modules import CannotRun, modules

_TEMPLATE = Path(__file__).resolve().parent.parent / "template.yaml"

QUERYING = ("sql", "alert", "report")
"""Commands that a running server can answer for."""

_STORES = ("ARTIFACT_FOLDER", "ARTIFACT_BUCKET")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all is as it should be, 1 when something was wrong or could not be done."""
    given = parse(arguments)
    try:
        if given.command in QUERYING and given.url:
            return _sql(given)
        with _table(given.data, new=given.command == "import") as place:
            if given.command == "create-admin":
                return administrators.create_admin(given.name, replace=given.replace)
            if given.command == "replay":
                return replay.run(given.queue)
            if given.command in TRANSFERS:
                return _transfer(given)
            if given.command == "config":
                modules()
                return settings.run(given.action, given.key, given.value)
            if given.command == "gc":
                modules()
                return garbage.run(given.older_than, given.experiment)
            if given.command in QUERYING:
                return _sql(given)
            if given.command == "system-tables":
                if given.action == "backfill":
                    return system_tables.backfill(publishes=not given.land)
                act: Callable[[], int] = getattr(system_tables, given.action)
                return act()
            if given.command == "sizes":
                return sizes.run(given.experiment)
            if given.command == "reindex":
                return verification.reindex(given.experiment)
            return verification.verify(given.experiment, place)
    except (CannotRun, EngineFailed, FolderInUse) as error:
        print(f"local.admin: {error}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def _table(folder: Path | None, *, new: bool = False) -> Iterator[DataFolder | None]:
    """The environment names a table while the block runs; the data folder, if it is in one.

    Args:
        new: a data folder may be made.
    """
    foreign = environment.foreign_engine()
    if foreign:
        environment.prepare((), foreign, own_engine=False)
        yield None
        return
    if folder is None and os.environ.get("TABLE_NAME"):
        os.environ.setdefault("AWS_DEFAULT_REGION", environment.region())
        yield None
        return
    path = (folder or default_data_folder()).expanduser().resolve()
    if not path.is_dir() and not new:
        raise CannotRun(f"there is no folder {path}; name one with --data")
    with contextlib.ExitStack() as stack:
        place = DataFolder(path)
        stack.callback(place.close)
        if not place.database.is_file() and not new:
            raise CannotRun(f"{path} holds no data; name another folder with --data")
        engine = Engine(place)
        stack.callback(engine.stop)
        engine.start()
        environment.prepare((), engine.endpoint, own_engine=True)
        environment.keep_files(place.artifacts)
        environment.keep_tables(place.system_tables)
        if new:
            name = environment.table_name()
            declared = read(_TEMPLATE, name, environment.region(), {}).table
            ensure(client("dynamodb"), name, declared)
        EngineFile(place.database, environment.table_name()).index_stream()
        yield place


def _sql(given: argparse.Namespace) -> int:
    if given.command == "report":
        wish = report.Wish(*(getattr(given, name) for name in report.Wish._fields))
        ask = partial(system_tables.ask, url=given.url)
        if given.fresh:
            ask("SELECT 1", {}, fresh=True)
        return report.write(given.html, ask, wish, given.url)
    if given.command == "alert":
        return system_tables.check(
            given.statement, given.parameter, given.when, fresh=given.fresh, url=given.url
        )
    return system_tables.sql(
        given.statement, given.parameter, given.format, fresh=given.fresh, url=given.url
    )


def _transfer(arguments: argparse.Namespace) -> int:
    parts = [part for part in arguments.parts.split(",") if part]
    if unknown := set(parts) - set(PARTS):
        raise CannotRun(f"--with takes {', '.join(PARTS)}, not {sorted(unknown)[0]!r}")
    if "artifacts" in parts and not any(map(os.environ.get, _STORES)):
        raise CannotRun(
            f"where are artifacts kept? Set {' or '.join(_STORES)}, or leave them out (--with)"
        )
    modules()
    command = import_module("operate.transfer.kubeflow_command")
    journal = arguments.journal
    if journal is None:
        name = "".join(letter if letter.isalnum() else "-" for letter in arguments.source)
        journal = (arguments.data or default_data_folder()).expanduser() / f"import-{name}.jsonl"
    code: int = command.run(
        command.Wish(
            url=arguments.source,
            experiments=arguments.experiment,
            parts=parts,
            journal=journal,
            write=arguments.command == "import",
        )
    )
    return code
