"""Workspaces that share a server: random calls in two of them, on ids and names of both.

No answer in one shows anything of the other, and everything in the first answers as in a third
workspace that heard the same calls and never met the second: there the other's ids are nobody's.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import workspace_calls as calls
from tests.e2e.numbering import begin_high
from tests.e2e.workspace_calls import Call, Caller
from tests.e2e.workspace_values import CHOSEN_TRACES, MARKERS
from tests.e2e.workspace_view import Answer, View, leaks
from tests.receiver import Receiver, receiving
from tests.servers import ADMIN, Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROUNDS = int(os.environ.get("ISOLATION_ROUNDS", "1"))
SEED = os.environ.get("ISOLATION_SEED", "1")


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def _started(folder: Path, *options: str) -> Server:
    return start_product(
        folder,
        "--workspaces",
        *options,
        MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS="true",
        MLFLOW_WEBHOOK_ALLOWED_SCHEMES="http",
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with stopped(_started(tmp_path_factory.mktemp("product"))) as product:
        begin_high(product)
        yield product


class World:
    """Two workspaces, and one in which the first one's calls happen alone."""

    def __init__(self, mine: View, twin: View, theirs: View) -> None:
        self.mine, self.twin, self.theirs = mine, twin, theirs
        self.counts: dict[tuple[str, str], int] = defaultdict(int)
        self.counts.update({(whose, "trace"): CHOSEN_TRACES for whose in MARKERS})
        self.succeeded: Counter[str] = Counter()

    def tell(self, whose: str, call: Call) -> None:
        here, there = (self.mine, self.theirs) if whose == "a" else (self.theirs, self.mine)
        here.meet(there)
        answer = here.send(call)
        alone = self.twin.send(call) if whose == "a" else answer
        if answer.status < 300 and alone.status < 300:
            self._remember(whose, call, answer, alone)
        self._check(here, there, call, answer, MARKERS["b" if whose == "a" else "a"])
        self._check(here, self.twin, call, answer)
        if whose == "a":
            actual, wanted = here.comparable(answer), self.twin.comparable(alone)
            assert actual == wanted, (call, actual, wanted)

    def _remember(self, whose: str, call: Call, answer: Answer, alone: Answer) -> None:
        self.succeeded[call.route] += 1
        if call.makes is None:
            return
        key = (whose, call.makes[0])
        self.counts[key] += 1
        if whose == "b":
            self.theirs.learn(call, answer, self.counts[key])
        else:
            self.mine.learn(call, answer, self.counts[key])
            self.twin.learn(call, alone, self.counts[key])

    def _check(self, here: View, there: View, call: Call, answer: Answer, marker: str = "") -> None:
        assert answer.status < 500 or answer.status in (501, 503), (call, answer)
        request = str(call)
        hidden = there.mine() - here.told
        leaked = leaks(answer, request, {*hidden, *([marker] if marker else [])})
        assert not leaked, (here.name, leaked, call, answer)


def _make(url: str, name: str, login: tuple[str, str] | None = None) -> None:
    """A workspace; with accounts, one whose administrator has its name."""
    admin = View(url, "a", "default", "", login)

    def must(path: str, **fields: Any) -> Any:
        answer = admin.send(Call("", "POST", path, body=json.dumps(fields)))
        assert answer.status in (200, 201), answer
        return answer.body

    must("/api/3.0/mlflow/workspaces", name=name)
    if login is not None:
        must("/api/2.0/mlflow/users/create", username=name, password=ADMIN[1])
        query = f"workspace={name}"
        listed = admin.send(Call("", "GET", "/api/3.0/mlflow/roles/list", query))
        [role] = [row["id"] for row in listed.body["roles"] if row["name"] == "admin"]
        must("/api/3.0/mlflow/roles/assign", username=name, role_id=role)
    admin.close()


def _play(views: tuple[View, View, View], hook_url: str, seed: str, *, accounts: bool) -> None:
    """Random calls on two workspaces, those of the first on its twin as well."""
    rng = random.Random(f"{SEED} {seed}")
    listed = calls.routes(accounts=accounts)
    world = World(*views)
    callers = {whose: Caller(whose, rng, world.counts, hook_url) for whose in ("a", "b")}
    for whose, caller in callers.items():
        for call in calls.beginning(caller, listed):
            world.tell(whose, call)
    for _ in range(ROUNDS):
        more = [route for route in listed for _ in range(4) if route.path in calls.MAKING]
        turns = [(whose, route) for route in listed + more for whose in callers]
        rng.shuffle(turns)
        for whose, route in turns:
            world.tell(whose, callers[whose].call(route))
    for route in (route for route in listed if calls.is_read(route)):
        world.tell("a", callers["a"].call(route))
    # No provider of models answers here.
    names = {
        f"{route.method} {route.path}" for route in listed if not route.path.startswith("/gateway/")
    }
    never = names - set(world.succeeded)
    assert len(never) < len(names) * 9 / 20, (len(names), sorted(never))


@pytest.mark.parametrize("second", ["bravo", "default"])
def test_nothing_of_one_workspace_shows_in_another(
    server: Server, receiver: Receiver, second: str
) -> None:
    names = (f"first-{second}", f"alone-{second}", second)
    for name in names:
        if name != "default":
            _make(server.url, name)
    views = (
        View(server.url, "a", names[0], names[2]),
        View(server.url, "a", names[1], names[2]),
        View(server.url, "b", names[2], names[0]),
    )
    with contextlib.ExitStack() as opened:
        for view in views:
            opened.callback(view.close)
        _play(views, receiver.url(""), second, accounts=False)
    for delivery in receiver.settled():
        other = "b" if delivery.path.endswith(MARKERS["a"]) else "a"
        assert MARKERS[other] not in delivery.text, delivery


def test_nor_to_those_who_log_in(tmp_path: Path, receiver: Receiver) -> None:
    """Each workspace's administrator, also with roles and grants."""
    names = ("first-accounts", "alone-accounts", "bravo")
    with stopped(_started(tmp_path, "--auth")) as server:
        begin_high(server)
        for name in names:
            _make(server.url, name, ADMIN)
        logins = {name: (name, ADMIN[1]) for name in names}
        views = (
            View(server.url, "a", names[0], names[2], logins[names[0]]),
            View(server.url, "a", names[1], names[2], logins[names[1]]),
            View(server.url, "b", names[2], names[0], logins[names[2]]),
        )
        with contextlib.ExitStack() as opened:
            for view in views:
                opened.callback(view.close)
            _play(views, receiver.url(""), "accounts", accounts=True)
