"""Writes of a directory that are interrupted, repeated, or made at the same time."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from mlcore.repos.users import users
from tests.contract.api import Api
from tests.contract.conftest import Store
from tests.contract.scim_world import PATCH_OP, Directory
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

EMAILS = [{"value": "ada@example.org", "type": "work", "primary": True}]


def test_writers_at_once_lose_nothing(store: Store) -> None:
    users.create("admin", "", is_admin=True)
    directory = Directory()
    made = directory.create("ada")

    def add(number: int) -> int:
        entry = {"value": f"{number}@example.org", "type": str(number)}
        operation = {"op": "add", "path": "emails", "value": [entry]}
        return Directory().patch(f"Users/{made['id']}", operation).status

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(add, range(8))) == [200] * 8
    assert len(directory.get(made["id"])["emails"]) == 8
    for number in range(8):
        assert directory.find(f'emails.value eq "{number}@example.org"')


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("fault", [Fault.DEAD, Fault.DEAD_AFTER, Fault.ANSWER_LOST])
def test_writes_that_are_cut_off_and_repeated(
    broken: tuple[Api, Doubles], fault: Fault, method: str
) -> None:
    """Before and behind each call to the table; the repeated request completes everything."""
    _, doubles = broken
    users.create("admin", "", is_admin=True)
    directory = Directory()
    for nth in itertools.count(1):
        name = f"ada-{nth}"
        body = {"userName": name, "emails": EMAILS, "active": False}
        operation = {"op": "replace", "value": {"active": "False", "emails": EMAILS}}
        sent = {"PATCH": {"schemas": [PATCH_OP], "Operations": [operation]}}.get(method, body)
        path = "Users" if method == "POST" else f"Users/{directory.create(name)['id']}"
        doubles.faulty.arm(fault, nth)
        first = directory.ask(method, path, sent)
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        second = directory.ask(method, path, sent)
        if method == "DELETE":
            assert second.status in (204, 404)
            assert users.find(name) is None
            assert directory.find(f'userName eq "{name}"') == []
        else:
            expected = {200} if method != "POST" else {201, 409}
            assert second.status in expected or {first.status, second.status} == {201, 409}
            (stored,) = directory.find(f'userName eq "{name}"')
            assert (stored["active"], stored["emails"]) == (False, EMAILS)
        if not fired:
            break


def test_a_deletion_of_a_group_that_is_cut_off_leaves_no_names_once_it_is_repeated(
    broken: tuple[Api, Doubles],
) -> None:
    """So many members that their items are deleted by several requests."""
    _, doubles = broken
    users.create("admin", "", is_admin=True)
    directory = Directory()
    members = [directory.create(f"person{number}")["id"] for number in range(14)]
    for nth in itertools.count(1):
        group = directory.create_group(f"group {nth}", *members)
        doubles.faulty.arm(Fault.DEAD, nth)
        first = directory.ask("DELETE", f"Groups/{group['id']}")
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        assert directory.ask("DELETE", f"Groups/{group['id']}").status in (204, 404)
        items = doubles.direct.scan(TableName=doubles.table)["Items"]
        left = [item for item in items if group["id"] in str(item)]
        assert left == [], (nth, first.status)
        if not fired:
            break
    for group_id in ("none", "a#b", "x" * 1500):
        assert directory.ask("DELETE", f"Groups/{quote(group_id)}").status == 404
