"""``python -m local.admin sql`` and ``system-tables``: queries, backfills, publishes and verifies
the system tables."""

from __future__ import annotations

import base64
import csv
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from operate import alert
from operate.module_loading import CannotRun, load_modules

PATIENCE = 30
"""How often a query is sent while the server answers that too many queries run."""


def _engines() -> None:
    load_modules()
    if find_spec("mltables") is None or find_spec("duckdb") is None:
        raise CannotRun("the engine for SQL is not installed: run `make setup`")


def ask(
    sql: str,
    parameters: dict[str, Any],
    form: str = "json",
    *,
    fresh: bool = False,
    url: str | None = None,
) -> dict[str, Any]:
    """Runs an SQL query over the system tables and returns its columns and rows: by the server at
    ``url``, or without one in this process, on the tables that the environment names.

    Args:
        form: ``json``, or ``arrow``, which returns ``{"arrow": Base64 of a stream}`` instead.

    Raises:
        CannotRun: the statement is refused, the server cannot be reached, or without a server the
            engine for SQL is not installed.
    """
    body = {"sql": sql, "parameters": parameters, "format": form}
    if url:
        return _query_server(url, {**body, "fresh": fresh})
    _engines()
    if fresh:
        import_module("mltables.publisher").publish()
    errors = import_module("mlcore.errors")
    try:
        answer: dict[str, Any] = import_module("sql.execution").run_query(body)
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error
    return answer


def ask_saved(
    name: str, parameters: dict[str, Any], form: str, *, fresh: bool, url: str | None
) -> dict[str, Any]:
    """Runs a saved SQL query of the workspace that ``MLFLOW_WORKSPACE`` names, by the server at
    ``url``, and returns columns and rows as :func:`ask`. Raises CannotRun if the query fails or if
    there is no ``url``."""
    if not url:
        raise CannotRun("a saved query is run by a server: name it with --url, or start it")
    return _query_server(
        url, {"saved": name, "parameters": parameters, "format": form, "fresh": fresh}
    )


def _query_server(url: str, body: dict[str, Any]) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise CannotRun(f"--url {url}: an address of http or https is needed")
    headers = {"Content-Type": "application/json"}
    # The credentials come from the variables of MLflow's client.
    user, password = map(os.environ.get, ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"))
    if user and password:
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {login}"
    elif token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    if workspace := os.environ.get("MLFLOW_WORKSPACE"):
        headers["X-MLFLOW-WORKSPACE"] = workspace
    request = urllib.request.Request(  # noqa: S310 -- checked above
        f"{url.rstrip('/')}/api/3.0/mlflow-serverless/sql", json.dumps(body).encode(), headers
    )
    for tries in reversed(range(PATIENCE)):
        try:
            with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
                answer: dict[str, Any] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.TOO_MANY_REQUESTS or not tries:
                raise CannotRun(_error_message(error)) from error
            time.sleep(float(error.headers.get("Retry-After") or 1))
        except OSError as error:
            raise CannotRun(f"{url} does not answer: {error}") from error
    raise AssertionError


def _error_message(error: urllib.error.HTTPError) -> str:
    text = error.read().decode(errors="replace")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        # The answer to a missing login is plain text.
        return text.strip() or str(error)


def parse_query_parameters(pairs: Sequence[str]) -> dict[str, Any]:
    """Parses the SQL query's parameters on the command line (``--parameter name=value``) into a
    dict of strings. Raises CannotRun for a pair without ``=``."""
    parameters = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise CannotRun(f"--parameter {pair}: name=value is needed")
        parameters[name] = value
    return parameters


def sql(
    statement: str | None,
    pairs: Sequence[str],
    form: str,
    *,
    saved: str | None = None,
    fresh: bool = False,
    url: str | None = None,
) -> int:
    """Runs an SQL query and prints its result. Returns 0. If the statement is ``@file.sql``, it is
    read from that file. Raises CannotRun if the arguments are wrong or the query fails.

    Args:
        saved: the name of a saved query to run, instead of a statement.
    """
    if (statement is None) == (saved is None):
        raise CannotRun("give a query, or the name of a saved one with --saved")
    if form == "arrow" and sys.stdout.isatty():
        raise CannotRun("a stream of Arrow is no text: write it to a file, > answer.arrows")
    answer_form = "arrow" if form == "arrow" else "json"
    parameters = parse_query_parameters(pairs)
    if saved is not None:
        answer = ask_saved(saved, parameters, answer_form, fresh=fresh, url=url)
    else:
        answer = ask(text_of(statement or ""), parameters, answer_form, fresh=fresh, url=url)
    if form == "arrow":
        sys.stdout.buffer.write(base64.b64decode(answer["arrow"]))
        return 0
    if form == "json":
        print(json.dumps(answer))
        return 0
    lines = csv.writer(sys.stdout, delimiter="," if form == "csv" else "\t", lineterminator="\n")
    lines.writerow(answer["columns"])
    for row in answer["rows"]:
        lines.writerow(
            [json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in row]
        )
    if answer.get("truncated"):
        print("there are more rows: add a LIMIT", file=sys.stderr)
    return 0


def text_of(statement: str) -> str:
    """Returns the SQL that an argument of the command gives: the argument itself, or for
    ``@file.sql`` the content of the file. Raises CannotRun if the file cannot be read."""
    if not statement.startswith("@"):
        return statement
    try:
        return Path(statement[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise CannotRun(f"{statement[1:]} cannot be read: {error.strerror}") from error


def check(
    statement: str,
    pairs: Sequence[str],
    when: str | None,
    *,
    fresh: bool = False,
    url: str | None = None,
) -> int:
    """Runs an SQL query on the system tables and checks an alert's condition on its result. Returns
    2 if the condition is met, otherwise 0. Raises CannotRun if the query fails or the condition
    does not fit it."""
    sql = text_of(statement)
    publishes = [fresh, False]

    def answer(statement: str) -> dict[str, Any]:
        return ask(statement, parse_query_parameters(pairs), fresh=publishes.pop(0), url=url)

    return alert.run(answer, sql, when)


def _histories() -> None:
    load_modules()
    if not import_module("mlcore.artifacts").has_store():
        raise CannotRun("long histories are files: name them with ARTIFACT_BUCKET")


def backfill(*, publishes: bool = True) -> int:
    """Adds all data of the DynamoDB table to the system tables. Returns 0.

    Args:
        publishes: False only writes landing objects (files of changes), which the deployment then
            publishes, so that no SQL engine is needed here.
    """
    _histories()
    if not publishes:
        count = 0
        for landed in import_module("mlcore.system_tables.backfill_landing").land():
            count += landed.startswith("experiment ")
            print(landed)
        print(
            f"{count} experiments and all other entities landed; "
            "the publisher brings them into the tables"
        )
        return 0
    _engines()
    done = import_module("mltables.backfill").backfill(print)
    _print_counts(done)
    return 0


def forget(experiment_id: str, trace_ids: Sequence[str]) -> int:
    """Writes a landing object (a file of changes) that says that the given traces have expired. So
    the next publication removes their rows from the system tables, except those of traces that
    still exist. Returns 0, the exit code."""
    load_modules()
    import_module("mlcore.system_tables.trace_landing").forget(experiment_id, trace_ids)
    print("landed; the next publication removes the rows of those that the API does not know")
    return 0


def _print_counts(done: Any) -> None:
    print(
        f"{done.experiments} experiments, {done.runs} runs, {done.points} points, "
        f"{done.traces} traces, {done.entities} rows of other tables published"
    )


def publish() -> int:
    _engines()
    done = import_module("mltables.publisher").publish()
    _print_counts(done)
    return 0


def verify() -> int:
    """Prints the differences between the system tables (Delta tables for SQL) and the DynamoDB
    table; returns 1 if there are any, otherwise 0."""
    _histories()
    _engines()
    count = 0
    for difference in import_module("mltables.verification").verify():
        count += 1
        print("  ".join(difference))
    print(f"{count} differences")
    return 1 if count else 0
