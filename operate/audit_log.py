"""``python -m local.admin audit``: verifies the hashes of the table ``audit_log``, exports its
rows, and erases a person's name from them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from operate.module_loading import CannotRun, load_modules

ATTEMPTS: Final = 20
"""How often an erasure is repeated while publishers commit."""


def run(given: argparse.Namespace) -> int:
    """Runs ``audit verify``, ``audit export`` or ``audit erase`` on the table ``audit_log``.
    Returns 1 if ``verify`` finds a problem, otherwise 0.

    Raises:
        CannotRun: the SQL engine is missing, an argument is wrong, or commits prevent ``erase``.
    """
    load_modules()
    require_engine()
    log = import_module("mltables.audit_verification")
    if given.action == "verify":
        return _verify(log, given.noted)
    if given.action == "export":
        sys.stdout.writelines(log.export())
        return 0
    if not given.user:
        raise CannotRun("audit erase: --user NAME is needed")
    print(f"{erase(given.user)} rows have a pseudonym in place of the name")
    return 0


def require_engine() -> None:
    """Raises CannotRun if the engine for SQL is not installed."""
    if find_spec("mltables") is None or find_spec("duckdb") is None:
        raise CannotRun("the engine for SQL is not installed: run `make setup`")


def _verify(log: Any, noted: Sequence[str]) -> int:
    days, problems = log.verify(dict(_pair(text) for text in noted))
    for day in days:
        print(f"{day.day}  {day.rows:9,} rows  to {day.last_sequence:,}  {day.last_hash}")
    for problem in problems:
        print(f"row {problem.sequence} ({problem.record_id}): {problem.text}")
    print(f"{sum(day.rows for day in days):,} rows, {len(problems)} problems")
    return 1 if problems else 0


def erase(user: str) -> int:
    """Erases a user's name from the system table ``audit_log``; tries again if another process
    commits to it meanwhile. Returns the number of changed rows. Raises CannotRun after
    :data:`ATTEMPTS` attempts."""
    audit_erasure = import_module("mltables.audit_erasure")
    failure: type[Exception] = import_module("deltalake.exceptions").CommitFailedError
    for attempt in range(ATTEMPTS):
        try:
            changed: int = audit_erasure.erase(user)
        except failure as error:
            if attempt == ATTEMPTS - 1:
                raise CannotRun("publishers commit all the time; repeat the command") from error
        else:
            return changed
    raise AssertionError


def _pair(text: str) -> tuple[str, str]:
    day, equals, hash_ = text.partition("=")
    if not equals:
        raise CannotRun(f"--noted {text}: DAY=HASH is needed, as `audit verify` prints them")
    return day, hash_
