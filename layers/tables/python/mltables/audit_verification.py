"""Verifies the chain of hashes in the system table ``audit_log``, and exports the table's rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from mltables import audit_chain
from mltables.audit_chain import Event
from mltables.audit_publishing import events, key_of, open_table
from mltables.duckdb_connection import connect
from mltables.lake import Lake
from mltables.snapshot import Snapshot
from mltables.table_definitions import AUDIT

_DAY_LENGTH: Final = len("2026-01-31")


class Day(NamedTuple):
    """The number of rows of ``audit_log`` that were published on one day (UTC), and the number and
    hash of the last of these rows."""

    day: str
    rows: int
    last_sequence: int
    last_hash: str
    """The hash of the day's last row. If it is noted elsewhere, nobody can change this row or an
    earlier one unnoticed."""


class Problem(NamedTuple):
    """A row of ``audit_log`` at which the chain of hashes is broken; or, with the number 0, a day
    that does not end with the noted hash."""

    sequence: int
    record_id: str
    text: str


class Verified(NamedTuple):
    """The result of verifying the chain of hashes in ``audit_log``."""

    days: list[Day]
    problems: list[Problem]


def verify(noted: Mapping[str, str] | None = None) -> Verified:
    """Verifies the table ``audit_log``: computes the hash of each row again and compares it with
    the hash in the row. Returns the table's days, and the problems that were found.

    The previous hash of the oldest row cannot be checked, unless it is row 1, because the rows
    before it were deleted at the end of their retention.

    Args:
        noted: the last hash of a day, by day (``YYYY-MM-DD``), as somebody noted it elsewhere.
    """
    days: dict[str, Day] = {}
    problems: list[Problem] = []
    with Lake() as lake, connect(None, "400MB") as connection:
        delta = open_table(lake)
        key = key_of(delta)
        before: tuple[int, str] | None = None
        for event, inserted, sequence, previous, hashed in events(
            connection, Snapshot(lake, AUDIT, delta).source(connection)
        ):
            wrong = _wrong(event, inserted, (sequence, previous, hashed), before, key)
            if wrong:
                problems.append(Problem(sequence, event.record_id, wrong))
            before = (sequence, hashed)
            day = _time(inserted)[:_DAY_LENGTH]
            rows = days[day].rows if day in days else 0
            days[day] = Day(day, rows + 1, sequence, hashed)
    for day, expected in sorted((noted or {}).items()):
        if day not in days or days[day].last_hash != expected:
            problems.append(Problem(0, "", f"{day} does not end with the noted hash {expected}"))
    return Verified([days[day] for day in sorted(days)], problems)


def _wrong(
    event: Event,
    inserted: int,
    link: tuple[int, str, str],
    before: tuple[int, str] | None,
    key: str,
) -> str:
    """Returns a description of what is wrong with a row; "" if nothing is.

    Args:
        link: number, previous hash and hash of the row.
        before: number and hash of the row before it; None for the oldest row.
    """
    sequence, previous, hashed = link
    first = (0, audit_chain.BEGINNING) if sequence == 1 else (sequence - 1, previous)
    number, last = before or first
    if sequence != number + 1:
        return f"the row before it has number {number}"
    if previous != last:
        return "it does not continue the row before it"
    if audit_chain.hash_of(event, inserted, sequence, previous, key) != hashed:
        return "its content is not that of its hash"
    if not audit_chain.names_the_person(event, key):
        return "its name is not that of its pseudonym"
    return ""


def export() -> Iterator[str]:
    """Yields the rows of ``audit_log`` as JSON objects, a line each, in the order of the chain of
    hashes."""
    with Lake() as lake, connect(None, "400MB") as connection:
        delta = open_table(lake)
        for event, inserted, sequence, previous, hashed in events(
            connection, Snapshot(lake, AUDIT, delta).source(connection)
        ):
            row: dict[str, Any] = {
                **event._asdict(),
                "event_time": _time(event.event_time),
                "insert_time": _time(inserted),
                "entity": json.loads(event.entity),
                "sequence": sequence,
                "previous_hash": previous,
                "hash": hashed,
            }
            yield json.dumps(row) + "\n"


def _time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
