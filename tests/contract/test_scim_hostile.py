"""Nobody without the right provisions, reads, counts or guesses; nothing that is sent breaks the
server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from authorizer import app as authorizer
from mlcore.auth.permissions import Grant
from mlcore.repos.users import api_keys, grants, users
from tests.contract.conftest import Store
from tests.contract.logins import ADMIN, Logins, named
from tests.contract.scim_world import CORE_GROUP, CORE_USER, PATCH_OP, Directory

SECRET = "password-of-some-length"


def key_of(name: str, *scopes: str, workspace: str = "default") -> dict[str, Any]:
    """What the authorizer says about a new API key of a user."""
    token = api_keys.create(users.get(name), "k", workspace, scopes or None, None).token
    event = {
        "headers": {"authorization": f"Bearer {token}"},
        "rawPath": "/",
        "requestContext": {"http": {"sourceIp": "192.0.2.1"}},
    }
    return {"lambda": authorizer.handler(event, None)["context"]}


@pytest.fixture
def directory(store: Store) -> Directory:
    users.create("admin", "", is_admin=True)
    users.create("robot", "", is_admin=True)
    ben = users.create("ben", "", is_admin=False)
    grants.create(ben, "default", Grant("workspace", "*", "MANAGE"))
    return Directory(key_of("robot", "scim"))


def requests(user_id: str, group_id: str) -> list[tuple[str, str, Any]]:
    """A request of each route, valid and malformed."""
    patch = {"schemas": [PATCH_OP], "Operations": [{"op": "remove", "path": "displayName"}]}
    added = {"op": "add", "path": "members", "value": [{"value": user_id}]}
    members = {"schemas": [PATCH_OP], "Operations": [added]}
    return [
        ("GET", "ServiceProviderConfig", None),
        ("GET", "ResourceTypes", None),
        ("GET", "ResourceTypes/User", None),
        ("GET", "Schemas", None),
        ("GET", f"Schemas/{CORE_USER}", None),
        ("GET", "Users", None),
        ("POST", "Users", {"userName": "mallory"}),
        ("POST", "Users", {"userName": "ada"}),
        ("POST", "Users", ["x"]),
        *((method, f"Users/{user_id}", None) for method in ("GET", "DELETE")),
        ("PUT", f"Users/{user_id}", {"userName": "ada", "active": False}),
        ("PATCH", f"Users/{user_id}", patch),
        ("PATCH", f"Users/{user_id}", {}),
        ("GET", "Groups", None),
        ("POST", "Groups", {"displayName": "g", "members": [{"value": user_id}]}),
        *((method, f"Groups/{group_id}", None) for method in ("GET", "DELETE")),
        ("PUT", f"Groups/{group_id}", {"displayName": "h"}),
        ("PATCH", f"Groups/{group_id}", members),
    ]


def test_others_learn_and_change_nothing(directory: Directory, store: Store) -> None:
    """Whoever asks, for what is there and for what is not: one answer."""
    ada = directory.create("ada")
    group = directory.create_group("g", ada["id"])
    demoted = key_of("robot", "scim")
    demoted["lambda"]["is_admin"] = False  # what the authorizer says from the demotion on
    callers = {
        "a user": named("ben"),  # who administers the workspace
        "the user": named("ada"),
        "a user's key": key_of("ben"),
        "a user's key with the scope": key_of("ben", "scim"),
        "a former administrator's key": demoted,
        "a key for another workspace": key_of("robot", "scim", workspace="other"),
        "a key with other scopes": key_of("robot", "read", "sql", "experiment:0", "model:scim"),
        "a key with no scope that counts": key_of("robot", "SCIM", "scim:*", "scim:"),
    }
    before = store.items()
    existing = requests(ada["id"], group["id"])
    missing = requests("99.YWRh", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    for caller in callers.values():
        asking = Directory(caller)
        answers = [
            asking.ask(method, path, body, headers={"if-match": 'W/"7"'})
            for method, path, body in (*existing, *missing)
        ]
        assert {answer.status for answer in answers} == {403}
        assert len({json.dumps(answer.body) for answer in answers}) == 1
    nobody = Directory({"lambda": {"login": "none"}})
    answers = [nobody.ask(*request) for request in (*existing, *missing)]
    assert {answer.status for answer in answers} == {401}
    assert answers[0].body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert store.items() == before


def test_the_key_opens_nothing_else(directory: Directory, store: Store) -> None:
    caller = key_of("robot", "scim")
    before = store.items()
    logins = Logins()
    for method, path, fields in (
        ("GET", "2.0/mlflow/users/list", {}),
        ("GET", "2.0/mlflow/users/get", {"username": "ben"}),
        ("POST", "2.0/mlflow/users/create", {"username": "x", "password": SECRET}),
        ("PATCH", "2.0/mlflow/users/update-password", {"username": "ben", "password": SECRET}),
        ("PATCH", "2.0/mlflow/users/update-admin", {"username": "ben", "is_admin": True}),
        ("DELETE", "2.0/mlflow/users/delete", {"username": "ben"}),
        ("GET", "3.0/mlflow-serverless/keys", {"username": "robot"}),
        ("POST", "3.0/mlflow-serverless/keys", {"name": "x", "scopes": ["scim"]}),
        ("POST", "3.0/mlflow-serverless/service-accounts", {"username": "x"}),
        ("POST", "3.0/mlflow/roles/create", {"name": "r", "workspace": "default"}),
        ("GET", "3.0/mlflow/roles/list", {"workspace": "default"}),
        ("GET", "2.0/mlflow/experiments/get", {"experiment_id": "0"}),
        ("POST", "2.0/mlflow/experiments/create", {"name": "x"}),
        ("POST", "2.0/mlflow/registered-models/create", {"name": "scim"}),
    ):
        assert logins.ask(caller, method, path, **fields).status == 403, path
    assert store.items() == before


def test_who_gets_a_key(directory: Directory) -> None:
    logins = Logins()
    sent = {"name": "k", "scopes": ["scim"]}
    keys = "3.0/mlflow-serverless/keys"
    assert logins.ask(named("ben"), "POST", keys, **sent).status == 400
    assert logins.ask(ADMIN, "POST", keys, **sent).status == 200
    accounts = "3.0/mlflow-serverless/service-accounts"
    assert logins.ask(ADMIN, "POST", accounts, username="account").status == 200
    assert logins.ask(ADMIN, "POST", keys, **sent, username="account").status == 400
    path = "2.0/mlflow/users/update-admin"
    assert logins.ask(ADMIN, "PATCH", path, username="account", is_admin=True).status == 200
    assert logins.ask(ADMIN, "POST", keys, **sent, username="account").status == 200
    provisioning = Directory(key_of("account", "scim"))
    made = provisioning.create("ada")
    assert provisioning.activate(made["id"], active=False).status == 200
    assert provisioning.find('userName eq "account"') == [], "service accounts are invisible"
    owner = provisioning.find('userName eq "admin"')[0]
    assert provisioning.ask("DELETE", f"Users/{owner['id']}").status == 204


TEXTS = [
    "",
    "null",
    "[]",
    '"x"',
    "7",
    "{",
    "{}",
    '{"userName": "a", "USERNAME": "b"}',
    '{"userName": "a", "userName": "a"}',
    '{"userName": "a", "name": {"givenName": "a", "givenname": "b"}}',
    '{"userName": "\\ud800"}',
    '{"userName": "a", "x": "\\udfff"}',
    '{"userName": NaN}',
    '{"userName": "a", "x": Infinity}',
    '{"userName": ' + "[" * 100_000 + "}",
    '{"x":' * 50_000,
    "\x00",
    "<xml/>",
]
VALUES: list[Any] = [
    *(None, "", " ", "\x00", "a\nb", "a" * 256, "\u202e", 7, -1, 1e308, True, False),
    *([], {}, [None], [[]], [{}], {"value": None}, [{"value": []}], {"a": {"b": {}}}),
    *([{"value": "a" * 300}], [{"value": "a"}] * 30, "Tru", "0", {"$ref": None}),
]
NAMES = ("userName", "externalId", "active", "displayName", "name", "emails", "members", "schemas")
PATHS = [
    *NAMES,
    *("name.givenName", "emails.value", 'emails[type eq "x"]', 'emails[type eq "x"].value'),
    *('members[value eq "x"]', "members.value", "id", "meta", "password", "x", ".", "[", "]"),
    *("emails[", "emails[]", 'emails[type co "x"]', "a" * 5_000, "a.b.c", "urn:x:y", "\x00", ""),
]


def test_nothing_that_is_sent_breaks_the_server(directory: Directory, store: Store) -> None:
    """Refusals are 4xx in SCIM's form, and write nothing."""
    made, group = directory.create("ada"), directory.create_group("g")
    resources = (f"Users/{made['id']}", f"Groups/{group['id']}")
    before = store.items()

    def check(*sent: Any, **more: Any) -> None:
        nonlocal before
        answer = directory.ask(*sent, **more)
        if answer.status >= 400:
            assert 400 <= answer.status < 500, (sent, more)
            assert answer.body["status"] == str(answer.status)
            assert store.items() == before, (sent, more)
        before = store.items()

    for text in TEXTS:
        for method, path in (("POST", "Users"), ("PUT", resources[0]), ("PATCH", resources[0])):
            check(method, path, text=text)
        check("POST", "Groups", text=text)
        check("PATCH", resources[1], text=text)
    for value in VALUES:
        for name in NAMES:
            check("PUT", resources[0], {"userName": "ada", name: value})
            check("PUT", resources[1], {"displayName": "g", name: value})
        for path in PATHS:
            for op in ("add", "replace", "remove"):
                operation = {"op": op, "path": path, "value": value}
                for resource in resources:
                    check("PATCH", resource, Directory.patch_body(operation))
    operations: list[Any] = [
        *({"op": op} for op in ("", "move", None, 7, [])),
        *({"op": "add", "path": path, "value": "x"} for path in (7, [], {})),
        *({"op": "add", "value": value} for value in VALUES),
        *("x", None, [], 7),
    ]
    for wrong in operations:
        for resource in resources:
            check("PATCH", resource, {"schemas": [PATCH_OP], "Operations": [wrong]})
    for schemas in ([], "x", None, [CORE_USER], [CORE_GROUP, 7]):
        check(
            "PATCH", resources[0], {"schemas": schemas, "Operations": [{"op": "add", "value": {}}]}
        )
    assert directory.get(made["id"])["userName"] == "ada"


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "x"])
def test_only_json_is_read(directory: Directory, kind: str) -> None:
    answer = directory.ask("POST", "Users", {"userName": "x"}, headers={"content-type": kind})
    assert answer.status == 415
    assert users.find("x") is None


def test_pages_of_other_sites_send_nothing(directory: Directory, store: Store) -> None:
    directory.caller = ADMIN
    foreign = {"origin": "https://attacker.example", "sec-fetch-site": "cross-site"}
    body = {"userName": "mallory"}
    with pytest.raises(AssertionError):  # refused before the route, as everywhere, in plain text
        directory.ask("POST", "Users", body, headers=foreign)
    assert users.find("mallory") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda user_id: user_id + "A",
        lambda user_id: user_id + "=",
        lambda user_id: "0" + user_id,
        lambda user_id: user_id.upper(),
        lambda user_id: user_id.replace(".", ""),
        lambda user_id: user_id.split(".")[0],
        lambda user_id: user_id.split(".")[1],
        lambda user_id: user_id.split(".")[0] + ".YmVu",
        lambda user_id: "1." + user_id.split(".")[1],
        lambda user_id: "9" * 20 + "." + user_id.split(".")[1],
        lambda user_id: user_id.split(".")[0] + "._w",
        lambda user_id: " " + user_id,
        lambda _one: "ada",
    ],
)
def test_an_id_has_one_spelling(directory: Directory, change: Any) -> None:
    made = directory.create("ada")
    for method in ("GET", "DELETE"):
        assert directory.ask(method, f"Users/{change(made['id'])}").status == 404
    assert users.find("ada") is not None


def test_without_a_login_there_is_no_provisioning(store: Store) -> None:
    import users.app  # noqa: PLC0415 -- its name is that of the repository

    event = {
        "rawPath": "/scim/v2/Users",
        "headers": {"host": "localhost"},
        "requestContext": {"http": {"method": "GET"}},
    }
    answer = users.app.handler(event, None)
    assert (answer["statusCode"], json.loads(answer["body"])["status"]) == (404, "404")
