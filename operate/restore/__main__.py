"""``python -m operate.restore``: restores data, and creates a stack that adopts them.

    python -m operate.restore freeze STACK
    python -m operate.restore thaw STACK
    python -m operate.restore whole STACK --at TIME|latest --into NEW --delete-old [--parameter …]
    python -m operate.restore table SOURCE --target NAME --at TIME|latest
    python -m operate.restore complete TABLE
    python -m operate.restore files BUCKET --at TIME [--count]
    python -m operate.restore adopt --into NEW --table NAME [--bucket NAME] [--key ID] …

``freeze`` makes both APIs of a stack in API Gateway (HTTP API, REST API) answer 429 to all requests
until ``thaw``, so no client writes data that the restore would miss. ``whole`` runs ``table``,
``files`` (unless the time is ``latest`` or the bucket keeps no versions) and ``adopt``: it restores
the table of a stack and its bucket's files, deletes the stack (which keeps its data) and creates a
new stack with the restored table and the old bucket and key. ``complete`` turns on what a table
lacks that AWS Backup restored: stream, expiry, backups, protection. After an interruption a command
may be repeated; if ``whole`` had begun to delete the stack, continue with the command that it
printed. `make deploy` then adds the functions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from operate.restore import adoption, files, tables
from operate.restore.failure import CannotRestore
from operate.restore.freeze import Freeze

BUILT: Final = Path(__file__).resolve().parents[2] / ".aws-sam" / "build" / "template.yaml"
LATEST: Final = "latest"
COMPLETE: Final = "{} has its indexes, stream, expiry, backups and protection"


def main(arguments: Sequence[str] | None = None) -> int:
    """Restores data of a stack, or freezes or thaws its APIs. Returns 0 on success, otherwise 1."""
    given = _parser().parse_args(arguments)
    try:
        if given.action == "files":
            _files(given.bucket, _moment(given.at), writes=not given.count)
        elif given.action in ("freeze", "thaw"):
            _serve(given.stack, stops=given.action == "freeze")
        elif given.action == "table":
            _table(given.source, given.target, given.at)
        elif given.action == "complete":
            tables.complete(boto3.client("dynamodb"), given.table)
            print(COMPLETE.format(given.table))
        elif given.action == "adopt":
            _adopt(given, _named(given))
        else:
            _whole(given)
    except (CannotRestore, BotoCoreError, ClientError) as error:
        print(f"operate.restore: {error}", file=sys.stderr)
        return 1
    return 0


def _whole(given: argparse.Namespace) -> None:
    cloudformation = boto3.client("cloudformation")
    stored = adoption.stored_in(cloudformation, given.stack)
    _warn_of_writers(cloudformation, given.stack)
    target = given.target or f"{given.into}-{stored['Table'].rpartition('-')[2]}-restored"
    _table(stored["Table"], target, given.at)
    if given.at != LATEST:
        _files_if_kept(stored["ArtifactBucket"], _moment(given.at))
    if not given.delete_old:
        raise CannotRestore(
            f"{target} is ready. Bucket and key belong to {given.stack}: repeat this with "
            "--delete-old, which deletes that stack and keeps its data"
        )
    again = f"python -m operate.restore adopt --into {given.into} --table {target}"
    # The system tables contain rows from after the moment. So they get a new bucket, which a
    # backfill fills.
    adopted = {"Table": target}
    for name, option in (("ArtifactBucket", "--bucket"), ("SecretsKey", "--key")):
        if name in stored:
            adopted[name] = stored[name]
            again += f" {option} {stored[name]}"
    kept = Path(f"parameters-of-{given.stack}.json")
    kept.write_text(json.dumps(adoption.parameters_of(cloudformation, given.stack), indent=2))
    print(f"{kept} has the parameters of {given.stack}, which is deleted next")
    given.parameters = kept
    again += f" --parameters {kept}" + "".join(
        f" --parameter {setting}" for setting in given.parameter
    )
    print(f"if the next steps are interrupted, continue with: {again}")
    adoption.remove_stack(cloudformation, given.stack)
    _adopt(given, adopted)


def _serve(stack: str, *, stops: bool) -> None:
    freeze = _freeze(boto3.client("cloudformation"), stack)
    if stops:
        names = " and ".join(freeze.stop())
        print(f"{stack}: every request to {names} is answered 429")
        print(f"`operate.restore thaw {stack}` ends that")
        print("calls of models that were admitted before take up to 15 minutes, and functions of")
        print("queues and schedules go on: wait as docs/operations.md says")
        return
    served = freeze.end()
    if not served:
        print(f"{stack}: no API is frozen, nothing was changed")
    for name, limits in served.items():
        if limits.rate is None or limits.burst is None:
            print(f"{stack}: {name} serves requests again, up to the quota of the account")
        else:
            print(
                f"{stack}: {name} serves {limits.rate:,.0f} requests a second again,"
                f" {limits.burst:,} at one moment"
            )


def _freeze(cloudformation: Any, stack: str) -> Freeze:
    return Freeze(cloudformation, boto3.client("apigatewayv2"), boto3.client("apigateway"), stack)


def _warn_of_writers(cloudformation: Any, stack: str) -> None:
    try:
        admitting = _freeze(cloudformation, stack).admitting()
    except CannotRestore:  # nobody can write through an API that does not exist
        return
    if admitting:
        print(
            f"{stack} serves requests to {' and '.join(admitting)}: the restored table will lack"
            f" what they write from now on. `operate.restore freeze {stack}` stops them"
        )


def _table(source: str, target: str, at: str) -> None:
    print(f"{source}: restoring to {target}, which takes minutes to hours")
    tables.restore(boto3.client("dynamodb"), source, target, _moment_or_none(at))
    print(COMPLETE.format(target))


def _files(bucket: str, moment: datetime, *, writes: bool) -> None:
    done = files.restore(boto3.client("s3"), bucket, moment, writes=writes)
    went = "were brought back" if writes else "would be brought back"
    print(f"s3://{bucket}: {done.restored} files {went}, {done.kept} stay as they are")


def _files_if_kept(bucket: str, moment: datetime) -> None:
    """Restores the files of a bucket, like :func:`_files`. A bucket without versions, as in stages
    without ``ArtifactVersionDays``, does not stop the restore of the table."""
    if files.keeps_versions(boto3.client("s3"), bucket):
        _files(bucket, moment, writes=True)
    else:
        print(
            f"s3://{bucket} keeps no versions: its files stay as they are, and the restored table"
            " may name files that are gone"
        )


def _adopt(given: argparse.Namespace, resources: dict[str, str]) -> None:
    template = adoption.import_template(given.template, resources)
    before = _read(given.parameters) if given.parameters else {}
    parameters = {**before, **dict(_pair(text) for text in given.parameter)}
    adoption.adopt(boto3.client("cloudformation"), given.into, template, resources, parameters)
    print(f"the stack {given.into} has adopted {', '.join(resources.values())}")
    more = f" --parameters {given.parameters}" if given.parameters else ""
    print(f"next: python -m operate.deployment STAGE --stack {given.into}{more}")


def _read(file: Path) -> dict[str, str]:
    """Returns the stack parameters in a file that ``whole`` wrote. Raises CannotRestore if it
    cannot be read."""
    try:
        read: dict[str, str] = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CannotRestore(f"--parameters {file}: {error}") from error
    return read


def _named(given: argparse.Namespace) -> dict[str, str]:
    named = {
        "Table": given.table,
        "ArtifactBucket": given.bucket,
        "SystemTablesBucket": given.system_tables_bucket,
        "SecretsKey": given.key,
    }
    return {name: value for name, value in named.items() if value}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CannotRestore(f"--parameter {text}: NAME=VALUE is needed")
    return name, value


def _moment_or_none(text: str) -> datetime | None:
    return None if text == LATEST else _moment(text)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise CannotRestore(f"--at {text}: 2026-01-31T12:00:00Z is needed") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m operate.restore", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for name, does in (("freeze", "refuse every request"), ("thaw", "serve requests again")):
        actions.add_parser(name, help=does).add_argument("stack")
    at: dict[str, Any] = {"required": True, "metavar": "TIME"}
    action_parser = actions.add_parser("table", help="restore a table as a new one")
    action_parser.add_argument("source", help="name, or ARN of a table in another region")
    action_parser.add_argument("--target", required=True, metavar="NAME")
    action_parser.add_argument(
        "--at", **at, help="2026-01-31T12:00:00Z (UTC by default), or latest"
    )
    action_parser = actions.add_parser("complete", help="finish a table that AWS Backup restored")
    action_parser.add_argument("table", metavar="TABLE")
    action_parser = actions.add_parser(
        "files", help="restore the files of a versioned bucket, in place"
    )
    action_parser.add_argument("bucket")
    action_parser.add_argument("--at", **at)
    action_parser.add_argument("--count", action="store_true", help="only count, change nothing")
    action_parser = actions.add_parser(
        "adopt", help="create a stack of an existing table, buckets and key"
    )
    action_parser.add_argument("--table", required=True, metavar="NAME")
    action_parser.add_argument("--bucket", metavar="NAME", help="artifact bucket")
    action_parser.add_argument("--system-tables-bucket", metavar="NAME")
    action_parser.add_argument("--key", metavar="ID", help="KMS key that sealed the secrets")
    _adds_to(action_parser)
    action_parser = actions.add_parser("whole", help="do all three steps for a stack")
    action_parser.add_argument("stack")
    action_parser.add_argument("--at", **at)
    action_parser.add_argument("--target", metavar="NAME", help="name of the new table")
    action_parser.add_argument(
        "--delete-old", action="store_true", help="delete the stack, not its data"
    )
    _adds_to(action_parser)
    return parser


def _adds_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", required=True, metavar="STACK", help="name of the new stack")
    parser.add_argument(
        "--template", type=Path, default=BUILT, help="template that `make build` wrote"
    )
    parser.add_argument("--parameters", type=Path, metavar="FILE", help="old parameters as JSON")
    parser.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE")


if __name__ == "__main__":
    sys.exit(main())
