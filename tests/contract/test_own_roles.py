"""Roles that hold single users' own grants, as administrators see and change them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mlcore.auth.permissions import Grant
from mlcore.repos.users import grants, users
from tests.contract.conftest import Store
from tests.contract.logins import ADMIN, Logins, named


@pytest.mark.parametrize("verb", ["delete", "unassign"])
def test_roles_of_own_grants_are_changed_as_others(store: Store, verb: str) -> None:
    """They cannot be renamed or assigned to others, and the error says so: to administrators, not
    to the holder."""
    users.create("admin", "", is_admin=True)
    logins = Logins()
    holder, other = "holder", "other"
    for name in (holder, other):
        users.create(name, "", is_admin=False)
    own = {"resource_type": "experiment", "permission": "READ"}
    for name in (holder, other):
        granted = {**own, "username": name, "resource_id": "1"}
        assert logins.ask(ADMIN, "POST", "3.0/mlflow/users/permissions/grant", **granted).body == {}

    def held(name: str) -> Any:
        query = {"username": name}
        listed = logins.ask(ADMIN, "GET", "3.0/mlflow/users/permissions/list", **query)
        return [row["resource_pattern"] for row in listed.body["permissions"]]

    def ask(method: str, path: str, caller: Any = ADMIN, **fields: Any) -> int:
        return logins.ask(caller, method, f"3.0/mlflow/roles/{path}", **fields).status

    query = {"username": holder}
    [role] = logins.ask(ADMIN, "GET", "3.0/mlflow/users/roles/list", **query).body["roles"]
    more = {**own, "role_id": role["id"], "resource_pattern": "0"}
    assert [ask("POST", "permissions/add", **more) for _ in range(2)] == [200, 400]
    assert sorted(held(holder)) == ["0", "1"]
    for method, path, fields in (
        ("PATCH", "update", {"name": "mine"}),
        ("POST", "assign", {"username": other}),
    ):
        answer = logins.ask(ADMIN, method, f"3.0/mlflow/roles/{path}", role_id=role["id"], **fields)
        assert answer.status == 400
        assert "granted to the user 'holder' alone" in answer.body["message"]
        assert ask(method, path, role_id=role["id"] + 100, **fields) == 404
        assert ask(method, path, role_id=0, **fields) == 404
        for name in (holder, other):
            assert ask(method, path, named(name), role_id=role["id"], **fields) == 403
    assert ask("DELETE", "unassign", role_id=role["id"], username=other) == 404
    assert ask("DELETE", verb, role_id=0, username=holder) == 404
    assert ask("DELETE", verb, role_id=role["id"], username=holder) == 200
    assert ask("DELETE", verb, role_id=role["id"], username=holder) == 404
    assert (held(holder), held(other)) == ([], ["1"])
    again = {**own, **query, "resource_id": "3"}
    assert logins.ask(ADMIN, "POST", "3.0/mlflow/users/permissions/grant", **again).body == {}
    assert held(holder) == ["3"]


def test_grants_and_roles_are_listed_in_the_order_of_their_creation(store: Store) -> None:
    users.create("admin", "", is_admin=True)
    users.create("holder", "", is_admin=False)
    logins = Logins()
    path = "3.0/mlflow/users/permissions/"
    wanted = [("registered_model", "z"), ("experiment", "2"), ("experiment", "1"), ("prompt", "a")]
    given = {"workspace": "default", "name": "older"}
    role = logins.ask(ADMIN, "POST", "3.0/mlflow/roles/create", **given).body["role"]
    held = {"role_id": role["id"], "permission": "READ"}
    of_role = {**held, "resource_type": "experiment", "resource_pattern": "9"}
    assert logins.ask(ADMIN, "POST", "3.0/mlflow/roles/permissions/add", **of_role).status == 200
    for kind, resource in wanted:
        grant = {"username": "holder", "resource_type": kind, "resource_id": resource}
        assert logins.ask(ADMIN, "POST", f"{path}grant", permission="READ", **grant).body == {}
        time.sleep(0.002)  # grants have a time in milliseconds
    # A change or a renaming leaves a grant in its place.
    for kind, resource in (("experiment", "2"), ("registered_model", "z")):
        grants.change(users.get("holder"), "default", Grant(kind, resource, "EDIT"))
    grants.transfer("default", "registered_model", "z", "y")
    wanted[0] = ("registered_model", "y")
    assigned = {"username": "holder", "role_id": role["id"]}
    assert logins.ask(ADMIN, "POST", "3.0/mlflow/roles/assign", **assigned).status == 200
    listed = logins.ask(ADMIN, "GET", f"{path}list", username="holder").body["permissions"]
    rows = [(row["resource_type"], row["resource_pattern"]) for row in listed]
    assert rows == [("experiment", "9"), *wanted]
    assert [row["permission"] for row in listed] == ["READ", "EDIT", "EDIT", "READ", "READ"]
