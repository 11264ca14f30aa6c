"""Users, roles and grants: two at once, killed in the middle, and old names for new people."""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import authorizer.app
from mlcore import errors
from mlcore.auth import passwords
from mlcore.auth.passwords import hash_password
from mlcore.auth.permissions import Grant
from mlcore.entities.users import HeldGrant
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import grants, roles, users
from tests.contract.api import Answer, Api
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.logins import ADMIN, Logins, named, signed
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

PASSWORD = "password-of-some-length"
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_N", 2)


def _at_once(number: int, call: Callable[[], Answer]) -> list[Answer]:
    with ThreadPoolExecutor(number) as pool:
        return [future.result() for future in [pool.submit(call) for _ in range(number)]]


def _new_user() -> str:
    name = f"user-{next(NUMBERS)}"
    users.create(name, hash_password(PASSWORD), is_admin=False)
    return name


@pytest.mark.parametrize(
    ("path", "fields", "listing", "things"),
    [
        ("2.0/mlflow/users/create", {"username": "one", "password": PASSWORD}, "users", "username"),
        ("3.0/mlflow/roles/create", {"name": "one", "workspace": "default"}, "roles", "name"),
    ],
)
def test_one_of_many_creators_wins(
    store: Store, path: str, fields: dict[str, str], listing: str, things: str
) -> None:
    users.create("admin", "", is_admin=True)
    logins = Logins()
    answers = _at_once(8, lambda: logins.ask(ADMIN, "POST", path, **fields))
    codes = sorted(answer.code for answer in answers)
    assert codes == [""] + ["RESOURCE_ALREADY_EXISTS"] * 7, answers
    where = path.replace("create", "list")
    query = {"workspace": "default"} if listing == "roles" else {}
    rows = logins.ask(ADMIN, "GET", where, **query).body[listing]
    assert [row[things] for row in rows if row[things] == "one"] == ["one"]


def test_changes_of_one_role_at_once_all_stay(store: Store) -> None:
    users.create("admin", "", is_admin=True)
    logins = Logins()
    role = roles.create("many", "default", None)

    def add() -> Answer:
        return logins.ask(
            ADMIN,
            "POST",
            "3.0/mlflow/roles/permissions/add",
            role_id=role.role_id,
            resource_type="experiment",
            resource_pattern=f"e{next(NUMBERS)}",
            permission="READ",
        )

    assert [answer.status for answer in _at_once(8, add)] == [200] * 8
    held = roles.get(role.role_id).permissions
    assert (
        len({permission.permission_id for permission in held})
        == len({permission.grant for permission in held})
        == 8
    )


def test_each_role_in_the_list_can_be_read_by_its_id(store: Store) -> None:
    """Also those that hold single users' own grants."""
    users.create("admin", "", is_admin=True)
    logins = Logins()
    holders = [_new_user() for _ in range(3)]
    for number, name in enumerate(holders):
        own = {"username": name, "resource_type": "experiment", "permission": "READ"}
        for experiment in range(number):
            fields = {**own, "resource_id": str(experiment)}
            assert logins.ask(ADMIN, "POST", "3.0/mlflow/users/permissions/grant", **fields)
    roles.assign(users.get(holders[0]), roles.create("shared", "default", None).role_id)
    listed = logins.ask(ADMIN, "GET", "3.0/mlflow/roles/list").body["roles"]
    assert [len(role["permissions"]) for role in listed] == [1, 2, 0]
    for role, holder in zip(listed, (*holders[1:], holders[0]), strict=True):
        path, query = "3.0/mlflow/roles/", {"role_id": str(role["id"])}
        assert logins.ask(ADMIN, "GET", f"{path}get", **query).body == {"role": role}
        permissions = logins.ask(ADMIN, "GET", f"{path}permissions/list", **query).body
        assert permissions == {"role_permissions": role["permissions"]}
        held = logins.ask(ADMIN, "GET", f"{path}users/list", **query).body["assignments"]
        found = [(each["user_id"], each["role_id"]) for each in held]
        assert found == [(users.get(holder).user_id, role["id"])]
    for verb in ("get", "permissions/list", "users/list"):
        missing = logins.ask(ADMIN, "GET", f"3.0/mlflow/roles/{verb}", role_id="999")
        assert (missing.status, missing.code) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_users_of_other_workspaces_are_not_listed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "team")
    manager, member, stranger, nobody = (_new_user() for _ in range(4))
    users.create("admin", "", is_admin=True)
    grants.put(users.get(manager), "default", Grant("workspace", "*", "MANAGE"))
    grants.put(users.get(member), "default", Grant("experiment", "1", "READ"))
    grants.put(users.get(stranger), "team", Grant("experiment", "2", "READ"))
    logins = Logins()

    def listed(caller: dict[str, Any]) -> set[str]:
        answer = logins.ask(caller, "GET", "2.0/mlflow/users/list")
        assert answer.status == 200, answer
        return {user["username"] for user in answer.body["users"]}

    assert listed(named(manager)) == {manager, member}
    assert listed(ADMIN) >= {manager, member, stranger, nobody}
    answer = logins.ask(named(nobody), "GET", "2.0/mlflow/users/list")
    assert not {manager, member, stranger} & {
        user["username"] for user in answer.body.get("users", ())
    }


def test_new_user_inherits_nothing(store: Store) -> None:
    name = _new_user()
    first = users.get(name)
    role = roles.create("a role", "default", None)
    roles.assign(first, role.role_id)
    grants.create(first, "default", Grant("experiment", "1", "MANAGE"))
    users.create("admin", "", is_admin=True)
    logins = Logins()
    assert logins.ask(ADMIN, "DELETE", "2.0/mlflow/users/delete", username=name).status == 200
    made = logins.ask(
        ADMIN, "POST", "2.0/mlflow/users/create", username=name, password="another" + PASSWORD
    )
    assert made.body["user"]["id"] != first.user_id
    profile = users.find_profile(name)
    assert profile is not None
    assert (profile.grants, profile.role_ids) == ((), ())
    assert grants.holders("default", "experiment", "1") == []


@pytest.mark.parametrize("fault", [Fault.DEAD, Fault.DEAD_AFTER])
def test_killed_while_deleting_a_user(broken: tuple[Api, Doubles], fault: Fault) -> None:
    """Whatever is left behind, nobody honours it, and a new user of the name starts with nothing
    and can be granted the same."""
    _, doubles = broken
    for nth in itertools.count(1):
        name = _new_user()
        user = users.get(name)
        role = roles.create(f"role of {name}", "default", None)
        roles.assign(user, role.role_id)
        grant = Grant("experiment", f"of {name}", "MANAGE")
        grants.create(user, "default", grant)
        profile = users.find_profile(name)
        assert profile is not None
        doubles.faulty.arm(fault, nth)
        try:
            users.delete(profile)
            done = not doubles.faulty.fired
        except Exception:
            done = False
        doubles.faulty.heal()
        left = users.find_profile(name)
        if left is None:
            again = users.create(name, "", is_admin=False)
            fresh = users.find_profile(name)
            assert fresh is not None
            assert (fresh.grants, fresh.role_ids) == ((), ())
            grants.create(again, "default", grant)
            roles.assign(again, role.role_id)
            both = users.find_profile(name)
            assert both is not None
            assert both.grants == (HeldGrant("default", grant),)
            assert both.role_ids == (role.role_id,)
        else:
            assert left == profile
            users.delete(profile)
            assert users.find_profile(name) is None
        if done:
            break


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.ANSWER_500, Fault.REPEATED])
def test_lost_answers_inside_change_nothing(broken: tuple[Api, Doubles], fault: Fault) -> None:
    _, doubles = broken
    users.create("admin", "", is_admin=True)
    logins = Logins()
    for nth in itertools.count(1):
        name = f"user-{next(NUMBERS)}"
        doubles.faulty.arm(fault, nth)
        made = logins.ask(
            ADMIN, "POST", "2.0/mlflow/users/create", username=name, password=PASSWORD
        )
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        assert made.status == 200, (nth, made)
        assert users.get(name).user_id == made.body["user"]["id"]
        if not fired:
            break


def test_old_and_new_rpcs_read_the_same_grants(store: Store) -> None:
    users.create("admin", "", is_admin=True)
    name, logins = _new_user(), Logins()
    whom = {"username": name, "experiment_id": "7"}
    path = "2.0/mlflow/experiments/permissions"
    made = logins.ask(ADMIN, "POST", f"{path}/create", **whom, permission="NO_PERMISSIONS")
    held = {"experiment_id": "7", "user_id": users.get(name).user_id}
    expected = {"experiment_permission": {**held, "permission": "NO_PERMISSIONS"}}
    assert (made.status, made.body) == (200, expected)
    again = logins.ask(ADMIN, "POST", f"{path}/create", **whom, permission="READ")
    assert again.code == "RESOURCE_ALREADY_EXISTS"
    assert logins.ask(ADMIN, "PATCH", f"{path}/update", **whom, permission="EDIT").status == 200
    got = logins.ask(named(name), "GET", "2.0/mlflow/users/get", username=name)
    assert got.body["user"]["experiment_permissions"] == [{**held, "permission": "EDIT"}]
    new = {"username": name, "resource_type": "experiment", "resource_id": "7"}
    shown = logins.ask(named(name), "GET", "3.0/mlflow/users/permissions/get", **new)
    assert shown.body == {"allowed": True, "permission": "EDIT"}
    assert logins.ask(ADMIN, "DELETE", f"{path}/delete", **whom).status == 200
    assert logins.ask(ADMIN, "GET", f"{path}/get", **whom).code == "RESOURCE_DOES_NOT_EXIST"


SESSION = "arn:aws:sts::123456789012:assumed-role/Trainer/i-0123"
ROLE = "arn:aws:iam::123456789012:role/Trainer"


def test_signer_is_called_by_the_arn(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    logins = Logins("iam")
    monkeypatch.setenv("AUTHENTICATION", "iam")
    me = logins.ask(signed(SESSION), "GET", "2.0/mlflow/users/current").body
    assert me["user"]["username"] == SESSION
    assert (me["user"]["is_admin"], me["is_basic_auth"]) == (False, False)
    made = logins.ask(signed(SESSION), "POST", "2.0/mlflow/experiments/create", name="mine")
    assert made.status == 200
    profile = users.find_profile(SESSION)
    assert profile is not None
    assert [held.grant.permission for held in profile.grants] == ["MANAGE"]
    for nobody in ({}, {"iam": {}}, named("admin", is_admin=True)):
        assert logins.ask(nobody, "GET", "2.0/mlflow/users/current").status == 401


def test_signers_may_be_given_names(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    logins = Logins("iam")
    monkeypatch.setenv("AUTHENTICATION", "iam")
    monkeypatch.setenv("IAM_USERS", f"{ROLE}=trainer, x=y")
    monkeypatch.setenv("IAM_ADMINISTRATORS", "arn:aws:iam::123456789012:user/root")
    me = logins.ask(signed(SESSION), "GET", "2.0/mlflow/users/current").body
    assert me["user"]["username"] == "trainer"
    assert logins.ask(signed(SESSION), "GET", "2.0/mlflow/users/get", username="x").status == 403
    root = signed("arn:aws:iam::123456789012:user/root")
    assert (
        logins.ask(root, "GET", "2.0/mlflow/users/get", username="trainer").body["user"]["id"]
        == me["user"]["id"]
    )


def test_names_of_signers_are_in_the_table(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as a company has, where an environment has room for forty; without a deployment."""
    logins = Logins("iam")
    monkeypatch.setenv("AUTHENTICATION", "iam")
    monkeypatch.setenv("IAM_USERS", f"{ROLE}=by-parameter,arn:aws:iam::1:user/other=other")
    company = {f"arn:aws:iam::123456789012:user/{n:04}": f"user-{n}" for n in range(2000)}
    stored_settings.put("iam_users", {**company, ROLE: "by-setting"})
    for arn, name in (
        (SESSION, "by-setting"),
        ("arn:aws:iam::123456789012:user/1999", "user-1999"),
        ("arn:aws:iam::1:user/other", "other"),
        ("arn:aws:iam::1:user/nobody", "arn:aws:iam::1:user/nobody"),
    ):
        me = logins.ask(signed(arn), "GET", "2.0/mlflow/users/current").body
        assert me["user"]["username"] == name
    stored_settings.delete("iam_users")
    me = logins.ask(signed(SESSION), "GET", "2.0/mlflow/users/current").body
    assert me["user"]["username"] == "by-parameter"
    for wrong in ([], {"trainer": "arn"}, {ROLE: ""}, {ROLE: 7}, {ROLE: "n" * 251}):
        with pytest.raises(errors.InvalidParameterValue, match="iam_users"):
            stored_settings.put("iam_users", wrong)


def test_signatures_count_in_their_mode_only(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTHENTICATION", "basic")
    assert Logins().ask(signed(SESSION), "GET", "2.0/mlflow/users/current").status == 401


ASKED_FOR_NOBODY = {"lambda": {"method": "basic"}}
CREATE = "2.0/mlflow/experiments/create"


@pytest.mark.parametrize("mode", ["basic", "oidc", "iam"])
def test_nobody_passes_where_no_authorizer_was_asked(store: Store, mode: str) -> None:
    """However the route was deployed, the function refuses, and says what is wrong."""
    for unasked in ({}, {"jwt": {"claims": {"sub": "somebody"}}}):
        refused = Logins(mode).ask(unasked, "POST", CREATE, name="e")
        assert refused.status == 401
        assert "was not checked" in refused.body["text"]


def test_an_authorizer_counts_for_a_function_that_knows_of_none(store: Store) -> None:
    """As after a change from ``none`` that has reached the routes and not yet the function."""
    stale = Logins("none")
    made = stale.ask({}, "POST", CREATE, name="open")
    refused = stale.ask(ASKED_FOR_NOBODY, "POST", CREATE, name="e")
    assert (refused.status, refused.body["text"][:25]) == (401, "You are not authenticated")
    change = {"experiment_id": made.body["experiment_id"], "new_name": "taken"}
    for nobodys in (named(_new_user()), signed(SESSION)):
        answer = stale.ask(nobodys, "POST", "2.0/mlflow/experiments/update", **change)
        assert (answer.status, answer.body["text"]) == (403, "Permission denied")
    assert stale.ask(ADMIN, "POST", "2.0/mlflow/experiments/update", **change).status == 200


def test_an_authorizer_never_says_nothing(store: Store) -> None:
    """By its answer the function behind knows that it was asked."""
    event = {"requestContext": {"http": {"method": "GET"}}, "headers": {}}
    answer = authorizer.app.handler(event, None)
    assert answer["isAuthorized"] is True
    assert answer["context"] == {**ASKED_FOR_NOBODY["lambda"], "address": "", "login": "none"}


def test_the_authorizer_of_a_rest_api_says_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers with a policy; the context is that of the HTTP API's authorizer."""
    arn = "arn:aws:execute-api:eu-west-1:123456789012:abc/live/POST/gateway/x"
    user = _new_user()
    right, wrong = (b64encode(f"{user}:{word}".encode()).decode() for word in (PASSWORD, "wrong"))
    logins: list[dict[str, str]] = [
        {},
        *({"authorization": f"Basic {token}"} for token in (right, wrong)),
    ]
    for login in logins:
        plain = {
            "rawPath": "/gateway/x",
            "headers": login,
            "requestContext": {"http": {"method": "POST", "sourceIp": "192.0.2.7"}},
        }
        rest = {
            "type": "REQUEST",
            "methodArn": arn,
            "path": "/gateway/x",
            "httpMethod": "POST",
            "multiValueHeaders": {name: [value] for name, value in login.items()},
            "requestContext": {"identity": {"sourceIp": "192.0.2.7"}},
        }
        answer = authorizer.app.handler(rest, None)
        [statement] = answer["policyDocument"]["Statement"]
        assert (statement["Effect"], statement["Resource"]) == ("Allow", arn)
        assert answer["context"] == authorizer.app.handler(plain, None)["context"]
        assert all(isinstance(value, str | bool) for value in answer["context"].values())
    monkeypatch.setenv("REQUIRED_ORIGIN_WORD", "word")
    refused = authorizer.app.handler(rest, None)
    assert refused["policyDocument"]["Statement"][0]["Effect"] == "Deny"
    assert refused["context"] == {}
