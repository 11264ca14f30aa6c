"""Defines the command line of ``python -m local.admin``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local import program_name
from local.command_line import default_data_folder
from operate import api_keys, deploy_command, purge
from operate.export import command as export_command

TRANSFERS = {
    "import": "copy from another MLflow server what is missing here; can be repeated and resumed",
    "compare": "print how another MLflow server and this one differ; change nothing",
}
DOCTOR_PATIENCE = 180.0
PARTS = (
    *("runs", "models", "traces", "evaluation", "gateway", "mcp-servers"),
    *("artifacts", "webhooks", "users"),
)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program_name.commands(), description="Maintain a table or a deployment."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, does in (
        ("verify", "list derived items that are missing, stale or surplus; change nothing"),
        ("reindex", "rebuild derived items from their sources, while the product runs"),
        ("sizes", "print how large the items of experiments are; reads all of these items"),
    ):
        command = commands.add_parser(name, help=does, description=does)
        which = command.add_mutually_exclusive_group()
        which.add_argument("--experiment", metavar="ID", help="one experiment")
        which.add_argument("--all", action="store_true", help="every experiment (default)")
        command.add_argument(
            "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
        )
    does = "process again the stream records that the indexer or the lander gave up (in AWS)"
    command = commands.add_parser("replay", help=does, description=does)
    queues = command.add_mutually_exclusive_group(required=True)
    queues.add_argument("--queue", metavar="URL", help="the stack's output IndexerFailureQueueUrl")
    queues.add_argument(
        "--lander-queue", metavar="URL", help="the stack's output LanderFailureQueueUrl"
    )
    queues.add_argument(
        "--job-queue",
        metavar="URL",
        help="the queue of jobs: sends the messages of unfinished jobs after a restore",
    )
    command.set_defaults(data=None)
    does = "create an administrator; asks for the password, or reads it from standard input"
    command = commands.add_parser("create-admin", help=does, description=does)
    command.add_argument("--name", default="admin", help="user name (admin)")
    command.add_argument(
        "--oidc",
        metavar="NAME",
        help="name of an administrator who signs in at the issuer and has no password, such as "
        "an e-mail address",
    )
    command.add_argument(
        "--replace", action="store_true", help="give an existing user the password and the rights"
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )
    _add_keys(commands)
    _add_rights(commands)
    for name, does in TRANSFERS.items():
        command = commands.add_parser(name, help=does, description=does)
        command.add_argument(
            "--from",
            dest="source",
            metavar="URL",
            required=True,
            help="the other MLflow server, its database (sqlite:///…, postgresql://…), a folder of "
            "runs, or kubeflow:URL",
        )
        command.add_argument(
            "--artifacts",
            dest="files",
            type=Path,
            metavar="DIR",
            help="folder with the files that belong to the database of --from (mlartifacts)",
        )
        command.add_argument(
            "--experiment",
            action="append",
            default=[],
            metavar="NAME",
            help="only this; repeatable",
        )
        command.add_argument(
            "--with",
            dest="parts",
            default=",".join(PARTS),
            metavar="PART,…",
            help="what to copy in addition to experiments (%(default)s)",
        )
        command.add_argument(
            "--journal",
            type=Path,
            metavar="FILE",
            help="file that records what was copied (in --data)",
        )
        command.add_argument(
            "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
        )
    _add_export(commands)
    _add_config(commands)
    _add_gc(commands)
    _add_sql(commands)
    _add_audit(commands)
    _add_erase_user(commands)
    _add_doctor(commands)
    deploy_command.add_to(commands)
    return parser.parse_args(arguments)


def _add_audit(commands: Any) -> None:
    does = "verify the chain of the audit log, export it as JSON lines, or erase a name from it"
    command = commands.add_parser("audit", help=does, description=does)
    command.add_argument("action", choices=("verify", "export", "erase"))
    command.add_argument(
        "--noted",
        action="append",
        default=[],
        metavar="DAY=HASH",
        help="for verify: last hash of a day that was printed before; may be repeated",
    )
    command.add_argument("--user", metavar="NAME", help="for erase: the user's name")
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )


def _add_erase_user(commands: Any) -> None:
    does = "remove a person: login, rights and keys; a pseudonym takes the place of the name"
    command = commands.add_parser("erase-user", help=does, description=does)
    command.add_argument("user", metavar="NAME", help="the user's name")
    command.add_argument(
        "--dry-run", action="store_true", help="print what would be erased; change nothing"
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )


def _add_keys(commands: Any) -> None:
    does = "create, list and revoke API keys; create service accounts, which have only keys"
    command = commands.add_parser("keys", help=does, description=does)
    command.add_argument("action", choices=api_keys.ACTIONS)
    command.add_argument(
        "subject", metavar="USER|KEY", help="name of a user; for revoke: id of a key"
    )
    command.add_argument("--name", default="command line", help="what the key is for")
    command.add_argument(
        "--scope",
        action="append",
        metavar="SCOPE",
        help="read, sql, experiment:ID, model:NAME or gateway:ENDPOINT-ID; may be repeated; "
        "without a scope the key has all rights of its owner",
    )
    command.add_argument("--days", type=int, metavar="N", help="expire after N days (never)")
    command.add_argument(
        "--workspace", default="default", help="the workspace of a key with scopes (default)"
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )


def _add_rights(commands: Any) -> None:
    does = "print which rights a user has, or who may do what with a resource, and why"
    command = commands.add_parser("rights", help=does, description=does)
    command.add_argument(
        "user", metavar="USER", nargs="?", help="name of a user; without it, all users"
    )
    command.add_argument(
        "--on",
        metavar="TYPE:NAME",
        help="model:NAME, experiment:ID, run:ID, gateway:ENDPOINT, skill:NAME, mcp_server:NAME, …",
    )
    command.add_argument(
        "--workspace", default="default", help="workspace of the resource (default)"
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )


def _add_sql(commands: Any) -> None:
    folder = f"data folder ({default_data_folder()})"
    for name, does in (
        ("sql", "query MLflow's system tables with SQL"),
        ("alert", "run a query and exit with 2 if its result meets a condition"),
    ):
        command = commands.add_parser(name, help=does, description=does)
        command.add_argument(
            "statement",
            nargs="?" if name == "sql" else None,
            metavar="SELECT",
            help="the query, or @FILE",
        )
        command.add_argument(
            *("-p", "--parameter"),
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="value of :NAME",
        )
        if name == "sql":
            command.add_argument("--saved", metavar="NAME", help="run this saved query instead")
            command.add_argument(
                "--format", choices=("text", "csv", "json", "arrow"), default="text"
            )
        else:
            command.add_argument(
                "--when",
                metavar="CONDITION",
                help="such as MIN(success_ratio) < 0.9; default: the line -- when: of the file",
            )
        command.add_argument("--fresh", action="store_true", help="publish landed rows first")
        command.add_argument("--url", help="query the tables of this running server")
        command.add_argument("--data", type=Path, metavar="DIR", help=folder)
    _add_report(commands, folder)
    does = "fill the system tables from DynamoDB, publish landed rows, or compare both"
    actions = commands.add_parser("system-tables", help=does, description=does).add_subparsers(
        dest="action", required=True
    )
    for action in ("backfill", "publish", "verify", "forget"):
        subcommand = actions.add_parser(action)
        subcommand.add_argument("--data", type=Path, metavar="DIR", help=folder)
        if action == "backfill":
            subcommand.add_argument(
                "--land",
                action="store_true",
                help="only land rows; a deployment's publisher publishes them",
            )
        elif action == "forget":
            subcommand.add_argument(
                "--experiment", required=True, metavar="ID", help="the traces' experiment"
            )
            subcommand.add_argument(
                "trace", nargs="+", help="ids of expired traces whose rows are to be removed"
            )


def _add_report(commands: Any, folder: str) -> None:
    does = "write the dashboard page and its data into one file"
    command = commands.add_parser("report", help=does, description=does)
    command.add_argument("--html", type=Path, metavar="FILE", required=True)
    for name, shown, means in (
        ("experiment", "ID", "runs of this experiment"),
        ("user", "NAME", "runs of this user"),
        ("since", "DAY", "runs that started on this day or later, such as 2026-01-31"),
        ("until", "DAY", "runs that started on this day or before"),
        ("metric", "NAME", "metric that ranks the best runs (the one that most runs have)"),
        ("run", "ID", "run whose curve is drawn (the newest with the metric)"),
    ):
        command.add_argument(f"--{name}", default="", metavar=shown, help=means)
    command.add_argument("--order", choices=("lowest", "highest"), default="lowest")
    command.add_argument(
        "--minutes",
        type=int,
        default=60,
        help="minutes without an update after which a run counts as stuck (60)",
    )
    command.add_argument("--fresh", action="store_true", help="publish landed rows first")
    command.add_argument("--url", help="query the tables of this running server")
    command.add_argument("--data", type=Path, metavar="DIR", help=folder)


def _add_export(commands: Any) -> None:
    does = "copy everything into a database and a folder of MLflow's own server; can be repeated"
    command = commands.add_parser("export", help=does, description=does)
    command.add_argument(
        "--to",
        dest="database",
        metavar="URI",
        required=True,
        help="sqlite:///mlflow.db, postgresql://…, or the path of an SQLite file",
    )
    command.add_argument(
        "--artifacts", dest="files", type=Path, metavar="DIR", required=True, help="folder of files"
    )
    command.add_argument(
        "--from", dest="source", metavar="URL", help="address of the product (the runner of --data)"
    )
    command.add_argument(
        "--workspace", default="default", metavar="NAME", help="to export (%(default)s)"
    )
    command.add_argument(
        "--experiment", action="append", default=[], metavar="NAME", help="only this; repeatable"
    )
    command.add_argument(
        "--with",
        dest="parts",
        default=",".join(export_command.PARTS),
        metavar="PART,…",
        help="what to copy in addition to experiments (%(default)s)",
    )
    command.add_argument(
        "--journal", type=Path, metavar="FILE", help="file that records what was copied (in --data)"
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )


def _add_config(commands: Any) -> None:
    does = "read and write settings: ttl_policy, fts_fields, llm_prices, gateway_limits"
    actions = commands.add_parser("config", help=does, description=does).add_subparsers(
        dest="action", required=True
    )
    for action, words in (
        ("list", ()),
        ("get", ("key",)),
        ("set", ("key", "value")),
        ("unset", ("key",)),
    ):
        subcommand = actions.add_parser(action)
        for word in words:
            subcommand.add_argument(word, metavar=word.upper() if word == "key" else "JSON")
        subcommand.add_argument("--data", type=Path, metavar="DIR", help="data folder")
        subcommand.set_defaults(**{word: None for word in ("key", "value") if word not in words})


def _add_gc(commands: Any) -> None:
    does = "permanently remove deleted experiments, runs and logged models with their files"
    command = commands.add_parser("gc", help=does, description=does)
    command.add_argument("--older-than", type=_duration, default=0, metavar="30d")
    command.add_argument("--experiment", metavar="ID", help="only this experiment and its contents")
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )


def _duration(text: str) -> int:
    try:
        return purge.parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_doctor(commands: Any) -> None:
    does = "use a running server as a team would, remove what this created, and report faults"
    command = commands.add_parser("doctor", help=does, description=does)
    command.add_argument(
        "--url",
        help="tracking URI (that of the runner of --data); the login is taken from "
        "MLFLOW_TRACKING_USERNAME and the other variables of MLflow's clients",
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )
    for name, shown, means in (
        ("profile", "NAME", "AWS profile; also checks the stack that has this URL"),
        ("stack", "NAME", "CloudFormation stack to check, instead of the one that has the URL"),
        (
            "client",
            "PYTHON",
            "Python interpreter with mlflow (default: this one, or a new environment)",
        ),
        ("receiver", "HOST:PORT", "address on which this machine listens for a webhook's delivery"),
        (
            "receiver-url",
            "URL",
            "URL of --receiver as the server sees it, such as that of a tunnel",
        ),
        ("endpoint", "NAME", "chat endpoint of the AI gateway to call, which may cost money"),
    ):
        command.add_argument(f"--{name}", metavar=shown, help=means)
    command.add_argument(
        "--without", action="append", default=[], metavar="STEP", help="step to leave out"
    )
    command.add_argument(
        "--patience",
        type=float,
        default=DOCTOR_PATIENCE,
        metavar="SECONDS",
        help="how long to wait for asynchronous results such as SQL (%(default)s)",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="also write the results as JSON")
