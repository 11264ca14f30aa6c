"""``local.admin rights`` says what the routes do, and names the grants that decide it."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlcore.auth.permissions import Grant
from mlcore.repos.users import api_keys, grants, roles, users
from operate.module_loading import CannotRun
from operate.rights import command
from operate.rights.resources import resource_named
from operate.rights.verdicts import verdicts
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.logins import ADMIN, Logins, named

ADA = named("ada")
LEVELS = ("READ", "USE", "EDIT", "MANAGE", "DENY")
TYPES = ("experiment", "run", "registered_model", "registered_model_version", "trace")


@pytest.fixture
def logins(store: Store) -> Logins:
    users.create("ada", "", is_admin=False)
    users.create("admin", "", is_admin=True)
    made = Logins()
    for path, fields in (
        ("2.0/mlflow/experiments/create", {"name": "e"}),
        ("2.0/mlflow/registered-models/create", {"name": "churn"}),
        ("2.0/mlflow/registered-models/create", {"name": "other"}),
    ):
        assert made.ask(ADMIN, "POST", path, **fields).status == 200
    return made


def lines(capsys: Any, *arguments: str | None) -> list[str]:
    user, on = arguments
    assert command.run(argparse.Namespace(user=user, on=on, workspace="default")) == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def held() -> st.SearchStrategy[list[tuple[str, str, str, bool]]]:
    """Type, pattern, level, and whether through a role."""
    patterns = st.sampled_from(("*", "1", "churn", "other"))
    held_grant = st.tuples(st.sampled_from(TYPES), patterns, st.sampled_from(LEVELS), st.booleans())
    return st.lists(held_grant, max_size=5, unique_by=lambda grant: (grant[0], grant[1], grant[3]))


def test_answers_are_those_of_the_routes(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = users.get("ada")
    role = roles.create("scientists", "default", None)
    roles.assign(ada, role.role_id)
    update = "2.0/mlflow/{}/set-{}tag"
    calls = {
        ("experiment:1", "read"): ("GET", "2.0/mlflow/experiments/get", {"experiment_id": "1"}),
        ("experiment:1", "update"): (
            "POST",
            update.format("experiments", "experiment-"),
            {"experiment_id": "1", "key": "k", "value": "v"},
        ),
        ("model:churn", "read"): ("GET", "2.0/mlflow/registered-models/get", {"name": "churn"}),
        ("model:churn", "update"): (
            "POST",
            update.format("registered-models", ""),
            {"name": "churn", "key": "k", "value": "v"},
        ),
        ("model:churn", "manage"): (
            "POST",
            "2.0/mlflow/registered-models/permissions/create",
            {"name": "churn", "username": "nobody", "permission": "READ"},
        ),
    }

    @settings(
        max_examples=60 * EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(held(), st.sampled_from(("READ", "NO_PERMISSIONS", "EDIT")))
    def answers_agree(given_grants: Any, default: str) -> None:
        monkeypatch.setenv("DEFAULT_PERMISSION", default)
        profile = users.get_profile("ada")
        for held_grant in profile.grants:
            grants.delete(ada, held_grant.workspace, held_grant.grant[0], held_grant.grant[1])
        for held_by_role in roles.get(role.role_id).permissions:
            roles.replace_permission(held_by_role.permission_id, None)
        for resource_type, pattern, level, by_role in given_grants:
            grant = Grant(resource_type, pattern, level)
            if by_role:
                roles.add_permission(role.role_id, grant)
            else:
                grants.put(ada, "default", grant)
        profile = users.get_profile("ada")
        for (on, action), (method, path, fields) in calls.items():
            verdict = verdicts(
                profile, [roles.get(role.role_id)], resource_named(on, "default"), "default"
            )[action]
            status = logins.ask(ADA, method, path, **fields).status
            assert verdict.may is (status != 403), (on, action, verdict, status)
            assert verdict.reason

    answers_agree()


def test_reasons(logins: Logins, capsys: Any) -> None:
    ada = users.get("ada")
    role = roles.create("scientists", "default", None)
    roles.add_permission(role.role_id, Grant("registered_model", "*", "EDIT"))
    roles.assign(ada, role.role_id)
    assert lines(capsys, "ada", "model:churn")[1:4] == [
        "REGISTERED_MODEL CHURN READ UPDATE DELETE MANAGE BECAUSE",
        "ada yes yes no no EDIT on registered_model * (role scientists)",
        "Without a grant: READ (DEFAULT_PERMISSION of this command's environment).",
    ]
    grants.put(ada, "default", Grant("registered_model", "churn", "DENY"))
    assert "ada no no no no DENY on registered_model churn (own grant)" in lines(
        capsys, "ada", "model:churn"
    )
    everybody = lines(capsys, None, "model:other")
    assert "admin yes yes yes yes is an administrator" in everybody
    assert "ada yes yes no no EDIT on registered_model * (role scientists)" in everybody
    assert "ada yes no no no no grant on experiment 1: READ" in lines(capsys, None, "experiment:1")


def test_rights_of_a_user(logins: Logins, capsys: Any) -> None:
    ada = users.get("ada")
    grants.put(ada, "default", Grant("experiment", "1", "MANAGE"))
    made = api_keys.create(ada, "nightly\nforged row", "default", ("read",), None)
    shown = lines(capsys, "ada", None)
    assert "default MANAGE experiment 1 own grant" in shown
    assert f"{made.key.key_id} nightly\\nforged row default read" in shown
    assert made.token not in "\n".join(shown)
    assert "no password" in shown[1]


@pytest.mark.parametrize(
    ("user", "on"),
    [
        *((None, None), ("nobody", None), ("ada", "model:none"), (None, "experiment:99")),
        *((None, "model"), (None, "x:y"), (None, "run:none"), (None, "gateway:none")),
    ],
)
def test_what_cannot_be_explained(logins: Logins, user: str | None, on: str | None) -> None:
    with pytest.raises(CannotRun):
        command.run(argparse.Namespace(user=user, on=on, workspace="default"))
