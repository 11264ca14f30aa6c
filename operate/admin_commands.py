"""``python -m local.admin``: the administration commands.

    python -m local.admin verify  [--experiment ID | --all] [--data DIR]
    python -m local.admin reindex [--experiment ID | --all] [--data DIR]
    python -m local.admin sizes   [--experiment ID | --all] [--data DIR]
    python -m local.admin replay  --queue URL | --lander-queue URL | --job-queue URL
    python -m local.admin create-admin [--name NAME | --oidc NAME] [--replace] [--data DIR]
    python -m local.admin keys    create USER --name NAME [--scope SCOPE …] [--days N] [--data DIR]
    python -m local.admin keys    list USER | revoke KEY | create-account NAME [--data DIR]
    python -m local.admin rights  [USER] [--on model:NAME | experiment:ID | …] [--data DIR]
    python -m local.admin import  --from URL [--experiment NAME …] [--with PART,…] [--data DIR]
    python -m local.admin compare --from URL [--experiment NAME …] [--with PART,…] [--data DIR]
    python -m local.admin export  --to URI --artifacts DIR [--from URL | --data DIR]
    python -m local.admin config  list | get KEY | set KEY JSON | unset KEY [--data DIR]
    python -m local.admin gc      [--older-than 30d] [--experiment ID] [--data DIR]
    python -m local.admin sql     SELECT | --saved NAME [-p NAME=VALUE …] [--url URL | --data DIR]
    python -m local.admin alert   SELECT --when CONDITION [--url URL | --data DIR]
    python -m local.admin report  --html FILE [--experiment ID …] [--url URL | --data DIR]
    python -m local.admin system-tables backfill [--land] | publish | verify [--data DIR]
    python -m local.admin system-tables forget --experiment ID TRACE … [--data DIR]
    python -m local.admin audit   verify [--noted DAY=HASH …] | export | erase --user NAME
    python -m local.admin erase-user NAME [--dry-run] [--data DIR]
    python -m local.admin deploy  STAGE [--check | --build-only] [--stack NAME]
    python -m local.admin doctor  [--url URL | --data DIR] [--stack NAME] [--json FILE]

Which table a command uses: if AWS_ENDPOINT_URL_DYNAMODB is set, the table at that endpoint;
otherwise, if TABLE_NAME is set and --data is not given, that table in AWS, with the credentials of
the environment; otherwise the table in a data folder, which a local server may use at the same
time.
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

from local import environment, program_name, runner_record, table, utf8_mode
from local.command_line import default_data_folder
from local.data_folder import DataFolder, FolderInUse
from local.folder_format import FolderTooNew
from local.runner_record import RunnerRecord
from local.store import store
from local.store_preparation import StoreUnusable, endpoint, prepare_store
from local.template import read
from operate import (
    api_keys,
    audit_log,
    collection_sizes,
    create_admin,
    dashboard_report,
    deploy_command,
    purge,
    reindex,
    replay,
    settings,
    source_address,
    system_tables,
    unfinished_jobs,
)
from operate.arguments import PARTS, TRANSFERS, parse
from operate.doctor import command as doctor
from operate.export import command as export_command
from operate.module_loading import CannotRun, load_modules

_TEMPLATE = Path(__file__).resolve().parent.parent / "template.yaml"

QUERYING = ("sql", "alert", "report")
"""Commands that can query a running server."""

_STORES = ("ARTIFACT_FOLDER", "ARTIFACT_BUCKET")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command of ``python -m local.admin``. Returns 0 on success; 1 if a problem was found
    or the command failed; 2 if the condition of an alert is met; for ``deploy`` also the SAM CLI's
    exit code."""
    utf8_mode.insist()
    given = parse(arguments)
    environment.reach_this_machine_directly()
    try:
        if given.command in TRANSFERS:
            with source_address.served(given.source, given.files) as given.served:
                return _run(given)
        if given.command == "export":
            return export_command.run(given)
        if given.command == "deploy":
            return deploy_command.run(given)
        return _run(given)
    except (CannotRun, FolderInUse, FolderTooNew, StoreUnusable) as error:
        print(program_name.complaint(error), file=sys.stderr)
        return 1


def _run(given: argparse.Namespace) -> int:
    if given.command == "doctor" or (
        given.command in QUERYING and (given.url or _ask_runner(given))
    ):
        return _over_http(given)
    with _table(given.data, new=given.command == "import") as folder:
        if given.command in _OF_USERS:
            return _OF_USERS[given.command](given)
        if given.command == "replay":
            if given.job_queue:
                return unfinished_jobs.run(given.job_queue)
            return replay.run(given.queue, given.lander_queue)
        if given.command in TRANSFERS:
            return _transfer(given)
        if given.command == "config":
            load_modules()
            return settings.run(given.action, given.key, given.value)
        if given.command in ("audit", "erase-user"):
            return _audit(given, is_alone=folder is not None)
        if given.command == "gc":
            load_modules()
            return purge.run(given.older_than, given.experiment)
        if given.command in QUERYING:
            return _sql(given)
        if given.command == "system-tables":
            return _system_tables(given)
        if given.command == "sizes":
            return collection_sizes.run(given.experiment)
        if given.command == "reindex":
            return reindex.reindex(given.experiment)
        return reindex.verify(given.experiment, folder)


def _system_tables(given: argparse.Namespace) -> int:
    if given.action == "backfill":
        return system_tables.backfill(publishes=not given.land)
    if given.action == "forget":
        return system_tables.forget(given.experiment, given.trace)
    act: Callable[[], int] = getattr(system_tables, given.action)
    return act()


def _create_admin(given: argparse.Namespace) -> int:
    if given.oidc:
        return create_admin.create_admin_of_issuer(given.oidc, replace=given.replace)
    return create_admin.create_admin(given.name, replace=given.replace)


def _explain_rights(given: argparse.Namespace) -> int:
    load_modules()
    code: int = import_module("operate.rights.command").run(given)
    return code


def _audit(given: argparse.Namespace, *, is_alone: bool) -> int:
    if given.command == "audit":
        return audit_log.run(given)
    load_modules()
    audit_log.require_engine()
    command = import_module("operate.erasure.command")
    if is_alone and not given.dry_run:
        command.publish_waiting()
    code: int = command.run(given.user, dry=given.dry_run)
    return code


_OF_USERS: dict[str, Callable[[argparse.Namespace], int]] = {
    "create-admin": _create_admin,
    "keys": api_keys.run,
    "rights": _explain_rights,
}


def _over_http(given: argparse.Namespace) -> int:
    if given.command == "doctor":
        if not (given.url or _ask_runner(given)):
            raise CannotRun("no runner serves the data folder; name a server with --url")
        names = doctor.DoctorOptions._fields
        return doctor.run(doctor.DoctorOptions(*(getattr(given, name) for name in names)))
    return _sql(given)


@contextlib.contextmanager
def _table(folder: Path | None, *, new: bool = False) -> Iterator[DataFolder | None]:
    """Context manager: sets the environment variables so that the product's modules use the
    command's table. Yields the locked data folder; None if the table is not in a data folder, or a
    running server has locked that.

    Args:
        new: whether to create a missing data folder.
    """
    store.register()
    foreign = environment.foreign_engine()
    if foreign:
        environment.prepare((), foreign, own_store=False)
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
        try:
            data_folder = DataFolder(path)
        except FolderInUse:
            running = runner_record.read(path)
            if running is None:
                raise
            _work_beside(running)
            yield None
            return
        stack.callback(data_folder.close)
        name = environment.table_name()
        file = prepare_store(data_folder, name)
        if not file.path.is_file() and not new:
            raise CannotRun(f"{path} holds no data; name another folder with --data")
        environment.prepare((), endpoint(data_folder), own_store=True)
        environment.keep_files(data_folder.artifacts)
        environment.keep_tables(data_folder.system_tables)
        if new:
            declared = read(_TEMPLATE, name, environment.region(), {}).table
            table.ensure(table.SharedClient(), name, declared)
        yield data_folder


def _ask_runner(given: argparse.Namespace) -> bool:
    """Sets ``given.url`` to the address of the runner that serves the data folder; None if no
    runner does. Returns whether one does. Then the command sends its query to the runner and does
    not open the folder, because only one process may publish the system tables."""
    if environment.foreign_engine() or (given.data is None and os.environ.get("TABLE_NAME")):
        return False
    path = (given.data or default_data_folder()).expanduser().resolve()
    running = runner_record.running(path)
    given.url = running.url if running else None
    return running is not None


def _work_beside(running: RunnerRecord) -> None:
    """Sets the environment variables so that the product's modules use the table, files and system
    tables of a running runner."""
    store.register()
    environment.prepare((), running.table, own_store=True)
    if running.artifacts:
        environment.keep_files(Path(running.artifacts))
    if running.system_tables:
        environment.keep_tables(Path(running.system_tables))


def _sql(given: argparse.Namespace) -> int:
    if given.command == "report":
        options = dashboard_report.ReportOptions(
            *(getattr(given, name) for name in dashboard_report.ReportOptions._fields)
        )
        ask = partial(system_tables.ask, url=given.url)
        if given.fresh:
            ask("SELECT 1", {}, fresh=True)
        return dashboard_report.write(given.html, ask, options, given.url)
    if given.command == "alert":
        return system_tables.check(
            given.statement, given.parameter, given.when, fresh=given.fresh, url=given.url
        )
    return system_tables.sql(
        given.statement,
        given.parameter,
        given.format,
        saved=given.saved,
        fresh=given.fresh,
        url=given.url,
    )


def _transfer(arguments: argparse.Namespace) -> int:
    parts = [part for part in arguments.parts.split(",") if part]
    if unknown := set(parts) - set(PARTS):
        raise CannotRun(f"--with takes {', '.join(PARTS)}, not {sorted(unknown)[0]!r}")
    if "artifacts" in parts and not any(map(os.environ.get, _STORES)):
        raise CannotRun(
            f"where are artifacts kept? Set {' or '.join(_STORES)}, or leave them out (--with)"
        )
    load_modules()
    source = arguments.served
    kind = "kubeflow_transfer" if source.is_kubeflow else "command"
    command = import_module(f"operate.transfer.{kind}")
    journal = arguments.journal
    if journal is None:
        shown = source_address.without_password(arguments.source)
        name = "".join(letter if letter.isalnum() else "-" for letter in shown)
        journal = (arguments.data or default_data_folder()).expanduser() / f"import-{name}.jsonl"
    code: int = command.run(
        command.TransferOptions(
            url=source.url,
            files=source.files,
            experiments=arguments.experiment,
            parts=parts,
            journal=journal,
            write=arguments.command == "import",
        )
    )
    return code
