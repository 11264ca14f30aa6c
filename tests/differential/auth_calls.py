"""The scenes and calls of the matrix of permissions; sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.differential.rest import AJAX, API, Call, Ref, get, post

V3 = "/api/3.0/mlflow/"


class Scene(NamedTuple):
    """A caller with a level on what somebody else made, or that the caller made."""

    level: str
    """A level that is granted, ``none``, ``anonymous`` or ``admin``."""
    own: bool
    tier: str = ""
    """A type of things in an experiment that the level is granted on, instead of the experiment."""

    @property
    def user(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return (
            f"{self.level}-{'own' if self.own else 'other'}{'-' + self.tier if self.tier else ''}"
        )

    def grants(self) -> list[Call]:
        granted: list[tuple[str, Any]] = [("experiment", Ref("experiment"))]
        if self.tier:
            granted = [(self.tier, "*")]
        made = [
            {
                "username": self.user,
                "resource_type": resource_type,
                "resource_id": resource_id,
                "permission": self.level,
            }
            for resource_type, resource_id in granted
        ]
        # The owner of an experiment has a grant on it already.
        revoked = [
            Call("POST", V3 + "users/permissions/revoke", grant)
            for grant in made
            if self.own and not self.tier
        ]
        return [*revoked, *(Call("POST", V3 + "users/permissions/grant", grant) for grant in made)]


LEVELS = ("READ", "USE", "EDIT", "MANAGE", "DENY")
SCENES = [
    Scene("anonymous", own=False),
    *(Scene(level, own) for level in ("none", "admin") for own in (True, False)),
    *(Scene(level, own) for level in LEVELS for own in (True, False)),
    *(Scene(level, own=False, tier="run") for level in LEVELS),
]


def _new(scene: Scene) -> list[Call]:
    run = {"run": "run.info.run_id"}
    return [
        post("experiments/create", {"name": f"e-{scene}"}, saves={"experiment": "experiment_id"}),
        post("runs/create", {"experiment_id": Ref("experiment")}, saves=run),
    ]


NEW: Callable[[Scene], list[Call]] = _new


def calls(scene: Scene) -> list[Call]:
    """Every route once, in an order in which each still finds what it is about."""
    return [*_experiments(scene), *_runs(), *_users(scene), *_last()]


def _experiments(scene: Scene) -> list[Call]:
    experiment = {"experiment_id": Ref("experiment")}
    return [
        get("experiments/get", **experiment),
        get("experiments/get-by-name", experiment_name=f"e-{scene}"),
        get("experiments/get-by-name", experiment_name="nobody's"),
        get("experiments/get", experiment_id="424242"),
        post("experiments/search", {"max_results": 5}),
        get("experiments/search", max_results=5),
        Call("POST", AJAX + "experiments/search-datasets", {"experiment_ids": [Ref("experiment")]}),
        post("experiments/update", {**experiment, "new_name": f"e-{scene}"}),
        post("experiments/set-experiment-tag", {**experiment, "key": "k", "value": "v"}),
        post("experiments/delete-experiment-tag", {**experiment, "key": "k"}),
        post("experiments/create", {"name": f"another-{scene}"}),
        Call("GET", V3 + "users/permissions/get", query={**_resource(scene)}),
        Call("POST", V3 + "users/permissions/revoke", {**_resource("nobody")}),
    ]


def _resource(whose: object) -> dict[str, Any]:
    return {
        "username": str(whose),
        "resource_type": "experiment",
        "resource_id": Ref("experiment"),
    }


def _runs() -> list[Call]:
    run = {"run_id": Ref("run")}
    metric = {"key": "m", "value": 1, "timestamp": 1}
    return [
        post("runs/create", {"experiment_id": Ref("experiment")}),
        get("runs/get", **run),
        get("runs/get", run_id="0" * 32),
        post("runs/update", {**run, "run_name": "new"}),
        post("runs/log-metric", {**run, **metric}),
        post("runs/log-parameter", {**run, "key": "p", "value": "1"}),
        post("runs/log-batch", {**run, "metrics": [metric]}),
        post("runs/log-inputs", {**run, "datasets": []}),
        post("runs/set-tag", {**run, "key": "t", "value": "1"}),
        post("runs/delete-tag", {**run, "key": "t"}),
        post("runs/search", {"experiment_ids": [Ref("experiment")]}),
        get("metrics/get-history", **run, metric_key="m"),
        Call("GET", AJAX + "metrics/get-history-bulk", query={**run, "metric_key": "m"}),
        Call(
            "GET",
            API + "metrics/get-history-bulk-interval",
            query={"run_ids": Ref("run"), "metric_key": "m"},
        ),
        post("runs/delete", run),
        post("runs/restore", run),
    ]


def _users(scene: Scene) -> list[Call]:
    user = {"username": scene.user}
    return [
        get("users/current"),
        get("users/get", **user),
        get("users/get", username="admin"),
        get("users/get", username="nobody"),
        get("users/list"),
        post("users/create", {"username": f"made-by-{scene}", "password": "0123456789ab"}),
        Call("PATCH", API + "users/update-admin", {"username": "nobody", "is_admin": True}),
        Call("DELETE", API + "users/delete", {"username": "nobody"}),
        Call("PATCH", API + "users/update-password", {"username": "nobody", "password": "x" * 12}),
        Call("GET", V3 + "users/current/permissions"),
        Call("GET", V3 + "users/permissions/list", query=user),
        Call("GET", V3 + "users/permissions/list", query={"username": "admin"}),
        Call("GET", V3 + "users/roles/list", query=user),
        Call("GET", V3 + "users/roles/list", query={"username": "admin"}),
        Call("POST", V3 + "roles/create", {"name": f"r-{scene}", "workspace": "default"}),
        Call("GET", V3 + "roles/list"),
        Call("GET", V3 + "roles/list", query={"workspace": "default"}),
        Call("GET", V3 + "roles/get", query={"role_id": 424242}),
        Call("GET", "/version"),
        Call("GET", "/health"),
        Call("GET", V3 + "server-info"),
    ]


def _last() -> list[Call]:
    experiment = {"experiment_id": Ref("experiment")}
    return [post("experiments/delete", experiment), post("experiments/restore", experiment)]
