"""The requests of Entra ID and Okta, written from what their makers document.

Entra ID: https://learn.microsoft.com/entra/identity/app-provisioning/use-scim-to-provision-users-and-groups
(requests and responses of users and groups) and
https://learn.microsoft.com/entra/identity/app-provisioning/application-provisioning-config-problem-scim-compatibility
(the form of operations with and without the flag ``aadOptscim062020``).

Okta: https://developer.okta.com/docs/api/openapi/okta-scim/guides/scim-20/
"""

from __future__ import annotations

from typing import Any

import pytest

from mlcore.repos.users import users
from tests.contract.conftest import Store
from tests.contract.scim_world import CORE_GROUP, CORE_USER, PATCH_OP, Directory, without_meta

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"

ENTRA_USER: dict[str, Any] = {
    "schemas": [CORE_USER, ENTERPRISE],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": "Test_User_ab6490ee-1e48-479e-a20b-2d77186b5dd1",
    "active": True,
    "emails": [
        {
            "primary": True,
            "type": "work",
            "value": "Test_User_fd0ea19b-0777-472c-9f96-4f70d2226f2e@testuser.com",
        }
    ],
    "meta": {"resourceType": "User"},
    "name": {
        "formatted": "givenName familyName",
        "familyName": "familyName",
        "givenName": "givenName",
    },
    "roles": [],
}
ENTRA_GROUP: dict[str, Any] = {
    "schemas": [
        CORE_GROUP,
        "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group",
    ],
    "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
    "displayName": "displayName",
    "meta": {"resourceType": "Group"},
}
OKTA_USER: dict[str, Any] = {
    "schemas": [CORE_USER],
    "userName": "test.user@okta.local",
    "name": {"givenName": "Test", "familyName": "User"},
    "emails": [{"primary": True, "value": "test.user@okta.local", "type": "work"}],
    "displayName": "Test User",
    "locale": "en-US",
    "externalId": "00ujl29u0le5T6Aj10h7",
    "groups": [],
    "password": "1mz050nq",
    "active": True,
}


@pytest.fixture
def directory(store: Store) -> Directory:
    users.create("admin", "", is_admin=True)
    return Directory()


def patched(directory: Directory, path: str, *operations: dict[str, Any]) -> dict[str, Any]:
    answer = directory.ask("PATCH", path, {"schemas": [PATCH_OP], "Operations": list(operations)})
    assert answer.status in (200, 204), answer.body
    return directory.ask("GET", path).body


def test_entra_provisions_a_user(directory: Directory) -> None:
    name = ENTRA_USER["userName"]
    # Test Connection asks for somebody who does not exist, and takes an empty list for success.
    nobody = directory.ask("GET", "Users", filter='userName eq "4a5b-not-there"')
    assert nobody.status == 200
    assert nobody.body["Resources"] == []
    assert nobody.body["totalResults"] == 0
    made = directory.ask("POST", "Users", ENTRA_USER)
    assert made.status == 201
    assert made.headers["location"].endswith(f"/scim/v2/Users/{made.body['id']}")
    assert {
        k: v for k, v in ENTRA_USER.items() if k in ("externalId", "userName", "active")
    }.items() <= made.body.items()
    (again,) = directory.find(f'userName eq "{name}"')
    assert again == made.body
    assert directory.ask("POST", "Users", ENTRA_USER).body["scimType"] == "uniqueness"
    path = f"Users/{made.body['id']}"
    new = "updatedEmail@microsoft.com"
    body = patched(
        directory,
        path,
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": new},
        {"op": "Replace", "path": "name.familyName", "value": "updatedFamilyName"},
    )
    assert body["emails"] == [{"primary": True, "type": "work", "value": new}]
    assert body["name"]["familyName"] == "updatedFamilyName"
    assert body["name"]["givenName"] == "givenName"
    same_name = "TEST_USER_ab6490ee-1e48-479e-a20b-2d77186b5dd1"
    assert patched(directory, path, {"op": "Replace", "path": "userName", "value": same_name})
    disabled = patched(directory, path, {"op": "Replace", "path": "active", "value": False})
    assert disabled["active"] is False
    assert directory.ask("DELETE", path).status == 204


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "Replace", "path": "active", "value": "False"}, {"active": False}),
        ({"op": "replace", "path": "active", "value": False}, {"active": False}),
        ({"op": "Replace", "path": "active", "value": [{"value": "False"}]}, {"active": False}),
        ({"op": "replace", "value": {"active": False}}, {"active": False}),
        (
            {"op": "Add", "path": "nickName", "value": "Babs"},  # which is not stored
            {},
        ),
        ({"op": "Add", "path": "displayName", "value": "Babs"}, {"displayName": "Babs"}),
        (
            {"op": "Add", "path": "displayName", "value": [{"$ref": None, "value": "Babs"}]},
            {"displayName": "Babs"},
        ),
        (
            {"op": "Add", "path": f"{CORE_USER}:displayName", "value": "Babs"},
            {"displayName": "Babs"},
        ),
        ({"op": "Add", "path": f"{ENTERPRISE}:department", "value": "R&D"}, {}),
        (
            {
                "op": "replace",
                "value": {
                    "displayName": "Bjfe",
                    "name.givenName": "Kkom",
                    "name.familyName": "Unua",
                    f"{ENTERPRISE}:employeeNumber": "Aklq",
                    'phoneNumbers[type eq "work"].value': "8",
                },
            },
            {
                "displayName": "Bjfe",
                "name": {
                    "formatted": "givenName familyName",
                    "familyName": "Unua",
                    "givenName": "Kkom",
                },
            },
        ),
        (
            {"op": "Add", "path": 'emails[type eq "home"].value', "value": "h@x.example"},
            {"emails": [*ENTRA_USER["emails"], {"type": "home", "value": "h@x.example"}]},
        ),
        (
            {"op": "Add", "path": 'emails[type eq "work"].primary', "value": "False"},
            {"emails": [{**ENTRA_USER["emails"][0], "primary": False}]},
        ),
        ({"op": "Remove", "path": 'emails[type eq "work"].value'}, {"emails": None}),
        ({"op": "Remove", "path": 'emails[type eq "work"]'}, {"emails": None}),
        ({"op": "remove", "path": "name"}, {"name": None}),
        ({"op": "Remove", "path": "externalId"}, {"externalId": None}),
    ],
)
def test_entra_forms_of_a_patch(
    directory: Directory, operation: dict[str, Any], expected: dict[str, Any]
) -> None:
    made = directory.ask("POST", "Users", ENTRA_USER).body
    body = patched(directory, f"Users/{made['id']}", operation)
    wanted = {k: v for k, v in {**without_meta(made), **expected}.items() if v is not None}
    assert without_meta(body) == wanted


def test_entra_provisions_a_group(directory: Directory) -> None:
    user = directory.ask("POST", "Users", ENTRA_USER).body["id"]
    assert directory.find('displayName eq "displayName"', "Groups") == []
    made = directory.ask("POST", "Groups", ENTRA_GROUP)
    assert (made.status, made.body["externalId"]) == (201, ENTRA_GROUP["externalId"])
    path = f"Groups/{made.body['id']}"
    read = directory.ask("GET", path, excludedAttributes="members")
    assert (read.status, "members" in read.body) == (200, False)
    listed = directory.ask(
        "GET", "Groups", excludedAttributes="members", filter='displayName eq "displayName"'
    )
    assert listed.body["Resources"] == [read.body]
    renamed = {"op": "Replace", "path": "displayName", "value": "1879db59-3bdf-4490-ad68"}
    assert patched(directory, path, renamed)["displayName"] == "1879db59-3bdf-4490-ad68"
    add = {"op": "Add", "path": "members", "value": [{"$ref": None, "value": user}]}
    for _ in range(2):
        assert [member["value"] for member in patched(directory, path, add)["members"]] == [user]
    held = f'id eq "{made.body["id"]}" and members eq "{user}"'
    assert len(directory.find(held, "Groups")) == 1
    for removal in (
        {"op": "Remove", "path": "members", "value": [{"$ref": None, "value": user}]},
        {"op": "remove", "path": f'members[value eq "{user}"]'},
    ):
        for _ in range(2):
            assert "members" not in patched(directory, path, removal)
        patched(directory, path, add)
    assert directory.ask("DELETE", path).status == 204


def test_okta_provisions_a_user(directory: Directory, store: Store) -> None:
    query: dict[str, Any] = {
        "filter": 'userName eq "test.user@okta.local"',
        "startIndex": 1,
        "count": 100,
    }
    empty = directory.ask("GET", "Users", **query).body
    assert (empty["totalResults"], empty["startIndex"], empty["itemsPerPage"]) == (0, 1, 0)
    made = directory.ask("POST", "Users", OKTA_USER)
    assert made.status == 201
    assert made.body["displayName"] == "Test User"
    assert "password" not in made.body
    assert OKTA_USER["password"] not in str(store.items())
    path = f"Users/{made.body['id']}"
    (imported,) = directory.ask("GET", "Users", **query).body["Resources"]
    assert imported["id"] == made.body["id"]
    changed = {
        **OKTA_USER,
        "id": made.body["id"],
        "name": {"givenName": "Another", "middleName": "", "familyName": "User"},
        "meta": {"resourceType": "User"},
    }
    put = directory.ask("PUT", path, changed)
    assert (put.status, put.body["name"]) == (200, {"givenName": "Another", "familyName": "User"})
    patch = directory.patch(path, {"op": "replace", "value": {"active": False}})
    assert (patch.status, patch.body["active"]) == (200, False)
    assert directory.ask("PUT", path, {**changed, "active": True}).body["active"] is True
    missing = directory.ask("GET", "Users/23a35c27-23d3-4c03-b4c5-6443c09e7173")
    assert missing.status == 404
    assert missing.body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert missing.body["status"] == "404"


def test_okta_pushes_a_group(directory: Directory) -> None:
    ids = [directory.create(f"user-{number}@okta.local")["id"] for number in range(3)]
    displayed = [{"value": member_id, "display": "Test User"} for member_id in ids]
    body = {"schemas": [CORE_GROUP], "displayName": "Test SCIMv2", "members": []}
    made = directory.ask("POST", "Groups", body)
    assert made.status == 201
    group_id = made.body["id"]
    path = f"Groups/{group_id}"
    assert directory.ask("GET", "Groups", startIndex=1, count=100).body["totalResults"] == 1
    new_name = {"op": "replace", "value": {"id": group_id, "displayName": "Test SCIMv2 b"}}
    assert patched(directory, path, new_name)["displayName"] == "Test SCIMv2 b"
    group = patched(
        directory,
        path,
        {"op": "remove", "path": f'members[value eq "{ids[0]}"]'},
        {"op": "add", "path": "members", "value": displayed[1:]},
    )
    assert {member["value"] for member in group["members"]} == set(ids[1:])
    replaced = {"op": "replace", "path": "members", "value": displayed[:1]}
    group = patched(directory, path, replaced)
    assert [member["value"] for member in group["members"]] == ids[:1]
    put = {**body, "id": group_id, "displayName": "Test SCIMv2", "members": displayed}
    answer = directory.ask("PUT", path, put)
    assert (answer.status, len(answer.body["members"])) == (200, 3)
    assert directory.ask("DELETE", path).status == 204


def test_what_the_server_says_of_itself(directory: Directory) -> None:
    configuration = directory.ask("GET", "ServiceProviderConfig").body
    assert configuration["patch"]["supported"] is True
    assert configuration["bulk"]["supported"] is False
    assert configuration["filter"] == {"supported": True, "maxResults": 200}
    types = directory.ask("GET", "ResourceTypes").body["Resources"]
    assert [(resource_type["id"], resource_type["endpoint"]) for resource_type in types] == [
        ("User", "/Users"),
        ("Group", "/Groups"),
    ]
    for type_ in types:
        assert directory.ask("GET", f"ResourceTypes/{type_['id']}").body == type_
        schema = directory.ask("GET", f"Schemas/{type_['schema']}").body
        assert schema["id"] == type_["schema"]
        assert schema in directory.ask("GET", "Schemas").body["Resources"]
    # What is stored is what the schemas list.
    names = {
        attribute["name"]
        for attribute in directory.ask("GET", f"Schemas/{CORE_USER}").body["attributes"]
    }
    made = directory.ask("POST", "Users", {**OKTA_USER, "title": "x"}).body
    assert made.keys() - {"schemas", "id", "meta"} == names
    for path in ("ResourceTypes/Robot", "Schemas/x", "Me", "Bulk", "Users/x/y"):
        assert directory.ask("GET", path).status == 404, path
