"""Users that a directory creates, changes, deactivates and deletes over SCIM."""

from __future__ import annotations

import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from authorizer import app as authorizer
from mlcore import errors
from mlcore.auth import passwords
from mlcore.auth.passwords import SERVICE_ACCOUNT_HASH, hash_password
from mlcore.auth.permissions import Grant
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.users import Session
from mlcore.models.scim import ScimName
from mlcore.policies.route_authorization import authenticated_caller
from mlcore.repos.users import api_keys, grants, roles, sessions, users
from tests.contract.api import Answer
from tests.contract.conftest import Store
from tests.contract.logins import ADMIN, Logins, signed
from tests.contract.scim_world import Directory, without_meta

PASSWORD = "password-of-some-length"
EMAILS = [{"value": "ada@example.org", "type": "work", "primary": True}]


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_N", 2)


@pytest.fixture
def directory(store: Store) -> Directory:
    users.create("admin", "", is_admin=True)
    return Directory()


def logs_in(authorization: str) -> bool:
    """Whether the authorizer knows the caller of an Authorization header."""
    event = {
        "headers": {"authorization": authorization},
        "rawPath": "/",
        "requestContext": {"http": {"sourceIp": "192.0.2.1"}},
    }
    context: dict[str, Any] = authorizer.handler(event, None)["context"]
    return "username" in context or "key_user" in context


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def test_a_user_from_creation_to_deletion(directory: Directory) -> None:
    made = directory.create(
        "ada@example.org",
        externalId="7",
        displayName="Ada",
        name={"givenName": "Ada", "familyName": "Lovelace", "unknown": "x"},
        emails=EMAILS,
        phoneNumbers=[{"value": "1", "type": "work"}],
    )
    path = f"Users/{made['id']}"
    assert made["active"] is True
    assert made["name"] == {"givenName": "Ada", "familyName": "Lovelace"}
    assert "phoneNumbers" not in made, "what nobody needs is not stored"
    assert made["meta"]["location"] == f"http://mlflow.example/scim/v2/{path}"
    assert directory.get(made["id"]) == made
    user = users.get("ada@example.org")
    assert (user.is_admin, user.password_hash) == (False, "")
    replaced = directory.ask("PUT", path, {"userName": "ada@example.org", "externalId": "8"})
    assert replaced.status == 200
    assert without_meta(replaced.body) == {
        "schemas": made["schemas"],
        "id": made["id"],
        "externalId": "8",
        "userName": "ada@example.org",
        "active": True,
    }
    assert directory.find('externalId eq "7"') == []
    assert directory.find('emails.value eq "ada@example.org"') == []
    assert directory.ask("DELETE", path).status == 204
    assert directory.ask("DELETE", path).status == 404
    assert directory.ask("GET", path).status == 404
    assert users.find("ada@example.org") is None
    again = directory.create("ada@example.org")
    assert again["id"] != made["id"]
    assert directory.ask("GET", path).status == 404, "an id is of one user for ever"


@pytest.mark.parametrize(
    ("condition", "usernames"),
    [
        ('userName eq "ada@example.org"', ["ada@example.org"]),
        ('USERNAME Eq "ADA@Example.org"', ["ada@example.org"]),
        (
            'urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ada@example.org"',
            ["ada@example.org"],
        ),
        ('externalId eq "Seven"', ["ada@example.org"]),
        ('externalId eq "seven"', []),
        ('emails.value eq "ADA@example.org"', ["ada@example.org"]),
        ('emails eq "shared@example.org"', ["ada@example.org", "bob@example.org"]),
        ('emails[type eq "work"].value eq "shared@example.org"', ["bob@example.org"]),
        ('emails[type eq "home" and value eq "shared@example.org"]', []),
        ('emails.value eq "shared@example.org" and displayName eq "bob"', ["bob@example.org"]),
        ('active eq true and userName eq "ada@example.org"', ["ada@example.org"]),
        ('userName eq "ada@example.org" and active eq false', []),
        ('userName eq "ada@example.org" and externalId eq "8"', []),
        ('userName eq "admin"', ["admin"]),
        ('userName eq "ADMIN"', []),  # no directory has provisioned it
        ('userName eq "robot"', []),
        ('userName eq ""', []),
        ("userName eq 7", []),
        ("externalId eq null", []),
    ],
)
def test_filters(directory: Directory, condition: str, usernames: list[str]) -> None:
    users.create("robot", SERVICE_ACCOUNT_HASH, is_admin=False)
    shared = {"value": "shared@example.org"}
    directory.create("ada@example.org", externalId="Seven", emails=[*EMAILS, shared])
    directory.create(
        "bob@example.org", displayName="Bob", emails=[{**shared, "type": "Work"}], active=False
    )
    assert [user["userName"] for user in directory.find(condition)] == usernames


@pytest.mark.parametrize(
    "condition",
    [
        "userName",
        'userName co "a"',
        'userName eq "a" or userName eq "b"',
        'not (userName eq "a")',
        'userName eq "a',
        "userName eq a",
        'userName eq "a" and',
        'userName eq "a" "b"',
        "active eq true",
        'displayName eq "Ada"',
        'title eq "x" and userName eq "admin"',
        'password eq "x" and userName eq "admin"',
        'userName[type eq "x"].value eq "y"',
        'active[x eq "y"] and userName eq "admin"',
        "emails[",
        "[]",
        '"x" eq "y"',
        "a" * 5_000,
        "(" * 2_000,
    ],
)
def test_filters_that_are_refused(directory: Directory, condition: str) -> None:
    answer = directory.ask("GET", "Users", filter=condition)
    assert (answer.status, answer.body["scimType"]) == (400, "invalidFilter")
    assert answer.body["status"] == "400"


def test_pages(directory: Directory) -> None:
    names = sorted([*(f"user-{number:02d}" for number in range(12)), "admin"])
    for name in names:
        if name != "admin":
            directory.create(name)
    users.create("robot", SERVICE_ACCOUNT_HASH, is_admin=False)
    results = []
    for start in (1, 6, 11, 16):
        body = directory.ask("GET", "Users", startIndex=start, count=5).body
        assert (body["totalResults"], body["startIndex"]) == (13, start)
        assert body["itemsPerPage"] == len(body["Resources"])
        results += [user["userName"] for user in body["Resources"]]
    assert results == names
    for count in (0, -3):
        body = directory.ask("GET", "Users", startIndex=-7, count=count).body
        assert (body["totalResults"], body["startIndex"], body["Resources"]) == (13, 1, [])
    assert directory.ask("GET", "Users", count="many").status == 400
    assert directory.ask("GET", "Users", count="9" * 5_000).status == 400


def test_attributes_are_chosen(directory: Directory) -> None:
    made = directory.create("ada", displayName="Ada", emails=EMAILS)
    path = f"Users/{made['id']}"
    chosen = directory.ask("GET", path, attributes="userName,emails.value").body
    assert chosen.keys() == {"schemas", "id", "userName", "emails"}
    rest = directory.ask("GET", path, excludedAttributes="EMAILS,meta,id").body
    assert rest.keys() == {"schemas", "id", "userName", "active", "displayName"}


def test_names_are_unique(directory: Directory) -> None:
    """Of provisioned users in every spelling, and of every other user as it is."""
    directory.create("ada")
    users.create("robot", SERVICE_ACCOUNT_HASH, is_admin=False)
    for name in ("ada", "ADA", "admin", "robot"):
        answer = directory.ask("POST", "Users", {"userName": name})
        assert (answer.status, answer.body["scimType"]) == (409, "uniqueness"), name
    with ThreadPoolExecutor(8) as pool:
        spellings = ["Bob", "bob", "BOB", "boB"] * 2
        answers = list(
            pool.map(lambda name: Directory().ask("POST", "Users", {"userName": name}), spellings)
        )
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7
    assert (
        len([profile for profile in users.find_all() if profile.user.username.lower() == "bob"])
        == 1
    )


def _create(name: str) -> Answer:
    return Directory().ask("POST", "Users", {"userName": name})


def test_a_user_of_before_is_taken_over(directory: Directory) -> None:
    """Entra ID finds the user by name and then writes to it; rights stay."""
    user = users.create("ada", hash_password(PASSWORD), is_admin=False)
    grants.create(user, "default", Grant("experiment", "0", "EDIT"))
    (resource,) = directory.find('userName eq "ada"')
    assert resource["meta"] == {
        "resourceType": "User",
        "location": f"http://mlflow.example/scim/v2/Users/{resource['id']}",
        "version": 'W/"0"',
    }
    changed = directory.patch(
        f"Users/{resource['id']}", {"op": "Add", "path": "externalId", "value": "7"}
    )
    assert (changed.status, changed.body["meta"]["version"]) == (200, 'W/"1"')
    assert directory.find('externalId eq "7"')[0]["id"] == resource["id"]
    assert directory.find('userName eq "ADA"')[0]["id"] == resource["id"]
    assert len(users.get_profile("ada").grants) == 1
    assert logs_in(basic("ada", PASSWORD))
    answer = directory.ask("POST", "Users", {"userName": "Ada"})
    assert answer.status == 409
    users.create("ADA", "", is_admin=False)  # by an administrator
    other = directory.find('userName eq "ADA"')[0]
    answer = directory.activate(other["id"], active=False)
    assert (answer.status, answer.body["scimType"]) == (409, "uniqueness")


def test_the_name_never_changes(directory: Directory) -> None:
    made = directory.create("ada@example.org")
    path = f"Users/{made['id']}"
    for answer in (
        directory.ask("PUT", path, {"userName": "bob"}),
        directory.ask("PUT", path, {"displayName": "Ada"}),
        directory.patch(path, {"op": "replace", "path": "userName", "value": "bob"}),
        directory.patch(path, {"op": "remove", "path": "userName"}),
    ):
        assert (answer.status, answer.body["scimType"]) == (400, "mutability")
    same = directory.patch(path, {"op": "replace", "value": {"userName": "ADA@example.org"}})
    assert (same.status, same.body["userName"]) == (200, "ada@example.org")


class Person:
    """Somebody who has a password, an API key, a session and a bearer token's name."""

    def __init__(self, name: str) -> None:
        self.user = users.create(name, hash_password(PASSWORD), is_admin=False)
        self.key = api_keys.create(self.user, "k", "default", None, None).token
        self.start_session()

    def start_session(self) -> None:
        now = int(time.time())
        session = Session(
            "secret", self.user.username, self.user.user_id, "", False, now, now, now + 60
        )
        sessions.start(session)

    def ways(self) -> list[bool]:
        """Whether password, key, session, token and signature let the person in."""
        name = self.user.username
        known, session = sessions.find(name, "secret")
        try:
            token = users.ensure(name).is_active
            signs = authenticated_caller(signed(name), "default", signed=True) is not None
        except errors.PermissionDenied:
            token = signs = False
        return [
            logs_in(basic(name, PASSWORD)),
            logs_in(f"Bearer {self.key}"),
            session is not None and known is not None and known.is_active,
            token,
            signs,
        ]


@pytest.mark.parametrize("value", [False, "False", "false", "FALSE"])
def test_deactivation_ends_every_login_at_once(directory: Directory, value: Any) -> None:
    person = Person("ada")
    assert person.ways() == [True] * 5
    (resource,) = directory.find('userName eq "ada"')
    answer = directory.activate(resource["id"], value)
    assert (answer.status, answer.body["active"]) == (200, False)
    assert person.ways() == [False] * 5
    assert directory.find('userName eq "ada" and active eq false')
    # One that began before and ends after: it is refused, and stays so after a reactivation.
    person.start_session()
    assert person.ways() == [False] * 5
    assert directory.activate(resource["id"], active=True).body["active"] is True
    assert person.ways() == [True, True, False, True, True], "keys come back, sessions do not"


def test_deletion_leaves_nothing(directory: Directory, store: Store) -> None:
    person = Person("ada")
    role = roles.create("r", "default", None)
    roles.assign(person.user, role.role_id)
    (resource,) = directory.find('userName eq "ada"')
    directory.patch(f"Users/{resource['id']}", {"op": "add", "path": "emails", "value": EMAILS})
    assert directory.ask("DELETE", f"Users/{resource['id']}").status == 204
    assert person.ways() == [False] * 5
    left = [item for item in store.items() if "ada" in str(item["PK"]) + str(item["SK"])]
    assert [item["type"]["S"] for item in left] == ["scim_name"]
    assert users.find("ada") is None
    with pytest.raises(errors.PermissionDenied):
        users.ensure("ADA")  # a token that still lives, in any spelling
    lock = keys.scim_name("user", "ada")
    gone = ScimName.of(table.get(lock) or {})
    table.put(
        ScimName(
            PK=lock.pk, SK=lock.sk, scim_id=gone.scim_id, is_deleted=True, ttl=int(time.time()) - 1
        ).serialize()
    )
    assert users.ensure("ada").user_id > person.user.user_id


def test_a_login_makes_no_second_user(directory: Directory) -> None:
    directory.create("ada@example.org")
    with pytest.raises(errors.PermissionDenied):
        users.ensure("Ada@example.org")
    assert users.ensure("ada@example.org").username == "ada@example.org"
    logins = Logins()
    deleted = logins.ask(ADMIN, "DELETE", "2.0/mlflow/users/delete", username="ada@example.org")
    assert deleted.status == 200
    assert users.ensure("Ada@example.org").username == "Ada@example.org"


def test_callers_do_not_lock_themselves_out(directory: Directory) -> None:
    (admin,) = directory.find('userName eq "admin"')
    assert directory.activate(admin["id"], active=False).status == 403
    assert directory.ask("DELETE", f"Users/{admin['id']}").status == 403
    assert users.get("admin").is_active


def test_versions(directory: Directory) -> None:
    made = directory.create("ada")
    path, version = f"Users/{made['id']}", made["meta"]["version"]
    read = directory.ask("GET", path, headers={"if-none-match": version})
    assert (read.status, read.body, read.headers["etag"]) == (304, {}, version)
    put = {"userName": "ada", "displayName": "Ada"}
    changed = directory.ask("PUT", path, put, headers={"if-match": version})
    assert (changed.status, changed.body["meta"]["version"]) == (200, 'W/"2"')
    again = directory.ask("PUT", path, put)
    assert again.body == changed.body, "what changes nothing is no new version"
    assert directory.ask("PUT", path, put, headers={"if-match": version}).status == 412
    assert directory.ask("DELETE", path, headers={"if-match": version}).status == 412
    assert directory.ask("DELETE", path, headers={"if-match": "*"}).status == 204
