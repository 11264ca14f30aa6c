"""``python -m local.admin``: looks after a table from outside; decides nothing itself.

    python -m local.admin verify  [--experiment ID | --all] [--data DIR]
    python -m local.admin reindex [--experiment ID | --all] [--data DIR]
    python -m local.admin replay  --queue URL
    python -m local.admin create-admin [--name NAME] [--replace] [--data DIR]
    python -m local.admin import  --from URL [--experiment NAME …] [--with PART,…] [--data DIR]
    python -m local.admin compare --from URL [--experiment NAME …] [--with PART,…] [--data DIR]
    python -m local.admin config  list | get KEY | set KEY JSON | unset KEY [--data DIR]
    python -m local.admin gc      [--older-than 30d] [--experiment ID] [--data DIR]

Works on the engine that AWS_ENDPOINT_URL_DYNAMODB names, such as that of a running runner; else on
a data folder that no runner uses; with TABLE_NAME and no folder, on that table in AWS, with the
credentials of the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from local import deployment_settings, environment, garbage
from local.checkpoints import Checkpoints
from local.command_line import default_data_folder
from local.engine import Engine, EngineFailed
from local.engine_file import EngineFile
from local.folder import DataFolder, FolderInUse
from local.replay import FailureQueue, Record
from local.table import client, ensure
from local.template import read

_ROOT = Path(__file__).resolve().parent.parent
_FUNCTIONS, _TEMPLATE = _ROOT / "functions", _ROOT / "template.yaml"

SHOWN = 100
"""Findings of an experiment that are printed one by one."""

INDEXER = "IndexerEventSourceMapping"
"""What the template calls the reading of the stream that derives items."""

TRANSFERS = {
    "import": "bring over what another MLflow server has; resumes, and repeats without a change",
    "compare": "print what another MLflow server has and this one has not; change nothing",
}
_STORES = ("ARTIFACT_FOLDER", "ARTIFACT_BUCKET")
PARTS = ("runs", "models", "traces", "artifacts", "webhooks", "users")


class CannotRun(Exception):
    """The message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all is as it should be, 1 when something was wrong or could not be done."""
    given = _parse(arguments)
    try:
        with _table(given.data, new=given.command == "import") as place:
            if given.command == "create-admin":
                return create_admin(given.name, replace=given.replace)
            if given.command == "replay":
                return _replay(given.queue)
            if given.command in TRANSFERS:
                return _transfer(given)
            if given.command == "config":
                _modules()
                return deployment_settings.run(given.action, given.key, given.value)
            if given.command == "gc":
                _modules()
                return garbage.run(given.older_than, given.experiment)
            if given.command == "reindex":
                return _reindex(given.experiment)
            return _verify(given.experiment, place)
    except (CannotRun, EngineFailed, FolderInUse) as error:
        print(f"local.admin: {error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m local.admin", description="Look after a table from outside."
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
    does = "rebuild the experiments whose stream records the indexer gave up (in AWS)"
    command = commands.add_parser("replay", help=does, description=does)
    command.add_argument(
        "--queue", metavar="URL", required=True, help="the stack's output IndexerFailureQueueUrl"
    )
    command.set_defaults(data=None)
    does = "make the first administrator; asks for the password, or reads a line of standard input"
    command = commands.add_parser("create-admin", help=does, description=does)
    command.add_argument("--name", default="admin", help="user name (admin)")
    command.add_argument(
        "--replace", action="store_true", help="give an existing user this password and the rights"
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )
    for name, does in TRANSFERS.items():
        command = commands.add_parser(name, help=does, description=does)
        command.add_argument(
            "--from", dest="source", metavar="URL", required=True, help="the other MLflow server"
        )
        command.add_argument(
            "--experiment", action="append", default=[], metavar="NAME", help="only this one"
        )
        command.add_argument(
            "--with",
            dest="parts",
            default=",".join(PARTS),
            metavar="PART,…",
            help="what besides experiments (%(default)s)",
        )
        command.add_argument(
            "--journal", type=Path, metavar="FILE", help="what was brought over (in --data)"
        )
        command.add_argument(
            "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
        )
    _add_config(commands)
    _add_gc(commands)
    return parser.parse_args(arguments)


def _add_config(commands: Any) -> None:
    does = "read and write settings: ttl_policy, fts_fields, llm_prices"
    actions = commands.add_parser("config", help=does, description=does).add_subparsers(
        dest="action", required=True
    )
    for action, words in (
        ("list", ()),
        ("get", ("key",)),
        ("set", ("key", "value")),
        ("unset", ("key",)),
    ):
        one = actions.add_parser(action)
        for word in words:
            one.add_argument(word, metavar=word.upper() if word == "key" else "JSON")
        one.add_argument("--data", type=Path, metavar="DIR", help="data folder")
        one.set_defaults(**{word: None for word in ("key", "value") if word not in words})


def _add_gc(commands: Any) -> None:
    does = "remove deleted experiments, runs and logged models for good, with their files"
    command = commands.add_parser("gc", help=does, description=does)
    command.add_argument("--older-than", type=_duration, default=0, metavar="30d")
    command.add_argument("--experiment", metavar="ID", help="one experiment, or what is in it")
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )


def _duration(text: str) -> int:
    try:
        return garbage.seconds_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


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
        if new:
            name = environment.table_name()
            declared = read(_TEMPLATE, name, environment.region(), {}).table
            ensure(client("dynamodb"), name, declared)
        EngineFile(place.database, environment.table_name()).index_stream()
        yield place


_LOST = (
    "the stream no longer has the records of a failure: every experiment was rebuilt, but which "
    "webhooks were to hear of them and which files were to go cannot be told. The message stays"
)


def replay(
    queue: FailureQueue,
    rebuild: Callable[[str], bool],
    every: Callable[[], Iterable[str]],
    tell: Callable[[Sequence[Record]], bool],
) -> bool:
    """Rebuilds the experiments that the queue's messages are about, each once, tells what their
    records say, and takes away the messages of which both went well; whether that was all.

    Args:
        rebuild: an experiment by its id; whether it could be.
        every: the ids of all experiments, for messages that no longer tell which.
        tell: webhooks and the remover of files what records say; whether it could be.
    """
    failures = list(queue.failures())
    named: set[str] = set().union(*(failure.experiment_ids or () for failure in failures))
    if any(failure.experiment_ids is None for failure in failures):
        named.update(every())
    broken = {one for one in sorted(named) if not rebuild(one)}
    left = 0
    for failure in failures:
        if failure.records is None:
            left += 1
            print(_LOST, file=sys.stderr)
        elif broken.isdisjoint(failure.experiment_ids or ()) and tell(failure.records):
            queue.done(failure)
        else:
            left += 1
    print(f"{len(failures) - left} failures replayed, {left} left in the queue")
    return not left


def create_admin(name: str, *, replace: bool) -> int:
    """The password never stands in a template, a log, an argument or an environment."""
    _modules()
    passwords, users = import_module("mlcore.auth.passwords"), import_module("mlcore.repos.users")
    errors = import_module("mlcore.errors")
    minimum = import_module("users.service").MINIMUM_PASSWORD_LENGTH
    try:
        known = users.find(name)
        if known is not None and not replace:
            raise CannotRun(f"there is a user {name}; --replace gives them a new password")
        password = _password(name)
        if len(password) < minimum:
            raise CannotRun(f"a password has at least {minimum} characters")
        hashed = passwords.hash_password(password)
        if known is None:
            users.create(name, hashed, is_admin=True)
        else:
            users.update(name, password_hash=hashed, is_admin=True)
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error
    print(f"{name} is an administrator")
    return 0


def _password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"Password of {name}: ")
    if password != getpass.getpass("Again: "):
        raise CannotRun("the passwords differ")
    return password


def _replay(url: str) -> int:
    rebuilding, errors = _modules()

    def rebuild(experiment_id: str) -> bool:
        try:
            _show(rebuilding.reindex(experiment_id))
        except (errors.ResourceDoesNotExist, errors.InvalidParameterValue):
            return True  # it is gone, and there is nothing to derive from
        except errors.MlflowError as error:
            print(f"experiment {experiment_id}: {error.message}", file=sys.stderr)
            return False
        return True

    app = import_module("indexer.app")

    def tell(records: Sequence[Record]) -> bool:
        missing = [name for name in app.queues_of(records) if not os.environ.get(name)]
        if missing:
            print(f"set {' and '.join(missing)}: records have something to say", file=sys.stderr)
            return False
        try:
            app.tell(records)
        except errors.MlflowError as error:
            print(f"what records say could not be told: {error.message}", file=sys.stderr)
            return False
        return True

    return 0 if replay(FailureQueue(url), rebuild, rebuilding.experiment_ids, tell) else 1


def _transfer(given: argparse.Namespace) -> int:
    parts = [part for part in given.parts.split(",") if part]
    if unknown := set(parts) - set(PARTS):
        raise CannotRun(f"--with takes {', '.join(PARTS)}, not {sorted(unknown)[0]!r}")
    if "artifacts" in parts and not any(map(os.environ.get, _STORES)):
        raise CannotRun(
            f"where are artifacts kept? Set {' or '.join(_STORES)}, or leave them out (--with)"
        )
    _modules()
    command = import_module("local.transfer.command")
    journal = given.journal
    if journal is None:
        name = "".join(letter if letter.isalnum() else "-" for letter in given.source)
        journal = (given.data or default_data_folder()).expanduser() / f"import-{name}.jsonl"
    code: int = command.run(
        command.Wish(
            url=given.source,
            experiments=given.experiment,
            parts=parts,
            journal=journal,
            write=given.command == "import",
        )
    )
    return code


def _modules() -> tuple[Any, Any]:
    """``indexer.rebuild`` and ``mlcore.errors``, not before the environment is complete: they read
    it."""
    if str(_FUNCTIONS) not in sys.path:
        sys.path.insert(0, str(_FUNCTIONS))
    return import_module("indexer.rebuild"), import_module("mlcore.errors")


def _reindex(experiment_id: str | None) -> int:
    rebuild, _ = _modules()
    reports = list(_reports(rebuild.reindex, experiment_id))
    print(f"{sum(len(one.findings) for one in reports if one)} derived items repaired")
    return 1 if None in reports else 0


def _verify(experiment_id: str | None, place: DataFolder | None) -> int:
    """What is behind is no failure: it heals by itself, once the product runs."""
    rebuild, _ = _modules()
    unread = _unread(place) if place else set()
    reports = list(_reports(lambda one: rebuild.verify(one, unread=unread), experiment_id))
    known = [one for one in reports if one]
    behind = sum(len(one.behind) for one in known)
    wrong = sum(len(one.findings) for one in known)
    if behind:
        print(f"{behind} derived items behind: the indexer brings them up to date while it runs")
    print(f"{wrong} derived items wrong")
    return 1 if wrong or len(known) < len(reports) else 0


def _unread(place: DataFolder) -> set[tuple[str, str]]:
    """The items whose records the indexer of this folder has still to read."""
    read_up_to = Checkpoints(place.checkpoints).lowest(INDEXER)
    return EngineFile(place.database, environment.table_name()).unread(read_up_to)


def _reports(act: Callable[[str], Any], experiment_id: str | None) -> Iterator[Any]:
    """A report for each experiment, printed; None for one that has none."""
    rebuild, errors = _modules()
    try:
        wanted: Iterable[str] = [experiment_id] if experiment_id else rebuild.experiment_ids()
        for one in wanted:
            try:
                report = act(one)
            except (
                errors.ResourceDoesNotExist,
                errors.InvalidParameterValue,
                errors.TemporarilyUnavailable,
            ) as error:
                print(f"experiment {one}: {error.message}", file=sys.stderr)
                yield None
            else:
                _show(report)
                yield report
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error


def _show(report: Any) -> None:
    print(
        f"experiment {report.experiment_id}: {report.runs} runs, {report.items} derived items, "
        f"{len(report.findings)} findings; {report.pending} writes on their way, "
        f"{report.batches} metric batches to unpack, {len(report.behind)} behind"
    )
    for kind, findings in (("", report.findings), ("behind: ", report.behind)):
        for finding in findings[:SHOWN]:
            print(f"  {kind}{finding.problem:9} {finding.place.sk}")
        if len(findings) > SHOWN:
            print(f"  {kind}and {len(findings) - SHOWN} more")


if __name__ == "__main__":
    sys.exit(main())
