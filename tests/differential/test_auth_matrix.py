"""Who may call which route: the product decides as stock's basic-auth app does."""

from __future__ import annotations

import pytest

from tests.differential.auth_calls import NEW, SCENES, Scene, calls
from tests.differential.auth_links import HIDDEN, linked_reads, linked_things
from tests.differential.rest import Call, Reply, Side, get, post
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e]
PASSWORD = "password-of-some-length"
LEVELS = ("READ", "USE", "EDIT", "MANAGE", "DENY")
REFUSED = {401, 403}


def _as(side: Side, login: tuple[str, str] | None, call: Call) -> Reply:
    side.login = login
    return side.send(call)


def _prepared(side: Side, scene: Scene) -> tuple[str, str] | None:
    """Makes the user and what the scene is about, and grants what the scene grants."""
    login = (scene.user, PASSWORD)
    if scene.level != "anonymous":
        made = _as(
            side, ADMIN, post("users/create", {"username": scene.user, "password": PASSWORD})
        )
        assert made.status == 200, made
    owner = login if scene.own else ADMIN
    for call in NEW(scene):
        made = _as(side, owner, call)
        assert made.status == 200, (call, made)
    if scene.level == "admin":
        promoted = Call(
            "PATCH",
            "/api/2.0/mlflow/users/update-admin",
            {"username": scene.user, "is_admin": True},
        )
        assert _as(side, ADMIN, promoted).status == 200
    if scene.level in LEVELS:
        for call in scene.grants():
            assert _as(side, ADMIN, call).status == 200
    return None if scene.level == "anonymous" else login


def _decision(reply: Reply) -> object:
    """A refusal word for word; of what was let through only that."""
    return (reply.status, reply.body) if reply.status in REFUSED else "allowed"


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_decides_as_stock_does(guarded: list[Side], scene: Scene) -> None:
    logins = [_prepared(side, scene) for side in guarded]
    differences = []
    for call in calls(scene):
        replies = [_as(side, login, call) for side, login in zip(guarded, logins, strict=True)]
        if _decision(replies[0]) != _decision(replies[1]):
            differences.append((str(call), *(str(reply)[:300] for reply in replies)))
    assert differences == []


def _paths(value: object, at: str = "") -> set[str]:
    """Where an answer has something; a pair is named by its key."""
    results: set[str] = set()
    if isinstance(value, dict):
        for name, inner in value.items():
            results |= {f"{at}.{name}"} | _paths(inner, f"{at}.{name}")
    elif isinstance(value, list):
        for item in value:
            key = item.get("key") if isinstance(item, dict) else None
            results |= _paths(item, at if key is None else f"{at}[{key}]")
    return results


@pytest.mark.parametrize("tier", HIDDEN)
def test_hides_what_is_denied_as_stock_does(guarded: list[Side], tier: str) -> None:
    """What an answer loses, compared with that to an administrator, is the same."""
    login = (f"without-{tier}", PASSWORD)
    lost: list[dict[str, list[str]]] = []
    for side in guarded:
        user = post("users/create", {"username": login[0], "password": PASSWORD})
        grant = {
            "username": login[0],
            "resource_type": tier,
            "resource_id": "*",
            "permission": "DENY",
        }
        granted = Call("POST", "/api/3.0/mlflow/users/permissions/grant", grant)
        for call in (user, *linked_things(tier), granted):
            made = _as(side, ADMIN, call)
            assert made.status == 200, (call, made)
        results = {}
        for call in linked_reads(tier):
            full, shown = _as(side, ADMIN, call), _as(side, login, call)
            assert full.status == 200, (call, full)
            results[str(call)] = sorted(_paths(full.body) - _paths(shown.body))
        lost.append(results)
    assert lost[1] == lost[0]
    assert any(lost[0].values())


def test_lists_hold_what_may_be_read(guarded: list[Side]) -> None:
    """Searches leave out what is denied, and nothing else."""
    login = ("reader", PASSWORD)
    for side in guarded:
        _as(side, ADMIN, post("users/create", {"username": "reader", "password": PASSWORD}))
        for number in range(6):
            name = f"listed-{number}"
            saves = {name: "experiment_id"}
            made = _as(side, ADMIN, post("experiments/create", {"name": name}, saves=saves))
            assert made.status == 200
        for number in (1, 4):
            grant = {
                "username": "reader",
                "resource_type": "experiment",
                "resource_id": side.values[f"listed-{number}"],
                "permission": "DENY",
            }
            call = Call("POST", "/api/3.0/mlflow/users/permissions/grant", grant)
            assert _as(side, ADMIN, call).status == 200
    shown = [
        [
            experiment["name"]
            for experiment in _as(
                side,
                login,
                get("experiments/search", max_results=1000, filter="name LIKE 'listed-%'"),
            ).body["experiments"]
        ]
        for side in guarded
    ]
    assert shown[0] == shown[1] == ["listed-5", "listed-3", "listed-2", "listed-0"]
