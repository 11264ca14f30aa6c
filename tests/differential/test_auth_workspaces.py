"""Who may call what where there are workspaces, as stock's basic-auth app decides it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.differential.auth_calls import NEW, V3, calls
from tests.differential.rest import Call, Ref, Reply, Side, get, post
from tests.differential.servers import stock_or_recording
from tests.servers import ADMIN, Server, start_product, start_stock_with_login, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PASSWORD = "password-of-some-length"
REFUSED = {401, 403}


class Member(NamedTuple):
    """Somebody who calls in the workspace ``team``, and what was granted to them before.

    ``role`` is one that a new workspace has, ``where`` in which one; ``level`` is granted on the
    experiment and the model alone, ``everywhere`` on all of the workspace by a role of their own.
    """

    name: str
    role: str = ""
    where: str = "team"
    level: str = ""
    everywhere: str = ""
    own: bool = False
    tier: str = ""

    @property
    def user(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


ALL_MEMBERS = (
    Member("nobody"),
    Member("user", role="user"),
    Member("maker", role="user", own=True),
    Member("manager", role="admin"),
    Member("manager-elsewhere", role="admin", where="other"),
    Member("reader", level="READ"),
    Member("editor", level="EDIT"),
    Member("denied", role="user", level="DENY"),
    Member("viewer", everywhere="READ"),
)
_FEW = ("maker", "manager", "editor")
MEMBERS = [
    member
    for member in ALL_MEMBERS
    if os.environ.get("AUTH_SCENES") == "all" or member.name in _FEW
]
"""Those that differ most; AUTH_SCENES=all takes them all."""


@pytest.fixture(scope="module")
def sides(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Side]]:
    def with_workspaces(folder: Path) -> Server:
        return start_stock_with_login(folder, "--enable-workspaces")

    folder = tmp_path_factory.mktemp("product")
    options = ("--auth", "--workspaces")
    with (
        stock_or_recording(request, with_workspaces) as stock,
        stopped(
            start_product(folder, *options, MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1], INDEX_LAG_MS="0")
        ) as ours,
    ):
        made = [Side(stock), Side(ours.url)]
        for side in made:
            for name in ("team", "other"):
                call = Call("POST", V3 + "workspaces", {"name": name})
                assert _as(side, ADMIN, call).status == 201
        yield made
        for side in made:
            side.close()


def _as(side: Side, login: tuple[str, str] | None, call: Call, where: str = "") -> Reply:
    side.login = login
    return side.send(call._replace(workspace=where) if where else call)


def _must(side: Side, login: tuple[str, str], call: Call, where: str = "") -> Any:
    reply = _as(side, login, call, where)
    assert reply.status == 200, (call, reply)
    return reply.body


def _prepared(side: Side, member: Member) -> tuple[str, str]:
    login = (member.user, PASSWORD)
    _must(side, ADMIN, post("users/create", {"username": member.user, "password": PASSWORD}))
    if member.role:
        listed = Call("GET", V3 + "roles/list", query={"workspace": member.where})
        roles = {role["name"]: role["id"] for role in _must(side, ADMIN, listed)["roles"]}
        _assign(side, member, roles[member.role])
    if member.everywhere:
        role = {"name": f"r-{member}", "workspace": member.where}
        made = _must(side, ADMIN, Call("POST", V3 + "roles/create", role))["role"]["id"]
        level = {
            "role_id": made,
            "resource_type": "workspace",
            "resource_pattern": "*",
            "permission": member.everywhere,
        }
        reply = _as(side, ADMIN, Call("POST", V3 + "roles/permissions/add", level))
        assert reply.status in (200, 400), reply
        _assign(side, member, made)
    for call in NEW(member):  # type: ignore[arg-type]
        _must(side, login if member.own else ADMIN, call, "team")
    if member.level:
        for kind, which in (("experiment", Ref("experiment")), ("registered_model", f"m-{member}")):
            grant = {
                "username": member.user,
                "resource_type": kind,
                "resource_id": which,
                "permission": member.level,
            }
            _must(side, ADMIN, Call("POST", V3 + "users/permissions/grant", grant), "team")
    return login


def _assign(side: Side, member: Member, role_id: int) -> None:
    assigned = {"username": member.user, "role_id": role_id}
    _must(side, ADMIN, Call("POST", V3 + "roles/assign", assigned))


def _decision(reply: Reply) -> object:
    """A refusal word for word; of what was let through only that."""
    return (reply.status, reply.body) if reply.status in REFUSED else "allowed"


def _spaces(member: Member) -> list[Call]:
    """What only workspaces have."""
    return [
        Call("GET", V3 + "workspaces"),
        *(Call("GET", V3 + f"workspaces/{name}") for name in ("team", "other", "default", "gone")),
        Call("PATCH", V3 + "workspaces/team", {"description": "d"}),
        Call("POST", V3 + "workspaces", {"name": f"by-{member}"}),
        Call("DELETE", V3 + "workspaces/gone"),
        *(
            Call("GET", V3 + "roles/list", query={"workspace": w})
            for w in ("team", "other", "gone")
        ),
        Call("GET", V3 + "roles/list"),
        *(
            Call("POST", V3 + "roles/create", {"name": f"role-{member}", "workspace": where})
            for where in ("team", "other", "gone")
        ),
        Call("GET", V3 + "users/roles/list", query={"username": member.user}),
        Call("GET", V3 + "users/current/permissions"),
    ]


def _meant(member: Member, call: Call, stock: Reply, ours: Reply) -> bool:
    """MLflow's server lists a workspace for its members but does not show it to them; and who may
    everything in a workspace is told there that he may not look at what is not there."""
    if stock.status != 403:
        return False
    if "/workspaces/" in call.path:
        return ours.status == 200 and call.path.endswith(f"/{member.where}")
    return ours.status == 404 and member.role == "admin"


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_decides_as_stock_does(sides: list[Side], member: Member) -> None:
    logins = [_prepared(side, member) for side in sides]
    differences = []
    elsewhere = [get("experiments/get", experiment_id=Ref("experiment")), *_spaces(member)]
    for where, call in (
        *(("other", call) for call in elsewhere),
        *(("default", call) for call in elsewhere),
        *(("team", call) for call in _spaces(member)),
        *(("team", call) for call in calls(member)),  # type: ignore[arg-type]
    ):
        replies = [_as(side, login, call, where) for side, login in zip(sides, logins, strict=True)]
        alike = _decision(replies[0]) == _decision(replies[1])
        if not alike and not _meant(member, call, *replies):
            differences.append((where, str(call), *(str(reply)[:300] for reply in replies)))
    assert not differences, "\n".join(map(str, differences))


@pytest.mark.parametrize("member", [Member("lister", role="user"), Member("guest", level="READ")])
def test_lists_as_stock_does(sides: list[Side], member: Member) -> None:
    results = []
    for side in sides:
        login = _prepared(side, member)
        names: list[Any] = []
        for where in ("team", "other", "default"):
            listed = _as(side, login, Call("GET", V3 + "workspaces"), where)
            names.append(
                sorted(workspace["name"] for workspace in listed.body.get("workspaces", ()))
            )
            search = get("experiments/search", max_results=1000, filter="name LIKE 'e-%'")
            answer = _as(side, login, search, where)
            names.append(
                sorted(experiment["name"] for experiment in answer.body.get("experiments", ()))
            )
            answer = _as(side, login, get("registered-models/search"), where)
            names.append(
                sorted(
                    registered_model["name"]
                    for registered_model in answer.body.get("registered_models", ())
                )
            )
        results.append(names)
    assert results[0] == results[1]
