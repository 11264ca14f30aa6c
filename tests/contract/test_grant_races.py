"""Rights, if somebody else writes between a request's reads and its writes."""

from __future__ import annotations

import itertools
import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from mlcore.auth.permissions import REGISTERED_MODEL, Grant
from mlcore.entities.users import Account, User
from mlcore.limits.sign_in import ROLES
from mlcore.policies import remaining_grants
from mlcore.repos.registry import registered_models
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import claim_roles, grants, roles, scim_groups, sign_in_accounts, users
from tests.contract.api import Answer
from tests.contract.conftest import Store
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.logins import Logins, named
from tests.contract.scim_world import Directory

if TYPE_CHECKING:
    from mlcore.policies.access import Access

_NUMBERS = itertools.count()
MODELS: Final = "2.0/mlflow/registered-models"


def _user(name: str) -> User:
    return users.create(f"{name}-{next(_NUMBERS)}", "", is_admin=False)


def _level(user: User, name: str) -> str | None:
    grant = grants.find(user, "default", REGISTERED_MODEL, name)
    listed = user.username in grants.holders("default", REGISTERED_MODEL, name)
    assert listed is (grant is not None)
    return None if grant is None else grant.permission


@pytest.mark.parametrize("what", ["rename", "delete"])
def test_a_name_that_somebody_takes_at_once_keeps_its_new_owner(store: Store, what: str) -> None:
    """Whoever takes the old name of a model gets no right on the renamed model, and keeps those on
    the new one."""
    logins = Logins()
    people: list[tuple[User, User, User, str]] = []

    def prepare() -> tuple[Act, Act]:
        owner, guest, taker = _user("owner"), _user("guest"), _user("taker")
        name = f"model of {owner.username}"
        people.append((owner, guest, taker, name))
        asked = partial(logins.ask, named(owner.username))
        assert asked("POST", f"{MODELS}/create", name=name).status == 200
        grants.create(guest, "default", Grant(REGISTERED_MODEL, name, "EDIT"))
        fields: dict[str, Any] = {"name": name}
        if what == "rename":
            fields["new_name"] = f"{name} new"
        method = "DELETE" if what == "delete" else "POST"
        taking = partial(logins.ask, named(taker.username), "POST", f"{MODELS}/create", name=name)
        return partial(asked, method, f"{MODELS}/{what}", **fields), taking

    taken = 0
    answers: list[Answer]
    for answers in meetings(prepare):
        owner, guest, taker, name = people[-1]
        assert answers[0].status == 200
        is_taken = answers[1].status == 200
        taken += is_taken
        assert (registered_models.find("default", name) is not None) is is_taken
        assert _level(taker, name) == ("MANAGE" if is_taken else None)
        assert _level(taker, f"{name} new") is None
        assert _level(owner, name) is _level(guest, name) is None
        if what == "rename":
            assert (_level(owner, f"{name} new"), _level(guest, f"{name} new")) == (
                "MANAGE",
                "EDIT",
            )
    assert taken > 1


def test_grants_that_were_left_over_go_without_those_of_the_next_model(store: Store) -> None:
    """A rename moves more grants than its transaction takes although the name is taken again."""
    guest, taker, access = _user("guest"), _user("taker"), SimpleNamespace(workspace="default")
    grants.create(guest, "default", Grant(REGISTERED_MODEL, "taken", "EDIT"))
    time.sleep(0.002)  # grants and models have times in milliseconds
    made = Logins().ask(named(taker.username), "POST", f"{MODELS}/create", name="taken")
    assert made.status == 200
    renamed = SimpleNamespace(name="taken", new_name="went")
    remaining_grants.model_renamed(cast("Access", access), renamed, {})
    assert (_level(guest, "taken"), _level(guest, "went")) == (None, "EDIT")
    assert (_level(taker, "taken"), _level(taker, "went")) == ("MANAGE", None)


def test_sign_ins_at_the_same_moment_leave_no_role_unrecorded(store: Store) -> None:
    """Two sign-ins of an account with different groups: the user holds exactly what is recorded, so
    the next sign-in can take it away."""
    account = Account("https://issuer", "subject")
    made = [roles.create(f"role {nth}", "default", None).role_id for nth in range(2)]
    names: list[str] = []

    def sign_in(name: str, role_id: int) -> None:
        sign_in_accounts.apply(users.get_profile(name), account, [role_id])

    def prepare() -> tuple[Act, Act]:
        names.append(_user("twice").username)
        return partial(sign_in, names[-1], made[0]), partial(sign_in, names[-1], made[1])

    for answers in meetings(prepare):
        assert answers == [None, None]
        profile = users.get_profile(names[-1])
        recorded = sign_in_accounts.find(profile.user)
        assert recorded is not None
        assert set(profile.role_ids) == recorded.role_ids
        assert len(recorded.role_ids) == 1
        sign_in_accounts.apply(profile, account, [])
        assert users.get_profile(names[-1]).role_ids == ()


@pytest.mark.parametrize("what", ["create", "update", "apply"])
def test_no_group_keeps_a_role_that_no_rule_gives(store: Store, what: str) -> None:
    """A group is created, renamed or given its roles while the rule that gives them is removed."""
    role = roles.create("given", "default", None)
    rule = {"claim": "displayName", "issuer": "scim", "role": "given"}
    directory = Directory()
    names: list[str] = []

    def remove() -> None:
        stored_settings.delete(ROLES)
        claim_roles.apply_to_groups()

    def prepare() -> tuple[Act, Act]:
        name = f"group {next(_NUMBERS)}"
        names.append(name)
        stored_settings.put(ROLES, [{**rule, "value": name}])
        if what == "create":
            return partial(directory.create_group, name), remove
        group = directory.create_group("other" if what == "update" else name)
        if what == "apply":
            scim_groups.set_roles(group["id"], ())
            return claim_roles.apply_to_groups, remove
        renamed = {"op": "replace", "path": "displayName", "value": name}
        return partial(directory.patch, f"Groups/{group['id']}", renamed), remove

    for answers in meetings(prepare):
        assert not any(isinstance(answer, Exception) for answer in answers)
        group = scim_groups.find_named(names[-1])
        assert group is not None
        assert group.role_ids == ()
        stored_settings.put(ROLES, [{**rule, "value": names[-1]}])
        claim_roles.apply_to_groups()
        assert [found.role_ids for found in scim_groups.find_all()] == [(role.role_id,)]
        scim_groups.delete(group)
