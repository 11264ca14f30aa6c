"""Accounts, grants and roles: what the product answers is what stock's basic-auth app does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.differential.auth_pair import PASSWORD, V3, Both, v3
from tests.differential.rest import API, Call, Ref, Side, delete, get, patch, post
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture
def both(guarded: list[Side]) -> Both:
    return Both(guarded)


def test_accounts(both: Both) -> None:
    ada, bob, gone = both.users("ada", "bob", "gone")
    new = "new" + PASSWORD
    with_user = {"username": ada[0]}
    for who in (ADMIN, ada, None):
        both.ask(
            who,
            get("users/current"),
            *(get("users/get", username=name) for name in (ada[0], bob[0], "nobody", "")),
            get("users/get"),
            *(v3("GET", "users/permissions/list", query) for query in ({}, with_user)),
            *(v3("GET", "users/roles/list", query) for query in ({}, with_user)),
            v3("GET", "users/current/permissions"),
            post("users/create", {}),
            post("users/create", {"username": "x"}),
            post("users/create", {"username": ada[0], "password": PASSWORD}),
            post("users/create", {"username": "x", "password": "short"}),
            *(
                Call(method, API + path, raw=raw)
                for method, path in (("POST", "users/create"), ("PATCH", "users/update-admin"))
                for raw in (b"", b"null", b"[]", b"{", b'"x"', b"5", b"\xff")
            ),
        )
    own = {"username": ada[0], "current_password": PASSWORD}
    both.ask(
        ada,
        patch("users/update-password", {}),
        patch("users/update-password", {"username": ada[0]}),
        patch("users/update-password", {"username": ada[0], "password": new}),
        patch("users/update-password", {**own, "current_password": "no", "password": new}),
        patch("users/update-password", {**own, "password": PASSWORD}),
        patch("users/update-password", {**own, "password": "short"}),
        patch("users/update-password", {"username": bob[0], "password": new}),
        patch("users/update-password", {**own, "password": new}),
        get("users/current"),
        delete("users/delete", {"username": bob[0]}),
    )
    both.ask((ada[0], new), get("users/current"))
    both.ask(
        ADMIN,
        *(
            patch("users/update-password", fields)
            for fields in (
                {"username": "nobody", "password": new},
                {"username": bob[0], "password": "short"},
                {"username": "admin", "password": new},
                {"username": bob[0], "password": new},
            )
        ),
        *(
            patch("users/update-admin", fields)
            for fields in (
                {},
                {"is_admin": True},
                {"username": "nobody", "is_admin": True},
                {"username": bob[0], "is_admin": True},
            )
        ),
        *(delete("users/delete", {"username": name}) for name in ("nobody", "admin", "")),
        delete("users/delete", {}),
        Call("DELETE", API + "users/delete?username=nobody"),
        Call("DELETE", API + f"users/delete?username={gone[0].replace(' ', '%20')}"),
        delete("users/delete", {"username": gone[0]}),
    )
    both.ask(bob, get("users/current"))
    both.ask((bob[0], new), get("users/current"), get("users/get", username=ada[0]))
    both.ask(gone, get("users/current"))
    both.check()


def _resources(name: str) -> Iterator[tuple[str, object]]:
    yield "experiment", Ref("experiment")
    yield "registered_model", f"m {name}"
    yield "prompt", f"p {name}"
    for resource_type in ("experiment", "review_queue", "workspace", "bogus"):
        yield resource_type, "*"
    for resource_type in ("experiment", "prompt", "scorer", "run"):
        yield resource_type, "nope"
    yield "scorer", "1/x"


def test_grants(both: Both) -> None:
    owner, other, guest = both.users("owner", "other", "guest")
    name = both.name
    prompt = [{"key": "mlflow.prompt.is_prompt", "value": "true"}]
    for call in (
        post("experiments/create", {"name": f"e {name}"}, saves={"experiment": "experiment_id"}),
        post("registered-models/create", {"name": f"m {name}"}),
        post("registered-models/create", {"name": f"p {name}", "tags": prompt}),
    ):
        assert {reply.status for reply in both.replies(owner, call)} == {200}
    for resource_type, resource_id in _resources(name):
        on = {"username": guest[0], "resource_type": resource_type, "resource_id": resource_id}
        nobody = {**on, "username": "nobody"}
        for who in (ADMIN, owner, other):
            both.ask(
                who,
                v3("POST", "users/permissions/grant", {**on, "permission": "READ"}),
                v3("POST", "users/permissions/grant", {**on, "permission": "MANAGE"}),
                v3("GET", "users/permissions/get", on),
                v3("POST", "users/permissions/revoke", on),
                v3("POST", "users/permissions/revoke", on),
                v3("GET", "users/permissions/get", on),
                v3("GET", "users/permissions/get", nobody),
                v3("POST", "users/permissions/grant", {**nobody, "permission": "READ"}),
                v3("POST", "users/permissions/revoke", nobody),
            )
        both.ask(guest, v3("GET", "users/permissions/get", on))
    on = {"username": guest[0], "resource_type": "experiment", "resource_id": Ref("experiment")}
    for level in ("EDIT", "MANAGE", "DENY", "NO_PERMISSIONS", "bogus"):
        both.ask(owner, v3("POST", "users/permissions/grant", {**on, "permission": level}))
        both.ask(ADMIN, v3("GET", "users/permissions/get", on))
        both.ask(
            guest,
            v3("GET", "users/current/permissions"),
            v3("GET", "users/permissions/list", {"username": guest[0]}),
            v3("GET", "users/roles/list", {"username": guest[0]}),
            v3(
                "POST", "users/permissions/grant", {**on, "username": other[0], "permission": "USE"}
            ),
            v3("POST", "users/permissions/revoke", {**on, "username": other[0]}),
        )
        both.ask(owner, v3("POST", "users/permissions/revoke", on))
    for missing in (*on, "permission"):
        fields = {key: part for key, part in {**on, "permission": "READ"}.items() if key != missing}
        for who in (ADMIN, other):
            both.ask(who, v3("POST", "users/permissions/grant", fields))
            both.ask(who, v3("POST", "users/permissions/revoke", fields))
            both.ask(who, v3("GET", "users/permissions/get", fields))
    both.check()


ROLE_CALLS = (
    ("GET", "roles/get"),
    ("GET", "roles/permissions/list"),
    ("GET", "roles/users/list"),
    ("PATCH", "roles/update"),
    ("POST", "roles/permissions/add"),
)


def test_roles(both: Both) -> None:
    member, other = both.users("member", "other")
    name = both.name
    role, held = {"role_id": Ref("role")}, {"role_permission_id": Ref("held")}
    made = [
        v3("POST", "roles/create", {"name": f"r {name}", "workspace": "default"})._replace(
            saves={"role": "role.id"}
        ),
        v3(
            "POST",
            "roles/permissions/add",
            {**role, "resource_type": "run", "resource_pattern": "*", "permission": "READ"},
        )._replace(saves={"held": "role_permission.id"}),
    ]
    for call in made:
        assert {reply.status for reply in both.replies(ADMIN, call)} == {200}
    for who in (ADMIN, other):
        both.ask(
            who,
            *(
                v3("POST", "roles/create", fields)
                for fields in (
                    {},
                    {"name": "r"},
                    {"name": " ", "workspace": "default"},
                    {"name": "r", "workspace": " "},
                    {"name": f"d {name}", "workspace": "default", "description": 5},
                    {"name": "__user_1__", "workspace": "default"},
                    {"name": f"r {name}", "workspace": "default"},
                )
            ),
            *(
                v3(method, path, fields)
                for method, path in ROLE_CALLS
                for fields in ({}, {"role_id": "x"}, {"role_id": 999_999}, {"role_id": ""})
            ),
            v3("GET", "roles/get", role),
            v3("GET", "roles/permissions/list", role),
            v3("GET", "roles/list", {"workspace": " "}),
            v3("GET", "roles/list", {"workspace": "nowhere"}),
            v3("GET", "roles/list", {"workspace": "default"}),
            v3("GET", "roles/list"),
            *(
                v3("PATCH", "roles/update", {**role, **fields})
                for fields in ({"name": ""}, {"name": "__user_x"}, {"description": 5}, {})
            ),
            *(_permissions_of(role)),
            v3("PATCH", "roles/permissions/update", {**held, "permission": "USE"}),
            v3("PATCH", "roles/permissions/update", {**held, "permission": "bogus"}),
            v3("PATCH", "roles/permissions/update", held),
            v3("POST", "roles/assign", {**role, "username": "nobody"}),
            v3("POST", "roles/assign", role),
            v3("DELETE", "roles/unassign", {**role, "username": member[0]}),
        )
    both.ask(ADMIN, v3("POST", "roles/assign", {**role, "username": member[0]}))
    both.ask(ADMIN, v3("POST", "roles/assign", {**role, "username": member[0]}))
    both.ask(
        member,
        v3("GET", "roles/get", role),
        v3("GET", "roles/users/list", role),
        v3("GET", "roles/list"),
        v3("GET", "roles/list", {"workspace": ["default", "nowhere"]}),
        v3("GET", "users/roles/list", {"username": member[0]}),
        v3("GET", "users/current/permissions"),
        v3("DELETE", "roles/delete", role),
    )
    both.ask(
        ADMIN,
        v3("GET", "roles/users/list", role),
        v3("DELETE", "roles/unassign", {**role, "username": member[0]}),
        v3("DELETE", "roles/permissions/remove", held),
        v3("DELETE", "roles/permissions/remove", held),
        v3("DELETE", "roles/delete", role),
        v3("DELETE", "roles/delete", role),
        Call("DELETE", V3 + "roles/delete?role_id=999999"),
    )
    both.ask(member, v3("GET", "roles/get", role), v3("GET", "users/current/permissions"))
    both.check()


def _permissions_of(role: dict[str, Any]) -> Iterable[Call]:
    for resource_type, pattern, level in (
        ("experiment", "*", "READ"),
        ("experiment", "*", "EDIT"),
        ("workspace", "*", "READ"),
        ("workspace", "x", "USE"),
        ("run", "x", "READ"),
        ("bogus", "x", "READ"),
        ("trace", "*", "x"),
        ("registered_model", "m", "NO_PERMISSIONS"),
    ):
        yield v3(
            "POST",
            "roles/permissions/add",
            {
                **role,
                "resource_type": resource_type,
                "resource_pattern": pattern,
                "permission": level,
            },
        )


def test_administrator_of_the_workspace(both: Both) -> None:
    """By a role; may make accounts, see users and manage roles, but no users."""
    chief, guest = both.users("chief", "guest")
    role = {"role_id": Ref("chief")}
    grant = {**role, "resource_type": "workspace", "resource_pattern": "*", "permission": "MANAGE"}
    for call in (
        v3("POST", "roles/create", {"name": f"c {both.name}", "workspace": "default"})._replace(
            saves={"chief": "role.id"}
        ),
        v3("POST", "roles/permissions/add", grant),
        v3("POST", "roles/assign", {**role, "username": chief[0]}),
    ):
        assert {reply.status for reply in both.replies(ADMIN, call)} == {200}
    mine = {"name": f"mine {both.name}", "workspace": "default"}
    wildcard = {"username": guest[0], "resource_type": "run", "resource_id": "*"}
    both.ask(
        chief,
        post("users/create", {"username": f"by chief {both.name}", "password": PASSWORD}),
        get("users/get", username=guest[0]),
        v3("GET", "users/roles/list", {"username": guest[0]}),
        v3("GET", "users/roles/list", {"username": "nobody"}),
        v3("POST", "roles/create", mine)._replace(saves={"mine": "role.id"}),
        v3("POST", "roles/create", {**mine, "workspace": "other"}),
        v3("GET", "roles/list"),
        v3("POST", "roles/assign", {"role_id": Ref("mine"), "username": guest[0]}),
        v3("GET", "users/permissions/list", {"username": guest[0]}),
        v3("DELETE", "roles/delete", {"role_id": Ref("mine")}),
        v3("POST", "users/permissions/grant", {**wildcard, "permission": "READ"}),
        v3("GET", "users/permissions/get", wildcard),
        v3("POST", "users/permissions/revoke", wildcard),
        patch("users/update-admin", {"username": chief[0], "is_admin": True}),
        patch("users/update-password", {"username": guest[0], "password": "x" * 12}),
        delete("users/delete", {"username": guest[0]}),
        get("webhooks"),
    )
    both.check()
