"""What may be granted, named and renamed: no name of a model and no spelling of an id changes what
a grant applies to."""

from __future__ import annotations

import pytest

from tests.differential.auth_pair import Both, v3
from tests.differential.rest import API, Call, Ref, Side, get, post
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e]
LONG = "x" * 256
PROMPT_TAGS = [{"key": "mlflow.prompt.is_prompt", "value": "true"}]


def _renamed(name: str, new_name: str) -> Call:
    return post("registered-models/rename", {"name": name, "new_name": new_name})


@pytest.mark.parametrize("tags", [[], PROMPT_TAGS], ids=["model", "prompt"])
def test_no_model_has_the_name_that_grants_all(guarded: list[Side], tags: list[object]) -> None:
    both = Both(guarded)
    (owner,) = both.users("owner")
    name = f"m {both.name}"
    for login in (owner, ADMIN):
        mine = f"{name} {login[0]}"
        both.ask(login, post("registered-models/create", {"name": "*", "tags": tags}))
        both.replies(login, post("registered-models/create", {"name": mine, "tags": tags}))
        both.ask(login, _renamed(mine, "*"), get("registered-models/get", name="*"))
    both.ask(owner, v3("GET", "users/permissions/list", {"username": owner[0]}))
    both.check()


@pytest.mark.parametrize("level", ["READ", "DENY"])
@pytest.mark.parametrize("kind", ["registered_model", "prompt"])
def test_a_rename_changes_no_grants(guarded: list[Side], kind: str, level: str) -> None:
    both = Both(guarded)
    owner, other = both.users("owner", "other")
    old, new, free = (f"{which} {both.name}" for which in ("old", "new", "free"))
    tags = PROMPT_TAGS if kind == "prompt" else []
    both.replies(owner, post("registered-models/create", {"name": old, "tags": tags}))
    role = v3("POST", "roles/create", {"name": both.name, "workspace": "default"})
    for reply, side in zip(both.replies(ADMIN, role), both.sides, strict=True):
        assert reply.status == 200, reply
        side.values["role"] = reply.body["role"]["id"]
    for granted in (old, new):
        added = {
            "role_id": Ref("role"),
            "resource_type": kind,
            "resource_pattern": granted,
            "permission": level,
        }
        add = v3("POST", "roles/permissions/add", added)._replace(
            saves={"added": "role_permission.id"}
        )
        assert [reply.status for reply in both.replies(ADMIN, add)] == [200, 200]
        for login in (other, owner, ADMIN):
            both.ask(login, _renamed(old, new), _renamed(old, "*"))
            if granted == old:
                both.ask(login, _renamed(old, old))
        removed = v3("DELETE", "roles/permissions/remove", {"role_permission_id": Ref("added")})
        assert [reply.status for reply in both.replies(ADMIN, removed)] == [200, 200]
    on_new = {"username": other[0], "resource_type": kind, "resource_id": new, "permission": level}
    both.ask(ADMIN, v3("POST", "users/permissions/grant", on_new))
    for login in (other, owner, ADMIN):
        both.ask(login, _renamed(old, new), _renamed("nothing", new))
    both.replies(ADMIN, post("registered-models/create", {"name": free, "tags": tags}))
    both.ask(owner, _renamed(old, free))
    both.ask(ADMIN, v3("POST", "users/permissions/revoke", on_new))
    (stock, ours) = both.replies(owner, _renamed(old, new))
    assert (stock.status, ours.status) == (200, 200)
    both.ask(owner, v3("GET", "users/permissions/list", {"username": owner[0]}))
    both.check()


def test_sizes_of_roles_and_users(guarded: list[Side]) -> None:
    both = Both(guarded)
    names = (LONG, LONG[1:], "a\0b")
    for name in names:
        both.ask(
            ADMIN,
            v3("POST", "roles/create", {"name": f"{name[:-8]}{both.name}", "workspace": "default"}),
            v3("POST", "roles/create", {"name": name, "workspace": f"w {both.name}"}),
            post("users/create", {"username": name, "password": "0123456789ab"}),
        )
    role = {"name": both.name, "workspace": "default"}
    for text in ("d" * 1024, "d" * 1025, "a\0b"):
        both.ask(ADMIN, v3("POST", "roles/create", {**role, "description": text}))
    for name in names:
        both.ask(ADMIN, Call("DELETE", API + "users/delete", {"username": name}))
    both.check()


def test_spellings_of_an_experiment(guarded: list[Side]) -> None:
    """A grant on ``01`` is one on 1, and is taken away under either name."""
    both = Both(guarded)
    (user,) = both.users("user")
    for pattern in ("01", "1", "00", "a b"):
        grant = {
            "username": user[0],
            "resource_type": "experiment",
            "resource_id": pattern,
            "permission": "EDIT",
        }
        both.ask(
            ADMIN,
            v3("POST", "users/permissions/grant", grant),
            v3("GET", "users/permissions/list", {"username": user[0]}),
        )
    role = v3("POST", "roles/create", {"name": both.name, "workspace": "default"})
    for reply, side in zip(both.replies(ADMIN, role), both.sides, strict=True):
        side.values["role"] = reply.body["role"]["id"]
    for pattern in ("01", "1", "*", "a b", ""):
        added = {"resource_type": "experiment", "resource_pattern": pattern, "permission": "EDIT"}
        both.ask(ADMIN, v3("POST", "roles/permissions/add", {"role_id": Ref("role"), **added}))
    for pattern in ("01", "0"):
        gone = {"username": user[0], "resource_type": "experiment", "resource_id": pattern}
        both.ask(
            ADMIN,
            v3("POST", "users/permissions/revoke", gone),
            v3("GET", "users/permissions/list", {"username": user[0]}),
        )
    both.check()
