"""The command ``erase-user`` leaves a name nowhere: not in the table, not in the system tables and
their files, not in the audit, whose chain still holds. What it cannot know it lists."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars
import pytest
from deltalake import DeltaTable

import indexer.app
from local.audit_file import AuditFile
from mlcore.auth.permissions import Grant
from mlcore.entities.users import Account, Session
from mlcore.http import audit
from mlcore.repos.settings import system_tables_readers as readers
from mlcore.repos.users import (
    api_keys,
    caller_usage,
    grants,
    roles,
    sessions,
    sign_in_accounts,
    users,
)
from mlcore.system_tables import audit_landing, storage
from mltables import audit_verification, table_definitions
from operate.erasure import command, items
from operate.module_loading import CannotRun
from tests.contract import route_environment
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.route_requests import NOT_SENT, REQUESTS
from tests.contract.route_world import World, routes_of
from tests.contract.streams import Stream
from tests.item_text import text_of

__all__ = ["tables"]

pytestmark = pytest.mark.timeout(900)

NAME = "zoe.quill"
OTHER = "zoe.quill.2"
"""Another user, whose name contains the first one's."""
DOMAINS = (
    *("artifacts", "evaluation", "experiments", "gateway", "logged_models", "mcp_servers"),
    *("registry", "runs", "skills", "traces", "webhooks"),
)
TAG = {"key": "mlflow.user", "value": NAME}


def naming(store: Store, name: str = NAME) -> list[str]:
    """Keys and texts of the items with the name, without the other user's."""
    return [
        text for item in store.items() if name in (text := text_of(item).replace(OTHER, "other"))
    ]


def index(stream: Any) -> None:
    for _ in range(5):
        if records := stream.fresh():
            indexer.app.handler({"Records": records}, None)


class Office:
    """What a user did with every route, and what a login leaves behind."""

    def __init__(self, store: Store, tables: Tables) -> None:
        self.store, self.tables = store, tables
        self.stream = Stream(store)
        self.world = World()
        self.world.caller = {
            "lambda": {"username": NAME, "is_admin": True, "method": "basic", "login": "password"}
        }
        self.lines: list[str] = []

    def check(self) -> None:
        """There is always room."""

    def record(self, request: Mapping[str, Any], /) -> None:
        self.lines.append(audit_landing.line_of(f"id{len(self.lines)}", 1_767_268_800_000, request))

    def work(self, domains: Sequence[str]) -> None:
        world = self.world
        for domain in domains:
            last = ""
            for route in routes_of(domain):
                if route in NOT_SENT:
                    continue
                method, path = route.split()
                if {method, last} != {"GET"}:
                    world.prepare(domain)
                last = method
                world.send(method, path, REQUESTS[route])
        world.prepare("evaluation")
        run = {"experiment_id": "{experiment}", "user_id": NAME, "start_time": 1, "tags": [TAG]}
        made = world.made("POST", "/2.0/mlflow/runs/create", **run)
        world.names["run"] = made["run"]["info"]["run_id"]
        long = [{"key": f"t{number}", "value": "x" * 4_000} for number in range(90)]
        world.made("POST", "/2.0/mlflow/runs/log-batch", run_id="{run}", tags=long)
        # There is no room any more, so the tag is an item of its own.
        world.made("POST", "/2.0/mlflow/runs/log-batch", run_id="{run}", tags=[TAG])
        world.made("POST", "/2.0/mlflow/logged-models", experiment_id="{experiment}", tags=[TAG])
        world.made(
            "POST",
            "/2.0/mlflow/traces",
            experiment_id="{experiment}",
            request_metadata=[{"key": "mlflow.trace.user", "value": NAME}],
        )
        source = {"source_type": "HUMAN", "source_id": NAME}
        assessment = {"assessment_name": "a", "trace_id": "{trace}", "source": source}
        world.made(
            "POST",
            "/3.0/mlflow/traces/{trace_id}/assessments",
            assessment={**assessment, "feedback": {"value": 1}},
        )
        tags = json.dumps({"mlflow.user": NAME})
        world.made("POST", "/3.0/mlflow/datasets/create", name="d {name}", tags=tags)

    def log_in(self) -> None:
        for name in (NAME, OTHER):
            user = users.create(name, "scrypt$hash", is_admin=False)
            for grant in (
                Grant("experiment", "1", "EDIT"),
                Grant("registered_model", "m", "READ"),
                Grant("skill", "s", "MANAGE"),
            ):
                grants.put(user, "default", grant)
            roles.assign(user, roles.create(f"role {user.user_id}", "default", None).role_id)
            sign_in_accounts.apply(
                users.get_profile(name), Account("https://issuer", "subject"), ()
            )
            sessions.start(
                Session("id", name, user.user_id, "https://issuer", False, 1, 1, 9_999_999_999, "")
            )
            api_keys.create(user, "key", "default", None, None)
            caller_usage.add(f"user:{name}", 0, 5)
            readers.grant(name, ["*"])

    def publish(self) -> None:
        if self.lines:
            audit_landing.put("lines", self.lines)
        self.tables.follow()


@pytest.fixture
def domains(request: pytest.FixtureRequest) -> Sequence[str]:
    """Where the user works; little, unless a test asks for more."""
    chosen: Sequence[str] = getattr(request, "param", ("runs",))
    return chosen


@pytest.fixture
def office(
    store: Store,
    tables: Tables,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    domains: Sequence[str],
) -> Iterator[Office]:
    route_environment.prepare(monkeypatch, tmp_path)
    monkeypatch.setenv("AUTHENTICATION", "basic")
    made = Office(store, tables)
    audit.provide(made)
    made.log_in()
    made.work(domains)
    audit.provide(None)
    made.publish()
    index(made.stream)
    yield made
    made.stream.close()


def whole(store: Store) -> list[str]:
    return sorted(map(text_of, store.items()))


def written_tables() -> list[str]:
    names = [table.name for table in table_definitions.TABLES]
    return [name for name in names if DeltaTable.is_deltatable(storage.table_uri(name))]


def in_tables(office: Office) -> list[str]:
    return [
        name
        for name in written_tables()
        if NAME in str(office.tables.frame(name).to_dicts()).replace(OTHER, "other")
    ]


@pytest.mark.parametrize("domains", [DOMAINS], indirect=True)
def test_name_is_nowhere_afterwards(office: Office, store: Store, capsys: Any) -> None:
    before, named = whole(store), naming(store)
    assert len(named) > 60
    assert set(in_tables(office)) >= {"runs_latest", "traces", "assessments", "audit_log"}
    chain = audit_verification.verify()
    assert chain.problems == []

    command.run(NAME, dry=True)
    printed = capsys.readouterr().out
    assert whole(store) == before
    assert audit_verification.verify() == chain
    assert f"USER#{NAME} U#META" in printed
    assert "would be deleted" in printed
    assert OTHER not in printed

    code = command.run(NAME, dry=False)
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert audit_verification.verify() == chain
    assert in_tables(office) != ["audit_log"], "the publisher brings it into the other tables"
    index(office.stream)
    assert naming(store) == []
    assert of_other(whole(store)) == of_other(before)
    assert readers.granted(OTHER) == ("*",)
    assert users.find(NAME) is None
    assert readers.granted(NAME) == ()

    office.tables.follow()
    assert in_tables(office) == []
    for table in written_tables():
        # As the upkeep does a day later.
        DeltaTable(storage.table_uri(table)).vacuum(
            retention_hours=0, enforce_retention_duration=False, dry_run=False
        )
    for path in office.tables.folder.rglob("*"):
        if path.suffix == ".parquet" and "_delta_log" not in path.parts:
            rows = str(polars.read_parquet(path, hive_partitioning=False).to_dicts())
            assert NAME not in rows.replace(OTHER, "other"), path
        elif path.is_file():
            assert NAME.encode() not in path.read_bytes().replace(OTHER.encode(), b""), path

    after = whole(store)
    assert command.run(NAME, dry=False) == 0
    assert "0 items deleted, in 0 items and 0 rows" in capsys.readouterr().out
    assert whole(store) == after


def of_other(texts: list[str]) -> list[str]:
    """The items of the other user; the list of readers names both."""
    return [text for text in texts if OTHER in text and "CFG#system_tables_readers" not in text]


def test_lines_of_a_stopped_runner_are_published_first(tables: Tables) -> None:
    file = AuditFile(tables.folder)
    file.start()
    entry = {"user": NAME, "outcome": "done", "entity": {"username": [NAME, OTHER]}}
    audit.keep({"rpc": "r", "method": "POST", "status": 200, "request_id": "q", "audit": entry})
    file.stop()
    command.publish_waiting()
    assert command.run(NAME, dry=False) == 0
    assert not list((tables.folder / "audit").iterdir())
    [row] = tables.rows("audit_log")
    assert (row["user_name"], json.loads(row["entity"])["username"][1]) == (None, OTHER)
    assert NAME not in str(row).replace(OTHER, "other")


def test_killed_half_way_goes_on(
    office: Office, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is killed, with the same pseudonym, and with no login that works."""
    rng = random.Random(4)
    while True:
        left = rng.randrange(5, 40)
        erased = items.erase

        def kill(*given: Any, erased: Any = erased) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise KeyboardInterrupt
            erased(*given)

        with monkeypatch.context() as patch:
            patch.setattr(items, "erase", kill)
            try:
                command.run(NAME, dry=False)
            except KeyboardInterrupt:
                assert users.find(NAME) is None
                continue
        break
    index(office.stream)
    assert naming(store) == []
    assert in_tables(office).count("audit_log") == 0
    pseudonyms = {
        match for text in whole(store) for match in re.findall(r"person-[0-9a-f]{16}", text)
    }
    assert len(pseudonyms) == 1


def test_what_somebody_wrote_is_listed_and_stays(office: Office, store: Store, capsys: Any) -> None:
    """A run, a param or a text may be called like a person."""
    world = office.world
    world.made("POST", "/2.0/mlflow/runs/create", experiment_id="{experiment}", run_name=NAME)
    note = {"key": "mlflow.note.content", "value": f"ask {NAME}, not me"}
    world.made("POST", "/2.0/mlflow/experiments/set-experiment-tag", experiment_id="0", **note)
    world.made("POST", "/2.0/mlflow/registered-models/create", name=f"{NAME}x")
    assert command.run(NAME, dry=False) == 1
    printed = capsys.readouterr().out
    assert "mention experiment: EXP#0 E#META" in printed
    assert f"{NAME}x" not in printed
    left = naming(store)
    assert any("ask zoe.quill, not me" in text for text in left)
    assert any(f'"run_name": {{"S": "{NAME}"}}' in text for text in left)


@pytest.mark.parametrize("name", ["", "  "])
def test_nobody_is_not_erased(tables: Tables, name: str) -> None:
    with pytest.raises(CannotRun, match="name a user"):
        command.run(name, dry=False)


def test_name_that_nobody_has(office: Office, store: Store, capsys: Any) -> None:
    """Also one that is a pattern, or a part of a key."""
    before = whole(store)
    for name in ("zoe", "zoe.", "quill", "%", ".*", "USER#", "admin", "default", "1", "finished"):
        command.run(name, dry=False)
        assert "0 items deleted" in capsys.readouterr().out, name
    assert whole(store) == before
