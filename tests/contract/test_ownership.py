"""Who makes something manages it from the first moment on, and grants go where their model goes,
however a request ends."""

from __future__ import annotations

import itertools

import pytest

from mlcore.auth.permissions import ANY, EXPERIMENT, REGISTERED_MODEL, WORKSPACE, Grant
from mlcore.db import capacity
from mlcore.entities.users import User
from mlcore.repos.experiments import experiments
from mlcore.repos.registry import registered_models
from mlcore.repos.users import grants, users
from tests.contract.api import Api
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.kubeflow_api import KubeflowApi
from tests.contract.logins import Logins, named
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

NUMBERS = itertools.count()
MODELS = "2.0/mlflow/registered-models"
ENDS = (Fault.DEAD, Fault.DEAD_AFTER, Fault.ANSWER_LOST)
FAULTS = pytest.mark.parametrize("fault", ENDS, ids=lambda fault: fault.name)


def _user() -> User:
    return users.create(f"owner-{next(NUMBERS)}", "", is_admin=False)


def _level(
    user: User, resource_type: str, resource_id: str, workspace: str = "default"
) -> str | None:
    """What the user was granted; the list of those who hold grants must say the same."""
    grant = grants.find(user, workspace, resource_type, resource_id)
    listed = user.username in grants.holders(workspace, resource_type, resource_id)
    assert listed is (grant is not None)
    return None if grant is None else grant.permission


@FAULTS
def test_what_exists_is_managed_by_its_creator(broken: tuple[Api, Doubles], fault: Fault) -> None:
    _, doubles = broken
    logins = Logins()
    for nth in itertools.count(1):
        user = _user()
        name = f"made by {user.username}"
        doubles.faulty.arm(fault, nth)
        made = logins.ask(named(user.username), "POST", "2.0/mlflow/experiments/create", name=name)
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        experiment = experiments.find_by_name("default", name)
        assert experiment is not None or made.status != 200
        if experiment is not None:
            assert _level(user, EXPERIMENT, experiment.experiment_id) == "MANAGE", (nth, made)
        if not fired:
            break


def _ask(logins: Logins, user: User, what: str, name: str, new_name: str) -> int:
    fields = {"name": name} | ({"new_name": new_name} if what == "rename" else {})
    method = "DELETE" if what == "delete" else "POST"
    return logins.ask(named(user.username), method, f"{MODELS}/{what}", **fields).status


@FAULTS
def test_grants_go_with_their_model(broken: tuple[Api, Doubles], fault: Fault) -> None:
    """Made, renamed and deleted with a fault at each call: there are grants on a name exactly as
    long as it has a model."""
    _, doubles = broken
    logins = Logins()
    for step in ("create", "rename", "delete"):
        for nth in itertools.count(1):
            owner, guest = _user(), _user()
            old, new = f"old of {owner.username}", f"new of {owner.username}"
            if step != "create":
                assert _ask(logins, owner, "create", old, new) == 200
                grants.create(guest, "default", Grant(REGISTERED_MODEL, old, "EDIT"))
            doubles.faulty.arm(fault, nth)
            status = _ask(logins, owner, step, old, new)
            fired = doubles.faulty.fired
            doubles.faulty.heal()
            there = {name for name in (old, new) if registered_models.find("default", name)}
            if status == 200:
                assert there == {"create": {old}, "rename": {new}, "delete": set()}[step]
            for name in (old, new):
                held = name in there
                assert _level(owner, REGISTERED_MODEL, name) == ("MANAGE" if held else None)
                expected = "EDIT" if held and step != "create" else None
                assert _level(guest, REGISTERED_MODEL, name) == expected
            if not fired:
                break


@pytest.mark.parametrize("workspace", ["default", "team"])
def test_more_holders_than_a_transaction_takes(
    store: Store, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a workspace, and with a number in Kubeflow, a rename writes more items beside them."""
    enable_workspaces(monkeypatch, *{workspace} - {"default"})
    owner, logins = _user(), Logins(workspace=workspace)
    guests = [_user() for _ in range(60)]
    caller = named(owner.username)
    grants.create(owner, workspace, Grant(WORKSPACE, ANY, "USE"))
    assert logins.ask(caller, "POST", f"{MODELS}/create", name="shared").status == 200
    KubeflowApi(workspace=workspace).items("registered_models")
    for guest in guests:
        grants.create(guest, workspace, Grant(REGISTERED_MODEL, "shared", "EDIT"))
    renamed = logins.ask(caller, "POST", f"{MODELS}/rename", name="shared", new_name="other")
    assert renamed.status == 200

    def levels(name: str, *users: User) -> set[str | None]:
        return {_level(user, REGISTERED_MODEL, name, workspace) for user in users}

    assert levels("other", *guests) == {"EDIT"}
    assert levels("shared", *guests) == {None}
    assert levels("other", owner) == {"MANAGE"}
    assert logins.ask(caller, "DELETE", f"{MODELS}/delete", name="other").status == 200
    assert levels("other", owner, *guests) == {None}


def test_a_model_that_cannot_have_the_name_gives_nothing_away(store: Store) -> None:
    first_user, other, logins = _user(), _user(), Logins()
    for user, name in ((first_user, "first"), (other, "second")):
        made = logins.ask(named(user.username), "POST", f"{MODELS}/create", name=name)
        assert made.status == 200
    taken = logins.ask(
        named(first_user.username), "POST", f"{MODELS}/rename", name="first", new_name="second"
    )
    assert taken.code == "RESOURCE_ALREADY_EXISTS"
    again = logins.ask(named(first_user.username), "POST", f"{MODELS}/create", name="second")
    assert again.code == "RESOURCE_ALREADY_EXISTS"
    assert _level(first_user, REGISTERED_MODEL, "second") is None
    assert _level(first_user, REGISTERED_MODEL, "first") == "MANAGE"
    assert _level(other, REGISTERED_MODEL, "second") == "MANAGE"


def test_what_an_administrator_made_before_costs_nothing(store: Store) -> None:
    """Nobody asks what an administrator may, so nobody reads all that one was granted."""
    user, logins = users.create("maker", "", is_admin=True), Logins()
    caller = named(user.username, is_admin=True)
    costs = []
    for name in ("first", "second", "after many others"):
        made = logins.ask(caller, "POST", "2.0/mlflow/experiments/create", name=name)
        assert made.status == 200
        cost = capacity.last_measurement()
        assert cost is not None
        costs.append((cost.round_trips, cost.read_units, cost.write_units))
        if name == "second":
            for number in range(60):
                grants.put(user, "default", Grant(EXPERIMENT, f"{number} {'x' * 200}", "MANAGE"))
    assert costs[2] == costs[1]
