"""The command line of ``python -m local.admin``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local.command_line import default_data_folder
from operate import garbage

TRANSFERS = {
    "import": "bring over what another MLflow server has; resumes, and repeats without a change",
    "compare": "print what another MLflow server has and this one has not; change nothing",
}
PARTS = (
    *("runs", "models", "traces", "evaluation", "gateway", "mcp-servers"),
    *("artifacts", "webhooks", "users"),
)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m local.admin", description="Look after a table from outside."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, does in (
        ("verify", "list derived items that are missing, stale or too many; change nothing"),
        ("reindex", "write derived items anew from their sources, while everything runs"),
        ("sizes", "tell how large the items of experiments are; reads all of them"),
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
            "--from",
            dest="source",
            metavar="URL",
            required=True,
            help="the other MLflow server, or kubeflow:URL",
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
    _add_sql(commands)
    return parser.parse_args(arguments)


def _add_sql(commands: Any) -> None:
    folder = f"data folder ({default_data_folder()})"
    for name, does in (
        ("sql", "ask SQL of MLflow's system tables"),
        ("alert", "ask SQL, and exit with 2 when its answer meets a condition"),
    ):
        command = commands.add_parser(name, help=does, description=does)
        command.add_argument("statement", metavar="SELECT", help="or @FILE")
        command.add_argument(
            "--parameter", action="append", default=[], metavar="NAME=VALUE", help="for :NAME"
        )
        if name == "sql":
            command.add_argument(
                "--format", choices=("text", "csv", "json", "arrow"), default="text"
            )
        else:
            command.add_argument(
                "--when",
                metavar="CONDITION",
                help="MIN(success_ratio) < 0.9; without it the line -- when: of the file",
            )
        command.add_argument("--fresh", action="store_true", help="publish first what has landed")
        command.add_argument("--url", help="a running server, whose tables are asked")
        command.add_argument("--data", type=Path, metavar="DIR", help=folder)
    _add_report(commands, folder)
    does = "fill the system tables from the table, publish what has landed, or compare the two"
    actions = commands.add_parser("system-tables", help=does, description=does).add_subparsers(
        dest="action", required=True
    )
    for action in ("backfill", "publish", "verify"):
        one = actions.add_parser(action)
        one.add_argument("--data", type=Path, metavar="DIR", help=folder)
        if action == "backfill":
            one.add_argument(
                "--land", action="store_true", help="leave it to a deployment's publisher"
            )


def _add_report(commands: Any, folder: str) -> None:
    does = "write the page of the dashboards with its answers into one file"
    command = commands.add_parser("report", help=does, description=does)
    command.add_argument("--html", type=Path, metavar="FILE", required=True)
    for name, shown, means in (
        ("experiment", "ID", "runs of this experiment"),
        ("user", "NAME", "runs of this user"),
        ("since", "DAY", "runs that started on this day or later, such as 2026-01-31"),
        ("until", "DAY", "runs that started on this day or before"),
        ("metric", "NAME", "what the best runs are the best in (the one of most runs)"),
        ("run", "ID", "whose curve is drawn (the newest with the metric)"),
    ):
        command.add_argument(f"--{name}", default="", metavar=shown, help=means)
    command.add_argument("--order", choices=("lowest", "highest"), default="lowest")
    command.add_argument("--minutes", type=int, default=60, help="of silence make a run stuck (60)")
    command.add_argument("--fresh", action="store_true", help="publish first what has landed")
    command.add_argument("--url", help="a running server, whose tables are asked")
    command.add_argument("--data", type=Path, metavar="DIR", help=folder)


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
