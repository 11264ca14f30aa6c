"""Grants on what is found by its name: wherever the process that deletes it is killed, none is left
for a later one of the name, once the request was repeated."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import evaluation.app
import indexer.app
import mcp_servers.app
import registry.app
import skills.app
from mlcore.auth.permissions import (
    MCP_SERVER,
    REGISTERED_MODEL,
    SCORER,
    SKILL,
    Grant,
    scorer_pattern,
)
from mlcore.http.handler import Handler
from mlcore.repos.evaluation import scorers
from mlcore.repos.kubeflow import models as kubeflow_models
from mlcore.repos.registry import registered_models
from mlcore.repos.users import grants, users
from tests.contract.api import Api
from tests.contract.conftest import Store
from tests.contract.logged_runs import killed_at
from tests.contract.logins import called_as, named
from tests.contract.streams import following
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

GUESTS = 5
TOGETHER = 2
"""Grants that one transaction deletes in these tests, so that five are many."""
GONE = (200, 403, 404)
Fields = dict[str, Any]


class Kind(NamedTuple):
    resource_type: str
    handler: Handler
    creations: tuple[tuple[str, Callable[[str, str], Fields]], ...]
    """Paths and fields, from (experiment id, name)."""
    deletion: tuple[str, Callable[[str, str], Fields]]
    """A path in which ``{name}`` stands for the name."""


def _scorer(experiment_id: str, name: str) -> Fields:
    return {"experiment_id": experiment_id, "name": name, "serialized_scorer": "{}"}


def _name(_: str, name: str) -> Fields:
    return {"name": name}


KINDS = {
    "scorer": Kind(
        SCORER,
        evaluation.app.handler,
        (("3.0/mlflow/scorers/register", _scorer),) * 3,
        (
            "3.0/mlflow/scorers/delete",
            lambda experiment_id, name: {"experiment_id": experiment_id, "name": name},
        ),
    ),
    "model": Kind(
        REGISTERED_MODEL,
        registry.app.handler,
        (("2.0/mlflow/registered-models/create", _name),),
        ("2.0/mlflow/registered-models/delete", _name),
    ),
    "skill": Kind(
        SKILL,
        skills.app.handler,
        (("3.0/mlflow/skills", _name),),
        ("3.0/mlflow/skills/{name}", lambda _experiment, _name: {}),
    ),
    "MCP server": Kind(
        MCP_SERVER,
        mcp_servers.app.handler,
        (("3.0/mlflow/mcp-servers", _name),),
        ("3.0/mlflow/mcp-servers/{name}", lambda _experiment, _name: {}),
    ),
}


def _ask(kind: Kind, method: str, path: str, fields: Fields) -> tuple[int, str]:
    return called_as(named("owner"), kind.handler, method, f"/api/{path}", json.dumps(fields))


@pytest.mark.parametrize("fault", [Fault.DEAD, Fault.DEAD_AFTER], ids=lambda fault: fault.name)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_killed_deletion_leaves_no_grant(
    broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch, kind: Kind, fault: Fault
) -> None:
    api, doubles = broken
    monkeypatch.setattr(grants, "GRANTS_AT_ONCE", TOGETHER)
    owner = users.create("owner", "", is_admin=False)
    guests = [users.create(f"guest {number}", "", is_admin=False) for number in range(GUESTS)]
    experiment_id = api.post("experiments/create", name="of all")["experiment_id"]
    grants.put(owner, "default", Grant("experiment", experiment_id, "EDIT"))
    for nth in itertools.count(1):
        name = f"of/n{nth}" if kind.resource_type == MCP_SERVER else f"n{nth}"
        for path, fields in kind.creations:
            made = _ask(kind, "POST", path, fields(experiment_id, name))
            assert made[0] in (200, 201), made
        resource_id = scorer_pattern(experiment_id, name) if kind.resource_type == SCORER else name
        for guest in guests:
            grants.create(guest, "default", Grant(kind.resource_type, resource_id, "EDIT"))
        path, fields = kind.deletion
        request = (path.format(name=name), fields(experiment_id, name))
        doubles.faulty.arm(fault, nth)
        status, _ = _ask(kind, "DELETE", *request)
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        if fired:
            assert status in (*GONE, 429, 503), status
            status, _ = _ask(kind, "DELETE", *request)
        assert status in GONE
        assert grants.holders("default", kind.resource_type, resource_id) == []
        if not fired:
            assert status == 200
            break


def test_a_model_that_kubeflow_deletes_leaves_no_grant(broken: tuple[Api, Doubles]) -> None:
    """Nor one that expires: neither has a request after which others are deleted."""
    api, _ = broken
    api.post("registered-models/create", name="m")
    for number in range(grants.GRANTS_AT_ONCE + 2):
        guest = users.create(f"guest {number}", "", is_admin=False)
        grants.create(guest, "default", Grant(REGISTERED_MODEL, "m", "EDIT"))
    model = registered_models.get("default", "m")
    leaving = grants.leaving_operations("default", grants.MODEL_TYPES, "m")
    kubeflow_models.delete(model, leaving)
    assert grants.holders("default", REGISTERED_MODEL, "m") == []


@pytest.mark.parametrize("taken", [False, True])
def test_grants_follow_a_model_whose_rename_is_killed(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, taken: bool
) -> None:
    """By the indexer, also if the model is renamed again or another model takes the name at once.
    A later model of the name has the grants of its own owner only."""
    monkeypatch.setattr(grants, "GRANTS_AT_ONCE", TOGETHER)
    for username in ("owner", "taker"):
        users.create(username, "", is_admin=False)
    guests = [users.create(f"guest {number}", "", is_admin=False) for number in range(GUESTS)]
    everybody = sorted(["owner", *(guest.username for guest in guests)])
    model, where = KINDS["model"], "2.0/mlflow/registered-models"
    with following(store) as stream:
        for nth in itertools.count():
            name, new_name, last_name = f"old {nth}", f"new {nth}", f"last {nth}"
            assert _ask(model, "POST", f"{where}/create", {"name": name})[0] == 200
            for guest in guests:
                grants.create(guest, "default", Grant(REGISTERED_MODEL, name, "EDIT"))
            with killed_at(nth, []) as arrived:
                _ask(model, "POST", f"{where}/rename", {"name": name, "new_name": new_name})
            is_renamed = registered_models.find("default", name) is None
            if is_renamed and taken:
                time.sleep(0.002)  # grants and models have times in milliseconds
                fields = json.dumps({"name": name})
                made = called_as(
                    named("taker"), model.handler, "POST", f"/api/{where}/create", fields
                )
                assert made[0] == 200
                store.api.post("registered-models/rename", name=new_name, new_name=last_name)
            assert indexer.app.index(stream.fresh()) is None
            held = last_name if taken else new_name
            after = (name, held) if is_renamed else (held, name)
            left, moved = (
                sorted(grants.holders("default", REGISTERED_MODEL, each)) for each in after
            )
            assert moved == everybody, (nth, arrived)
            assert left == (["taker"] if is_renamed and taken else []), (nth, arrived)
            if len(arrived) < nth:
                break


def test_grants_for_a_later_model_of_a_former_name_stay(store: Store) -> None:
    """An administrator gives them before the model is made, and before the indexer gets the record
    of the rename."""
    guest = users.create("guest", "", is_admin=False)
    with following(store) as stream:
        store.api.post("registered-models/create", name="old")
        store.api.post("registered-models/rename", name="old", new_name="new")
        time.sleep(0.002)  # grants and models have times in milliseconds
        grants.create(guest, "default", Grant(REGISTERED_MODEL, "old", "MANAGE"))
        assert indexer.app.index(stream.fresh()) is None
    assert grants.holders("default", REGISTERED_MODEL, "old") == ["guest"]
    assert grants.holders("default", REGISTERED_MODEL, "new") == []


@pytest.mark.parametrize("fault", [Fault.DEAD, Fault.DEAD_AFTER], ids=lambda fault: fault.name)
def test_a_scorer_that_is_left_is_found_by_its_id(
    broken: tuple[Api, Doubles], fault: Fault
) -> None:
    """As guardrails find it; it keeps its latest version, whose number is not given again."""
    api, doubles = broken
    owner = users.create("owner", "", is_admin=False)
    experiment_id = api.post("experiments/create", name="of all")["experiment_id"]
    grants.put(owner, "default", Grant("experiment", experiment_id, "EDIT"))
    kind = KINDS["scorer"]
    (path, fields), *_ = kind.creations
    for nth in itertools.count(1):
        made = [_ask(kind, "POST", path, fields(experiment_id, f"n{nth}")) for _ in range(3)]
        scorer_id = json.loads(made[0][1])["scorer_id"]
        doubles.faulty.arm(fault, nth)
        _ask(kind, "DELETE", kind.deletion[0], kind.deletion[1](experiment_id, f"n{nth}"))
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        query = f"experiment_id={experiment_id}&name=n{nth}"
        status, _ = called_as(
            named("owner"), kind.handler, "GET", "/api/3.0/mlflow/scorers/versions", query
        )
        left = [version.version for version in scorers.with_id(scorer_id, "default")]
        assert left[-1:] == ([3] if status == 200 else []), (nth, left)
        if not fired:
            assert not left
            break
