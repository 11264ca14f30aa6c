"""Groups that a directory provisions, and the roles of their members."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mlcore.auth.permissions import EXPERIMENT
from mlcore.auth.requirements import Requirement
from mlcore.errors import InvalidParameterValue
from mlcore.policies.access import Access
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import claim_roles, roles, scim_groups, users
from tests.contract.api import Answer, Api
from tests.contract.conftest import Store
from tests.contract.logins import ADMIN, Logins
from tests.contract.scim_world import CORE_GROUP, Directory
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

SCIENTISTS = {
    "issuer": "scim",
    "claim": "displayName",
    "value": "Scientists",
    "role": "scientists",
    "permissions": [{"resource_type": "experiment", "resource_pattern": "*", "permission": "EDIT"}],
}
REVIEWERS = {
    **SCIENTISTS,
    "claim": "externalId",
    "value": "914c57df",
    "role": "reviewers",
    "permissions": [
        {"resource_type": "experiment", "resource_pattern": "*", "permission": "MANAGE"}
    ],
}


@pytest.fixture
def directory(store: Store) -> Directory:
    users.create("admin", "", is_admin=True)
    stored_settings.put("sign_in_roles", [SCIENTISTS, REVIEWERS])
    return Directory()


def may(name: str, action: str) -> bool:
    return Access(name, False, "default").allows(Requirement(EXPERIMENT, "7", action))


def people(directory: Directory, *names: str) -> list[str]:
    return [directory.create(name)["id"] for name in names]


def member_ids(group: dict[str, Any]) -> set[str]:
    return {member["value"] for member in group.get("members", ())}


def test_a_group_from_creation_to_deletion(directory: Directory, store: Store) -> None:
    ada, bob = people(directory, "ada", "bob")
    group = directory.create_group("Scientists", ada, externalId="1")
    path = f"Groups/{group['id']}"
    assert group["members"] == [
        {
            "value": ada,
            "display": "ada",
            "type": "User",
            "$ref": f"http://mlflow.example/scim/v2/Users/{ada}",
        }
    ]
    assert directory.ask("GET", path).body == group
    assert (may("ada", "update"), may("bob", "update")) == (True, False)
    added = {"op": "add", "path": "members", "value": [{"value": bob}]}
    assert directory.patch(path, added).status == 204
    assert may("bob", "update")
    assert (
        directory.patch(path, {"op": "remove", "path": f'members[value eq "{ada}"]'}).status == 204
    )
    assert (may("ada", "update"), may("bob", "update")) == (False, True)
    put = {"schemas": [CORE_GROUP], "displayName": "Scientists", "members": [{"value": ada}]}
    replaced = directory.ask("PUT", path, put)
    assert (replaced.status, member_ids(replaced.body)) == (200, {ada})
    assert "externalId" not in replaced.body
    assert (may("ada", "update"), may("bob", "update")) == (True, False)
    assert directory.ask("DELETE", path).status == 204
    assert directory.ask("DELETE", path).status == 404
    assert not may("ada", "update")
    kinds = {item["type"]["S"] for item in store.items()}
    assert kinds.isdisjoint({"scim_group", "scim_member", "scim_membership"})
    again = directory.create_group("scientists")
    assert again["id"] != group["id"]
    assert not may("ada", "update")


def test_roles_follow_name_and_id(directory: Directory) -> None:
    (ada,) = people(directory, "ada")
    group = directory.create_group("Readers", ada)
    path = f"Groups/{group['id']}"
    assert not may("ada", "update")
    directory.patch(path, {"op": "Replace", "path": "displayName", "value": "Scientists"})
    assert (may("ada", "update"), may("ada", "manage")) == (True, False)
    directory.patch(path, {"op": "add", "value": {"externalId": "914c57df"}})
    assert may("ada", "manage")
    directory.patch(path, {"op": "remove", "path": "externalId"})
    assert (may("ada", "update"), may("ada", "manage")) == (True, False)
    directory.patch(path, {"op": "replace", "value": {"id": group["id"], "displayName": "R"}})
    assert not may("ada", "update")


def test_a_changed_rule_counts_at_once(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ada,) = people(directory, "ada")
    directory.create_group("Scientists", ada)
    stored_settings.put("sign_in_roles", [])
    claim_roles.apply_to_groups()
    assert not may("ada", "update")
    stored_settings.put("sign_in_roles", [SCIENTISTS])
    claim_roles.apply_to_groups()
    assert may("ada", "update")


@pytest.mark.parametrize(
    "rule",
    [
        {"claim": "displayName", "value": "Scientists", "role": "scientists"},
        {"claim": "groups", "value": "Scientists", "role": "scientists"},
        {"claim": "groups", "value": "Scientists", "administrator": True},
        {"claim": "displayName", "value": "Scientists", "issuer": "partner", "role": "scientists"},
        {**SCIENTISTS, "value": "scientists"},
        {**SCIENTISTS, "claim": "externalId"},
    ],
)
def test_rules_that_are_not_for_the_directory(directory: Directory, rule: dict[str, Any]) -> None:
    """A directory cannot claim what only a token of an issuer may say."""
    roles.create("scientists", "default", None)
    (ada,) = people(directory, "ada")
    stored_settings.put("sign_in_roles", [rule])
    directory.create_group("Scientists", ada)
    assert users.get_profile("ada").role_ids == ()
    assert roles.of_profile(users.get_profile("ada")) == []
    assert not users.get("ada").is_admin


@pytest.mark.parametrize(
    "rule",
    [
        {"issuer": "scim", "claim": "groups", "value": "x", "role": "r"},
        {"issuer": "scim", "claim": "displayName", "value": "x", "administrator": True},
    ],
)
def test_rules_for_the_directory_are_checked(store: Store, rule: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterValue):
        stored_settings.put("sign_in_roles", [rule])
    issuer = {"issuer": "https://x.example", "client_id": "c", "domains": ["x.example"]}
    with pytest.raises(InvalidParameterValue):
        stored_settings.put("sign_in_issuers", {"scim": issuer})


def test_roles_by_hand_stay(directory: Directory) -> None:
    (ada,) = people(directory, "ada")
    group = directory.create_group("Scientists", ada)
    role = roles.find_named("default", "scientists")
    assert role is not None
    roles.assign(users.get("ada"), role.role_id)
    directory.ask("DELETE", f"Groups/{group['id']}")
    assert may("ada", "update")
    listed = Logins().ask(ADMIN, "GET", "2.0/mlflow/users/list").body["users"]
    assert [[r["name"] for r in u["roles"]] for u in listed if u["username"] == "ada"] == [
        ["scientists"]
    ]


def test_roles_of_groups_are_shown(directory: Directory) -> None:
    (ada,) = people(directory, "ada")
    directory.create_group("Scientists", ada)
    logins = Logins()
    listed = logins.ask(ADMIN, "GET", "2.0/mlflow/users/list").body["users"]
    assert [[r["name"] for r in u["roles"]] for u in listed if u["username"] == "ada"] == [
        ["scientists"]
    ]
    answer = logins.ask(ADMIN, "GET", "3.0/mlflow/users/roles/list", username="ada")
    assert [role["name"] for role in answer.body["roles"]] == ["scientists"]


def test_names_are_unique(directory: Directory) -> None:
    group = directory.create_group("Scientists")
    other = directory.create_group("Readers")
    for answer in (
        directory.ask("POST", "Groups", {"displayName": "SCIENTISTS"}),
        directory.patch(
            f"Groups/{other['id']}", {"op": "replace", "path": "displayName", "value": "scientists"}
        ),
    ):
        assert (answer.status, answer.body["scimType"]) == (409, "uniqueness")
    renamed = {"op": "replace", "path": "displayName", "value": "SCIENTISTS"}
    assert directory.patch(f"Groups/{group['id']}", renamed).status == 204
    (found_group,) = directory.find('displayName eq "scientists"', "Groups")
    assert (found_group["id"], found_group["displayName"]) == (group["id"], "SCIENTISTS")

    def create(_number: int) -> Answer:
        return Directory().ask("POST", "Groups", {"displayName": "Writers"})

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(answer.status for answer in pool.map(create, range(4)))
    assert statuses == [201, 409, 409, 409]


def test_filters_and_pages(directory: Directory) -> None:
    ada, bob = people(directory, "ada", "bob")
    made = [directory.create_group(f"g{n}", ada, externalId=f"e{n % 2}") for n in range(5)]
    ids = [group["id"] for group in made]
    for condition, expected in (
        ('displayName eq "G1"', [ids[1]]),
        ('externalId eq "e1"', [ids[1], ids[3]]),
        ('externalId eq "E1"', []),
        (f'id eq "{ids[2]}" and members eq "{ada}"', [ids[2]]),
        (f'id eq "{ids[2]}" and members[value eq "{bob}"]', []),
        (f'members.value eq "{ada}" and externalId eq "e0"', [ids[0], ids[2], ids[4]]),
        (f'members.value eq "{bob}"', []),
        ('members.value eq "x"', []),
    ):
        groups = directory.find(condition, "Groups")
        assert sorted(group["id"] for group in groups) == sorted(expected), condition
    answer = directory.ask("GET", "Groups", filter='meta.version eq "x" and displayName eq "g1"')
    assert (answer.status, answer.body["scimType"]) == (400, "invalidFilter")
    page = directory.ask("GET", "Groups", startIndex=2, count=2, excludedAttributes="members").body
    assert (page["totalResults"], page["itemsPerPage"]) == (5, 2)
    assert [group["id"] for group in page["Resources"]] == ids[1:3]
    assert all("members" not in group for group in page["Resources"])


def test_members_are_users(directory: Directory, store: Store) -> None:
    """Nothing is written if one of the members is none."""
    (ada,) = people(directory, "ada")
    group = directory.create_group("Scientists")
    before = store.items()
    for wrong in ("x", "", 7, None, {}, ["x"], f"{ada}A", ada.upper(), ada.replace(".", "")):
        value = [{"value": ada}, {"value": wrong}]
        operation = {"op": "add", "path": "members", "value": value}
        answer = directory.patch(f"Groups/{group['id']}", operation)
        assert (answer.status, answer.body["scimType"]) == (400, "invalidValue"), wrong
        body = {"displayName": "New", "members": value}
        assert directory.ask("POST", "Groups", body).status == 400
    assert store.items() == before


def test_a_deleted_user_is_no_member(directory: Directory) -> None:
    ada, bob = people(directory, "ada", "bob")
    group = directory.create_group("Scientists", ada, bob)
    path = f"Groups/{group['id']}"
    directory.ask("DELETE", f"Users/{ada}")
    assert member_ids(directory.ask("GET", path).body) == {bob}
    again = directory.create("ada")["id"]
    assert not may("ada", "update")
    added = {"op": "add", "path": "members", "value": [{"value": again}]}
    directory.patch(path, added)
    removal = {"op": "remove", "path": f'members[value eq "{ada}"]'}
    assert directory.patch(path, removal).status == 204
    assert may("ada", "update"), "the id of the former user removes nobody else"


def test_many_members(directory: Directory) -> None:
    names = [f"user-{number:03d}" for number in range(100)]
    ids = people(directory, *names)
    group = directory.create_group("Scientists", *ids[:70])
    path = f"Groups/{group['id']}"
    put = {"displayName": "Scientists", "members": [{"value": member_id} for member_id in ids[35:]]}
    assert member_ids(directory.ask("PUT", path, put).body) == set(ids[35:])
    assert [may(name, "update") for name in names] == [False] * 35 + [True] * 65
    version = directory.ask("GET", path).body["meta"]["version"]
    assert directory.ask("PUT", path, put).body["meta"]["version"] == version
    removal = {"op": "remove", "path": "members"}
    assert directory.patch(path, removal).status == 204
    assert "members" not in directory.ask("GET", path).body


def test_writers_at_once_lose_no_member(directory: Directory) -> None:
    ids = people(directory, *(f"user-{number}" for number in range(8)))
    group = directory.create_group("Scientists")

    def add(scim_id: str) -> int:
        operation = {"op": "add", "path": "members", "value": [{"value": scim_id}]}
        return Directory().patch(f"Groups/{group['id']}", operation).status

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(add, ids)) == [204] * 8
    assert member_ids(directory.ask("GET", f"Groups/{group['id']}").body) == set(ids)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("fault", [Fault.DEAD, Fault.DEAD_AFTER, Fault.ANSWER_LOST])
def test_writes_that_are_cut_off_and_repeated(
    broken: tuple[Api, Doubles], fault: Fault, method: str
) -> None:
    """Before and behind each call to the table; the directory repeats what failed."""
    _, doubles = broken
    users.create("admin", "", is_admin=True)
    stored_settings.put("sign_in_roles", [{**SCIENTISTS, "claim": "externalId", "value": "s"}])
    directory = Directory()
    for nth in itertools.count(1):
        ada, bob = people(directory, f"ada-{nth}", f"bob-{nth}")
        body = {"displayName": f"g-{nth}", "externalId": "s", "members": [{"value": bob}]}
        operations = [{"op": "replace", "value": {"externalId": "s", "members": body["members"]}}]
        sent = directory.patch_body(*operations) if method == "PATCH" else body
        path = "Groups"
        if method != "POST":
            given = {"externalId": "s"} if method == "DELETE" else {}
            path += "/" + directory.create_group(f"g-{nth}", ada, **given)["id"]
        doubles.faulty.arm(fault, nth)
        directory.ask(method, path, sent)
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        second = directory.ask(method, path, sent)
        assert second.status in {200, 201, 204, 404, 409}
        if second.status == 409:  # then a directory finds the group and adds what is missing
            (group,) = directory.find(f'displayName eq "g-{nth}"', "Groups")
            assert directory.ask("PUT", f"Groups/{group['id']}", body).status == 200
        expected = (False, False) if method == "DELETE" else (False, True)
        assert (may(f"ada-{nth}", "update"), may(f"bob-{nth}", "update")) == expected
        if not fired:
            break


def test_an_interrupted_deletion_leaves_no_rights(directory: Directory) -> None:
    (ada,) = people(directory, "ada")
    group = directory.create_group("Scientists", ada)
    stored = scim_groups.find(group["id"])
    assert stored is not None
    scim_groups.set_roles(group["id"], (*stored.role_ids, 10_000))  # one that is gone
    assert may("ada", "update")
    assert len(roles.of_profile(users.get_profile("ada"))) == 1
