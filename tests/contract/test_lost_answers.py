"""A write whose answer is lost is repeated within the request: the request succeeds as if nothing
had happened, also where the repetition meets what the first attempt left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlcore.http.routes import only_reads
from mlcore.process_cache import clear
from tests.contract import route_environment
from tests.contract.api import Api
from tests.contract.conftest import enable_workspaces
from tests.contract.route_requests import NOT_SENT, OF_SCORER, REQUESTS
from tests.contract.route_world import DOMAINS, World, routes_of
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

SENT = {**REQUESTS, "DELETE /3.0/mlflow/scorers/delete": {**OF_SCORER, "version": 1}}
DONE = {200, 201, 204, 302}
SINGLE_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
"""DynamoDB itself recognizes a repeated transaction; a repeated batch has no conditions."""


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_repeated_call_is_no_second_request(
    broken: tuple[Api, Doubles], tmp_path: Path, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    route_environment.prepare(monkeypatch, tmp_path)
    if domain == "workspaces":
        enable_workspaces(monkeypatch, "other")
    _, doubles = broken
    world = World()
    failures: dict[str, Any] = {}
    for name, route in routes_of(domain).items():
        if name in NOT_SENT or only_reads(route):
            continue
        method, path = name.split()
        nth, writes = 1, 1
        while nth <= writes:
            world.prepare(domain)
            clear()
            doubles.faulty.arm(Fault.ANSWER_LOST, nth, SINGLE_WRITES)
            status, body = world.send(method, path, SENT[name])
            doubles.faulty.heal()
            writes = doubles.faulty.seen - 1  # one is the repetition
            if status not in DONE:
                failures[f"{name}, write {nth}"] = (status, body)
            nth += 1
    assert failures == {}
