"""A person whom a directory provisioned is erased with what the directory said."""

from __future__ import annotations

from mlcore.entities.scim import scim_id_of
from mlcore.repos.users import users
from operate.erasure import items
from tests.contract.conftest import Store
from tests.contract.scim_world import Directory


def test_nothing_of_the_directory_is_left(store: Store) -> None:
    users.create("admin", "", is_admin=True)
    directory = Directory()
    emails = [{"value": "ada@example.org"}]
    ada = directory.create("Ada", externalId="7", emails=emails, displayName="Ada L.")["id"]
    bob = directory.create("bob", externalId="8")["id"]
    group = directory.create_group("Scientists", ada, bob)
    assert ada == scim_id_of(users.get("Ada").user_id, "Ada")
    for item in list(items.find("Ada")):
        if item.kind == "delete":
            items.erase(item, "Ada", "person-1")
    left = str(store.items())
    for trace in (ada, "Ada", "ada@example.org"):
        assert trace not in left
    members = directory.ask("GET", f"Groups/{group['id']}").body["members"]
    assert [member["value"] for member in members] == [bob]
    assert directory.find('externalId eq "8"')
