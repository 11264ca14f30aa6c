"""The store's file cannot be written: routes that read answer as before, routes that write say what
to do and leave no trace, and all work as soon as the file can be written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.store.database import READ_ONLY, Connection, Database
from local.store.store import Store as EmbeddedStore
from mlcore import artifacts
from mlcore.db.client import client as product_client
from mlcore.entities.evaluation.detection_schedule import SCHEDULE_TAG
from mlcore.http.routes import only_reads
from mlcore.process_cache import clear
from tests.contract import route_environment
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.route_requests import NOT_SENT, REQUESTS
from tests.contract.route_world import DOMAINS, World, routes_of

DONE = {200, 201, 204, 302}
NAMED_DEFAULT = {"experiment_name": "Default"}
SCHEDULE = {
    "experiment_id": "{experiment}",
    "key": SCHEDULE_TAG,
    "value": json.dumps({"version": 1, "cadence": "daily", "paused": True}),
}
"""Without a schedule the request for its next time writes nothing."""
ELSEWHERE = ("artifacts", "ui")
"""Domains whose routes write files, or call other servers."""


def made_read_only(connection: Connection) -> Connection:
    """As SQLite opens a file that may only be read."""
    connection.execute("PRAGMA query_only=ON")
    connection.is_read_only = True
    return connection


@contextlib.contextmanager
def unwritable(store: Store) -> Iterator[None]:
    """SQLite refuses writes of every connection, as for a file that may only be read."""
    client: Any = product_client()
    assert isinstance(client, EmbeddedStore)
    database = client._table(store.table).database
    connect = Database._connect

    def read_only(self: Database) -> Connection:
        connection = connect(self)
        return made_read_only(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "_connect", read_only)
        for connection in list(database._idle):
            made_read_only(connection)
        yield


@pytest.fixture
def world(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    route_environment.prepare(monkeypatch, tmp_path)
    return World()


def content(store: Store) -> dict[tuple[str, str], Any]:
    return {(item["PK"]["S"], item["SK"]["S"]): item for item in store.items()}


def test_the_default_experiment_is_read_before_it_is_stored(world: World, store: Store) -> None:
    path = "/2.0/mlflow/experiments"
    with unwritable(store):
        for route, fields in (("get", {"experiment_id": "0"}), ("get-by-name", NAMED_DEFAULT)):
            status, body = world.send("GET", f"{path}/{route}", fields)
            assert (status, body["experiment"]["name"]) == (200, "Default")
        status, body = world.send("POST", f"{path}/search", {"max_results": 5})
        assert [experiment["experiment_id"] for experiment in body["experiments"]] == ["0"]
        status, body = world.send("POST", "/2.0/mlflow/runs/search", {"experiment_ids": ["0"]})
        assert (status, body.get("runs", [])) == (200, [])
        of_default = {"experiment_id": "0"}
        assert world.send("POST", "/2.0/mlflow/runs/create", of_default)[0] == 507
        assert not store.items()
    assert world.send("POST", "/2.0/mlflow/runs/create", of_default)[0] == 200
    assert world.send("GET", f"{path}/get-by-name", NAMED_DEFAULT)[0] == 200


@pytest.mark.parametrize("domain", DOMAINS)
def test_reads_go_on_and_writes_are_refused(
    world: World, store: Store, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if domain == "workspaces":
        enable_workspaces(monkeypatch, "other")
    faults: dict[str, Any] = {}
    before: dict[tuple[str, str], Any] = {}
    has_written = True
    refused = 0
    for name, route in routes_of(domain).items():
        if name in NOT_SENT:
            continue
        method, path = name.split()
        if has_written:
            world.prepare(domain)
            if domain == "evaluation":
                world.made("POST", "/2.0/mlflow/experiments/set-experiment-tag", **SCHEDULE)
            before = content(store)
        has_written = not only_reads(route)
        clear()
        with unwritable(store):
            status, body = world.send(method, path, REQUESTS[name])
        if content(store) != before:
            faults[name] = "something was written"
        elif status == 507:
            refused += 1
            if only_reads(route) or READ_ONLY not in str(body):
                faults[name] = (status, body)
        elif status not in DONE:
            faults[name] = (status, body)
        elif has_written and domain not in ELSEWHERE:
            faults[name] = (status, "as if it had been written")
        if has_written:
            status, body = world.send(method, path, REQUESTS[name])
            if status not in DONE:
                faults[f"afterwards {name}"] = (status, body)
    artifacts.store.cache_clear()
    assert not faults
    assert refused or domain in (*ELSEWHERE, "catalog", "server_info")
