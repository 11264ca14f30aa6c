"""What each route's table says that a call costs, against what it costs on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcore import artifacts
from mlcore.db import capacity
from mlcore.process_cache import clear
from tests.contract import route_environment
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.route_requests import NOT_SENT, REQUESTS
from tests.contract.route_world import DOMAINS, World, routes_of


@pytest.fixture
def world(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    route_environment.prepare(monkeypatch, tmp_path)
    return World()


def test_every_route_is_sent_or_says_why_not() -> None:
    routes = {name for domain in DOMAINS for name in routes_of(domain)}
    assert REQUESTS.keys() | NOT_SENT.keys() == routes
    assert not REQUESTS.keys() & NOT_SENT.keys()


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_route_costs_what_its_table_says(
    world: World, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if domain == "workspaces":
        enable_workspaces(monkeypatch, "other")
    measured, stated, failed = {}, {}, {}
    written_by_get = {}
    last_method = ""
    for name, route in routes_of(domain).items():
        if name in NOT_SENT:
            assert route.cost is None, name
            continue
        method, path = name.split()
        if {method, last_method} != {"GET"}:
            world.prepare(domain)  # so that no call finds what the one before it has left
        last_method = method
        if domain == "catalog":
            clear()  # what a process holds of it is all that such a call may read
        status, body = world.send(method, path, REQUESTS[name])
        last = capacity.last_measurement()
        assert last is not None
        if status not in {200, 201, 204, 302}:
            failed[name] = (status, body)
        measured[name], stated[name] = last.round_trips, route.cost
        if method == "GET" and last.write_units:
            written_by_get[name] = last.write_units
    artifacts.store.cache_clear()
    assert not failed
    assert measured == stated
    # MLflow's own schema of a new experiment is made when it is first listed, whoever asks.
    written_by_get.pop("GET /3.0/mlflow/label-schemas/list", None)
    assert not written_by_get, "a foreign page can make a signed-in browser send it"
