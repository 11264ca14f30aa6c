"""The table ``audit_log``: each audited request once, a chain that shows every change, names that
can be erased, and rows that only administrators read."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import polars
import pytest
from deltalake import DeltaTable, write_deltalake

from local.audit_file import AuditFile
from mlcore.auth.permissions import Grant
from mlcore.http import audit
from mlcore.policies.access import Access
from mlcore.policies.system_tables import audited_workspaces, readable_workspaces
from mlcore.repos.settings import system_tables_readers as readers
from mlcore.repos.users import grants, users
from mlcore.system_tables import audit_landing, landing_objects, storage
from mltables import audit_erasure, audit_verification, publisher, table_maintenance
from mltables.lake import Lake
from mltables.table_definitions import AUDIT, open_or_create
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

NOON = 1_767_268_800_000
"""2026-01-01 12:00 UTC, in milliseconds."""


def request(number: int, **entry: Any) -> dict[str, Any]:
    made = {
        "user": f"user {number % 3}",
        "login": "password",
        "address": "203.0.113.9",
        "workspace": f"team-{number % 2}",
        "outcome": "done",
        "entity": {"run_id": f"r{number}", "username": ["user 1", "someone"]},
    }
    return {
        "rpc": "/api/2.0/mlflow/runs/create",
        "method": "POST",
        "status": 200,
        "request_id": f"q{number}",
        "audit": {**made, **entry},
    }


def line(number: int, **entry: Any) -> str:
    return audit_landing.line_of(f"id{number}", NOON + number, request(number, **entry))


@pytest.fixture
def hundred(tables: Tables) -> Tables:
    """A table with a hundred rows, of four publications."""
    for part in range(4):
        audit_landing.put(f"part-{part}", [line(25 * part + number) for number in range(25)])
        assert tables.follow().audited == 25
    return tables


def problems() -> list[str]:
    return [problem.text for problem in audit_verification.verify().problems]


def rewrite(change: Any) -> None:
    """Replaces the rows of the table as somebody could who can write its files."""
    uri = storage.table_uri("audit_log")
    before = polars.read_delta(uri)
    after = polars.DataFrame(change(before.to_dicts()), schema=before.schema)
    write_deltalake(uri, after, mode="overwrite")


def test_each_request_is_there_once(tables: Tables) -> None:
    """Whatever is landed again, in whatever order, beside whatever else."""
    rng = random.Random(3)
    numbers = list(range(200))
    for step in range(12):
        some = [line(number) for number in rng.choices(numbers, k=40)]
        audit_landing.put(f"{rng.randrange(4)}", [*some, *some[:5]])
        if step % 3:
            tables.follow()
    audit_landing.put("all", map(line, numbers))
    tables.follow()
    tables.follow()
    rows = tables.rows("audit_log")
    assert sorted(row["record_id"] for row in rows) == sorted(f"id{number}" for number in numbers)
    by_id = {row["record_id"]: row for row in rows}
    for number in numbers:
        row, sent = by_id[f"id{number}"], request(number)
        assert row["event_time"].timestamp() * 1000 == NOON + number
        assert row["user_name"] == sent["audit"]["user"]
        assert row["workspace_id"] == sent["audit"]["workspace"]
        assert (row["rpc"], row["method"], row["http_status"]) == (sent["rpc"], "POST", 200)
        assert json.loads(row["entity"]) == sent["audit"]["entity"]
    assert sorted(row["sequence"] for row in rows) == list(range(1, 201))
    assert problems() == []


def _messages(numbers: Sequence[int]) -> bytes:
    """A message of a subscription filter, compressed as CloudWatch Logs does."""
    events = [
        {"id": f"id{number}", "timestamp": NOON + number, "message": json.dumps(request(number))}
        for number in numbers
    ]
    events.append({"id": "other", "timestamp": NOON, "message": '{"message": "a request"}'})
    message = {"messageType": "DATA_MESSAGE", "logGroup": "g", "logEvents": events}
    return gzip.compress(json.dumps(message).encode())


def test_log_lines_become_the_same_rows(tables: Tables) -> None:
    """Firehose concatenates messages, and may deliver some of them again."""
    test = {"messageType": "CONTROL_MESSAGE", "logEvents": [{"id": "", "message": "reachable"}]}
    control = gzip.compress(json.dumps(test).encode())
    for name, content in (
        ("audit-2026-01-01/stream-1-a", control + _messages(range(10)) + _messages(range(5, 20))),
        ("audit-2026-01-01/stream-1-b", _messages(range(15, 30))),
        ("audit-2026-01-02/stream-1-c", control),
    ):
        landing_objects.put(name, content, landing_objects.AUDIT_LOGS)
    audit_landing.put("laptop", [line(number) for number in range(25, 40)])
    assert tables.follow().audited == 40
    assert len(list(landing_objects.waiting())) == 0
    rows = {row["record_id"]: row for row in tables.rows("audit_log")}
    assert rows.keys() == {f"id{number}" for number in range(40)}
    assert {row["address"] for row in rows.values()} == {"203.0.113.9"}
    assert rows["id7"]["event_time"].timestamp() * 1000 == NOON + 7
    assert problems() == []


def test_a_step_that_is_repeated_adds_nothing(hundred: Tables) -> None:
    before = audit_verification.verify()
    audit_landing.put("again", [line(number) for number in range(100)])
    assert hundred.follow().audited == 0
    assert audit_verification.verify() == before
    assert [day.rows for day in before.days] == [100]
    table_maintenance.maintain_tables()
    assert audit_verification.verify() == before


def _changed(rows: list[dict[str, Any]], column: str, value: Any) -> list[dict[str, Any]]:
    return [{**row, column: value} if row["sequence"] == 40 else row for row in rows]


CHANGES = {
    "user_name": "somebody else",
    "user_id": "person-0123456789abcdef",
    "address": "198.51.100.7",
    "outcome": "refused",
    "entity": '{"run_id": "another"}',
    "workspace_id": "team-9",
    "http_status": 403,
    "is_admin": True,
    "record_id": "another",
    "hash": "0" * 64,
    "previous_hash": "0" * 64,
    "sequence": 400,
}


def test_a_changed_row_is_found(hundred: Tables) -> None:
    original = hundred.rows("audit_log")
    for column, value in CHANGES.items():
        assert problems() == []
        rewrite(partial(_changed, column=column, value=value))
        assert problems(), column
        rewrite(lambda _: original)


def test_a_removed_added_or_moved_row_is_found(hundred: Tables) -> None:
    original = hundred.rows("audit_log")
    for wrong in (
        lambda rows: [row for row in rows if row["sequence"] != 40],
        lambda rows: [*rows, {**rows[-1], "record_id": "added"}],
        lambda rows: [
            {**row, "sequence": {40: 41, 41: 40}.get(row["sequence"], row["sequence"])}
            for row in rows
        ],
    ):
        rewrite(wrong)
        assert problems()
        rewrite(lambda _: original)
        assert problems() == []
    # A chain whose end is cut off is whole in itself: the noted hash shows it.
    [day] = audit_verification.verify().days
    rewrite(lambda rows: [row for row in rows if row["sequence"] < 90])
    assert problems() == []
    [noted] = audit_verification.verify({day.day: day.last_hash}).problems
    assert day.last_hash in noted.text


def test_rows_that_were_kept_long_enough_may_go(hundred: Tables) -> None:
    """The oldest row that is left continues rows that nobody has any more."""
    rewrite(lambda rows: [row for row in rows if row["sequence"] > 25])
    assert problems() == []


def test_days_are_merged_and_removed_after_their_retention(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain goes on after the day that was removed."""
    today = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for day in range(3):
        moment = today + timedelta(days=day)
        with monkeypatch.context() as patch:
            patch.setattr("time.time", moment.timestamp)
            for part in range(table_maintenance.SMALL_FILES):
                number = 100 * day + part
                sent = audit_landing.line_of(
                    f"id{number}", int(moment.timestamp() * 1000), request(number)
                )
                audit_landing.put("one", [sent])
                tables.follow()
    before = audit_verification.verify()
    assert [day.rows for day in before.days] == [table_maintenance.SMALL_FILES] * 3
    table_maintenance.maintain_tables()
    assert audit_verification.verify() == before
    assert len(tables.frame("audit_log")) == 3 * table_maintenance.SMALL_FILES
    assert len(DeltaTable(storage.table_uri("audit_log")).file_uris()) == 3
    age = (datetime.now(UTC).date() - today.date()).days
    monkeypatch.setenv(table_maintenance.AUDIT_DAYS, str(age - 1))
    table_maintenance.maintain_tables()
    after = audit_verification.verify()
    assert after.days == before.days[1:]
    assert after.problems == []
    audit_landing.put("later", [line(999)])
    assert tables.follow().audited == 1
    assert problems() == []


def test_a_name_is_erased_and_the_chain_holds(hundred: Tables) -> None:
    before = audit_verification.verify()
    assert audit_erasure.erase("user 1") == 100  # in the entity of all rows
    assert audit_verification.verify() == before
    text = "".join(audit_verification.export())
    assert "user 1" not in text
    assert "user 2" in text
    rows = hundred.rows("audit_log")
    erased = [row for row in rows if row["user_name"] is None]
    assert len(erased) == 33
    assert len({row["user_id"] for row in erased}) == 1
    assert erased[0]["user_id"] in json.loads(rows[0]["entity"])["username"]
    assert audit_erasure.erase("user 1") == 0
    # A new request of the same person continues the chain.
    audit_landing.put("later", [line(301)])
    hundred.follow()
    assert problems() == []
    rewrite(lambda rows: _changed(rows, "user_name", "user 2"))
    assert problems()


def test_an_export_has_every_row_in_order(hundred: Tables) -> None:
    rows = [json.loads(text) for text in audit_verification.export()]
    assert [row["sequence"] for row in rows] == list(range(1, 101))
    assert rows[0]["event_time"] == "2026-01-01T12:00:00.000Z"
    assert rows[0]["entity"]["run_id"] == "r0"
    assert rows[0]["hash"] == rows[1]["previous_hash"]


def test_who_reads_the_audit(store: Store) -> None:
    """A grant to query the system tables does not count; the administration of a workspace does."""
    for name in ("ann", "chief"):
        users.ensure(name)
    readers.grant("ann", ["*"])
    grants.put(users.get("chief"), "default", Grant("workspace", "*", "MANAGE"))
    allowed = {
        name: audited_workspaces(Access(name, name == "root", "default"))
        for name in ("root", "chief", "ann")
    }
    assert allowed == {"root": None, "chief": ["default"], "ann": []}
    assert readable_workspaces(Access("ann", False, "default")) is None
    assert audited_workspaces(Access("root", True, "default", scopes=("read",))) == []


def test_a_reader_of_the_tables_gets_no_row_of_the_audit(hundred: Tables) -> None:
    """Not by counting, by any spelling of the name, or by an error."""

    names = ("audit_log", "AUDIT_LOG", "`audit_log`", "system.mlflow.`Audit_Log`")
    statements = [
        f"SELECT {column} FROM {name if name.startswith('system') else f'system.mlflow.{name}'}"
        for name in names
        for column in ("count(*)", "count(user_name)", "max(hash)", "sum(1 / (sequence - 40))")
    ]
    assert hundred.counts(statements, None, audited=[]) == [0, 0, None, None] * len(names)
    counted = ["SELECT count(*) FROM system.mlflow.audit_log"]
    assert hundred.counts(counted, None, audited=["team-1"]) == [50]
    assert hundred.counts(counted, None, audited=None) == [100]


class Requests(Iterator[dict[str, Any]]):
    """Different audited requests."""

    def __init__(self) -> None:
        self.number = 0

    def __next__(self) -> dict[str, Any]:
        self.number += 1
        return request(self.number)


def test_a_laptop_keeps_lines_until_they_are_published(tables: Tables) -> None:
    sent = Requests()
    file = AuditFile(tables.folder)
    file.start()
    for _ in range(30):
        audit.keep(next(sent))
    file.land()
    assert tables.follow().audited == 30
    audit.keep(next(sent))
    file.stop()
    audit.keep(next(sent))  # nobody keeps it any more
    # A process that was killed left a line, a part of another, and a file that it was landing.
    folder = tables.folder / "audit"
    with (folder / "open.jsonl").open("a") as written:
        written.write('{"id": "to')
    closed = folder / "closed-1"
    closed.write_text(audit_landing.line_of("killed", NOON, next(sent)) + "\n")
    again = AuditFile(tables.folder)
    again.land()
    again.land()
    assert tables.follow().audited == 2
    assert not list(folder.iterdir())
    assert problems() == []


def test_what_cannot_be_kept_is_not_acknowledged(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = AuditFile(tables.folder)
    file.start()
    audit.keep(request(1))
    whole = Path.read_bytes(tables.folder / "audit/open.jsonl")

    def full(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[:7])

    write = os.write
    monkeypatch.setattr("os.write", full)
    with pytest.raises(Exception, match="The disk of the server is full") as raised:
        audit.keep(request(2))
    assert getattr(raised.value, "status", None) == 507
    monkeypatch.undo()
    assert (tables.folder / "audit/open.jsonl").read_bytes() == whole
    file.stop()


def test_upkeep_before_the_first_request_leaves_the_audit_to_the_publisher(tables: Tables) -> None:
    table_maintenance.maintain_tables()
    assert problems() == []
    audit_landing.put("first", [line(1)])
    publisher.publish()
    assert [row["record_id"] for row in tables.rows("audit_log")] == ["id1"]
    assert problems() == []


def test_a_table_without_a_key_gets_one(tables: Tables) -> None:
    """The upkeep of earlier versions has made such a table."""
    with Lake() as lake:
        open_or_create(lake, AUDIT)
    audit_landing.put("first", [line(1, user="ann")])
    publisher.publish()
    audit_landing.put("second", [line(2, user="ann")])
    publisher.publish()
    first, second = tables.rows("audit_log")
    assert first["user_id"] == second["user_id"] != ""
    assert problems() == []
