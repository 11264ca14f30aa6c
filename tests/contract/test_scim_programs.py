"""Any order of a directory's requests has the effect of the same requests on a model: a dict of
users and a dict of groups with sets of members."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import errors
from mlcore.auth.permissions import EXPERIMENT
from mlcore.auth.requirements import Requirement
from mlcore.policies.access import Access
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import users
from tests.contract.conftest import Store, examples
from tests.contract.scim_world import Directory

NUMBERS = itertools.count(1)
NAMES = ("ada", "Ada", "bob", "eve")
GROUPS = ("Writers", "WRITERS", "Readers")
RULES = [
    {
        "issuer": "scim",
        "claim": "externalId",
        "value": "writers",
        "role": "writers",
        "permissions": [
            {"resource_type": "experiment", "resource_pattern": "*", "permission": "EDIT"}
        ],
    }
]

names, groups = st.sampled_from(NAMES), st.sampled_from(GROUPS)
members = st.lists(names, max_size=3)
emails = st.lists(st.sampled_from(("A@x.example", "b@x.example")), max_size=2, unique=True)
steps = st.one_of(
    st.tuples(st.just("create"), names, st.booleans(), emails),
    st.tuples(st.just("activate"), names, st.sampled_from((True, False, "True", "False"))),
    st.tuples(st.just("replace"), names, emails),
    st.tuples(st.just("add_email"), names, emails),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("login"), names),
    st.tuples(st.just("create_group"), groups, st.booleans(), members),
    st.tuples(st.just("add"), groups, members),
    st.tuples(st.just("remove"), groups, members, st.booleans()),
    st.tuples(st.just("set"), groups, members),
    st.tuples(st.just("rename"), groups, groups),
    st.tuples(st.just("point"), groups, st.booleans()),
    st.tuples(st.just("delete_group"), groups),
)


class Person(NamedTuple):
    scim_id: str
    name: str
    active: bool
    emails: list[str]


class Group:
    def __init__(self, group_id: str, name: str, *, gives_rights: bool) -> None:
        self.group_id = group_id
        self.name = name
        self.gives_rights = gives_rights
        self.members: set[str] = set()


class Program:
    """Sends each step and does it to the model; both must agree at once."""

    def __init__(self) -> None:
        self.directory = Directory()
        self.end = f"-{next(NUMBERS)}"
        self.people: dict[str, Person] = {}
        self.groups: dict[str, Group] = {}
        self.deleted: set[str] = set()

    def _person(self, name: str) -> Person | None:
        return self.people.get(name.lower())

    def _ids(self, some: list[str]) -> list[str]:
        people = map(self._person, some)
        return [person.scim_id for person in people if person is not None]

    def create(self, name: str, active: bool, addresses: list[str]) -> None:
        entries = [{"value": address} for address in addresses]
        body = {"userName": name + self.end, "active": active, "emails": entries}
        answer = self.directory.ask("POST", "Users", body)
        assert answer.status == (201 if self._person(name) is None else 409)
        if answer.status == 201:
            person = Person(answer.body["id"], name + self.end, active, addresses)
            self.people[name.lower()] = person
            self.deleted.discard(name.lower())

    def _change(self, name: str, method: str, body: Any, **changed: Any) -> None:
        person = self._person(name)
        if person is not None:
            answer = self.directory.ask(method, f"Users/{person.scim_id}", body)
            assert answer.status == 200, answer.body
            self.people[name.lower()] = person._replace(**changed)

    def activate(self, name: str, value: bool | str) -> None:
        body = Directory.patch_body({"op": "Replace", "path": "active", "value": value})
        self._change(name, "PATCH", body, active=value in (True, "True"))

    def replace(self, name: str, addresses: list[str]) -> None:
        body = {
            "userName": name + self.end,
            "emails": [{"value": address} for address in addresses],
        }
        self._change(name, "PUT", body, emails=addresses)

    def add_email(self, name: str, addresses: list[str]) -> None:
        person = self._person(name)
        if person is not None:
            value = [{"value": address} for address in addresses]
            body = Directory.patch_body({"op": "add", "path": "emails", "value": value})
            new = [address for address in addresses if address not in person.emails]
            self._change(name, "PATCH", body, emails=[*person.emails, *new])

    def delete(self, name: str) -> None:
        person = self._person(name)
        if person is not None:
            assert self.directory.ask("DELETE", f"Users/{person.scim_id}").status == 204
            del self.people[name.lower()]
            self.deleted.add(name.lower())
            for group in self.groups.values():
                group.members.discard(person.scim_id)

    def login(self, name: str) -> None:
        """A token of the issuer logs in, if the directory knows exactly this name as active."""
        person = self._person(name)
        if person is None and name.lower() not in self.deleted:
            return
        may = person is not None and person.active and person.name == name + self.end
        try:
            assert users.ensure(name + self.end).is_active
            did = True
        except errors.PermissionDenied:
            did = False
        assert did == may

    def create_group(self, name: str, gives_rights: bool, some: list[str]) -> None:
        ids = self._ids(some)
        body = {
            "displayName": name + self.end,
            "members": [{"value": member_id} for member_id in ids],
            **({"externalId": "writers"} if gives_rights else {}),
        }
        answer = self.directory.ask("POST", "Groups", body)
        assert answer.status == (409 if name.lower() in self.groups else 201)
        if answer.status == 201:
            group = Group(answer.body["id"], name + self.end, gives_rights=gives_rights)
            group.members = set(ids)
            self.groups[name.lower()] = group

    def _patch(self, name: str, *operations: dict[str, Any]) -> Group | None:
        group = self.groups.get(name.lower())
        if group is not None and operations:
            assert self.directory.patch(f"Groups/{group.group_id}", *operations).status == 204
        return group

    def add(self, name: str, some: list[str]) -> None:
        ids = self._ids(some)
        value = [{"value": member_id} for member_id in ids]
        group = self._patch(name, {"op": "Add", "path": "members", "value": value})
        if group is not None:
            group.members |= set(ids)

    def remove(self, name: str, some: list[str], in_brackets: bool) -> None:
        ids = self._ids(some)
        operations: list[dict[str, Any]] = [
            {"op": "remove", "path": f'members[value eq "{member_id}"]'} for member_id in ids
        ]
        if not in_brackets:
            value = [{"value": member_id} for member_id in ids]
            operations = [{"op": "Remove", "path": "members", "value": value}]
        group = self._patch(name, *operations)
        if group is not None:
            group.members -= set(ids)

    def set(self, name: str, some: list[str]) -> None:
        ids = self._ids(some)
        value = [{"value": member_id} for member_id in ids]
        group = self._patch(name, {"op": "replace", "path": "members", "value": value})
        if group is not None:
            group.members = set(ids)

    def rename(self, name: str, new: str) -> None:
        group = self.groups.get(name.lower())
        if group is None:
            return
        holder = self.groups.get(new.lower())
        operation = {"op": "replace", "path": "displayName", "value": new + self.end}
        answer = self.directory.patch(f"Groups/{group.group_id}", operation)
        assert answer.status == (204 if holder in (None, group) else 409)
        if answer.status == 204:
            group.name = new + self.end
            del self.groups[name.lower()]
            self.groups[new.lower()] = group

    def point(self, name: str, gives_rights: bool) -> None:
        """Gives a group the external id of the rule, or takes it away."""
        operation: dict[str, Any] = {"op": "remove", "path": "externalId"}
        if gives_rights:
            operation = {"op": "add", "path": "externalId", "value": "writers"}
        group = self._patch(name, operation)
        if group is not None:
            group.gives_rights = gives_rights

    def delete_group(self, name: str) -> None:
        group = self.groups.pop(name.lower(), None)
        if group is not None:
            path = f"Groups/{group.group_id}"
            assert [self.directory.ask("DELETE", path).status for _ in range(2)] == [204, 404]

    def compare(self) -> None:
        """Compares everything that can be read, and the rights."""
        for lower in {name.lower() for name in NAMES}:
            person = self.people.get(lower)
            answered = self.directory.find(f'userName eq "{lower}{self.end}"')
            if person is None:
                assert answered == []
                continue
            (resource,) = answered
            assert resource == self.directory.get(person.scim_id)
            shown = [entry["value"] for entry in resource.get("emails", ())]
            assert Person(resource["id"], resource["userName"], resource["active"], shown) == person
            for address in ("a@x.example", "b@x.example"):
                condition = f'emails.value eq "{address}" and userName eq "{person.name}"'
                has_it = address in map(str.lower, person.emails)
                assert bool(self.directory.find(condition)) == has_it
            rights = Access(person.name, False, "default")
            writes = any(
                group.gives_rights and person.scim_id in group.members
                for group in self.groups.values()
            )
            assert rights.allows(Requirement(EXPERIMENT, "7", "update")) == writes
            held = self.directory.find(f'members.value eq "{person.scim_id}"', "Groups")
            assert {group["displayName"] for group in held} == {
                group.name for group in self.groups.values() if person.scim_id in group.members
            }
        for lower in {name.lower() for name in GROUPS}:
            group = self.groups.get(lower)
            answered = self.directory.find(f'displayName eq "{lower}{self.end}"', "Groups")
            if group is None:
                assert answered == []
                continue
            (resource,) = answered
            assert (resource["id"], resource["displayName"]) == (group.group_id, group.name)
            assert {member["value"] for member in resource.get("members", ())} == group.members


@pytest.fixture(scope="module", autouse=True)
def rules(shared_store: Store) -> None:
    users.create("admin", "", is_admin=True)
    stored_settings.put("sign_in_roles", RULES)


@examples(25)
@given(program=st.lists(steps, max_size=25))
def test_any_program_equals_its_model(shared_store: Store, program: list[Any]) -> None:
    run = Program()
    for name, *arguments in program:
        getattr(run, name)(*arguments)
    run.compare()
