"""The scenes and calls of the matrix of permissions; sends nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.differential.auth_evaluation import evaluation_calls, evaluation_things
from tests.differential.rest import AJAX, API, Call, Ref, get, post

V3 = "/api/3.0/mlflow/"
PLACE = {
    "type": "MLFLOW_EXPERIMENT",
    "mlflow_experiment": {"experiment_id": Ref("experiment")},
}
"""Where a trace of the scene's experiment is."""


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
        granted: list[tuple[str, Any]] = [
            ("experiment", Ref("experiment")),
            ("registered_model", f"m-{self}"),
        ]
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
ALL_SCENES = [
    Scene("anonymous", own=False),
    *(Scene(level, own) for level in ("none", "admin") for own in (True, False)),
    *(Scene(level, own) for level in LEVELS for own in (True, False)),
    *(Scene(level, own=False, tier="run") for level in LEVELS),
    *(Scene(level, own=False, tier="registered_model_version") for level in ("EDIT", "DENY")),
    *(Scene(level, own=False, tier="logged_model") for level in ("MANAGE", "DENY")),
    *(Scene(level, own=False, tier="trace") for level in ("READ", "EDIT", "DENY")),
    *(Scene(level, own=False, tier="assessment") for level in ("READ", "MANAGE", "DENY")),
]


_FEW = {
    "anonymous-other",
    *("none-own", "none-other", "READ-other", "EDIT-other", "MANAGE-other", "DENY-other"),
    *("admin-other", "DENY-other-run", "EDIT-other-registered_model_version"),
    *("EDIT-other-trace", "DENY-other-assessment"),
}
SCENES = [
    scene for scene in ALL_SCENES if os.environ.get("AUTH_SCENES") == "all" or str(scene) in _FEW
]
"""Those that differ most; AUTH_SCENES=all takes them all."""


def _judges(scene: Scene) -> bool:
    """Whether evaluation is asked about: its rights come from the experiment and its makers."""
    return os.environ.get("AUTH_SCENES") == "all" or not (scene.own or scene.tier)


def _new(scene: Scene) -> list[Call]:
    run = {"run": "run.info.run_id"}
    return [
        post("experiments/create", {"name": f"e-{scene}"}, saves={"experiment": "experiment_id"}),
        post("runs/create", {"experiment_id": Ref("experiment")}, saves=run),
        post("registered-models/create", {"name": f"m-{scene}"}),
        post("model-versions/create", {"name": f"m-{scene}", "source": "s3://bucket/model"}),
        post(
            "logged-models",
            {"experiment_id": Ref("experiment"), "name": "model"},
            saves={"model": "model.info.model_id"},
        ),
        trace_of(f"tr-{scene}"),
        Call(
            "POST",
            f"{V3}traces/tr-{scene}/assessments",
            assessment_of(f"tr-{scene}"),
            saves={"assessment": "assessment.assessment_id"},
        ),
        *(evaluation_things(scene) if _judges(scene) else ()),
    ]


def trace_of(trace_id: str) -> Call:
    info = {
        "trace_id": trace_id,
        "trace_location": PLACE,
        "request_time": "2026-01-01T00:00:00Z",
        "execution_duration": "1s",
        "state": "OK",
        "trace_metadata": {"mlflow.sourceRun": Ref("run"), "mlflow.modelId": Ref("model")},
    }
    return Call("POST", V3 + "traces", {"trace": {"trace_info": info}})


def assessment_of(trace_id: str) -> dict[str, Any]:
    return {
        "assessment": {
            "assessment_name": "good",
            "trace_id": trace_id,
            "source": {"source_type": "HUMAN", "source_id": "somebody"},
            "feedback": {"value": True},
        }
    }


NEW: Callable[[Scene], list[Call]] = _new


def calls(scene: Scene) -> list[Call]:
    """Every route once, in an order in which each still finds what it is about."""
    return [
        *_experiments(scene),
        *_runs(),
        *_files(),
        *_proxied(),
        *_traces(f"tr-{scene}"),
        *_logged_models(),
        *_registry(scene),
        *(evaluation_calls(scene) if _judges(scene) else ()),
        *_users(scene),
        *_last(scene),
    ]


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


def _files() -> list[Call]:
    run = {"run_id": Ref("run")}
    return [
        get("artifacts/list", **run),
        Call("GET", "/get-artifact", query={**run, "path": "nothing.txt"}),
        Call("GET", "/get-artifact", query={"run_id": "0" * 32, "path": "nothing.txt"}),
        Call("GET", "/api/2.0/mlflow-artifacts/artifacts", query={"path": "nothing"}),
        Call(
            "POST",
            AJAX + "upload-artifact",
            raw=b"x",
            query={**run, "path": "file.txt"},
            content_type="text/plain",
        ),
    ]


def _proxied() -> list[Call]:
    """Paths of the artifact proxy, and what is no path of it."""
    files = "/api/2.0/mlflow-artifacts/artifacts"
    inside = [
        "{{experiment}}",
        "{{experiment}}/{{run}}",
        "{{experiment}}/{{run}}/artifacts",
        "{{experiment}}/models",
        "{{experiment}}/models/{{model}}/artifacts",
        "{{experiment}}/traces",
        "{{experiment}}/other",
    ]
    file = "{{experiment}}/{{run}}/artifacts/a.txt"
    return [
        Call("GET", files),
        *(Call("GET", f"{files}?path={path}") for path in inside),
        *(_put(f"{files}/{path}/x.txt") for path in inside[2:]),
        Call("GET", f"{files}/{file}"),
        _put(f"{files}/{file}"),
        Call("GET", f"{files}/{file}"),
        Call("DELETE", f"{files}/{file}"),
        Call("DELETE", f"{files}/{{{{experiment}}}}/traces"),
        Call("POST", f"/api/2.0/mlflow-artifacts/mpu/abort/{file}", {"path": "a.txt"}),
    ]


def _put(path: str) -> Call:
    return Call("PUT", path, raw=b"x", content_type="text/plain")


def _traces(trace_id: str) -> list[Call]:
    trace, query = f"{V3}traces/{trace_id}", {"trace_id": trace_id}
    assessment = f"{trace}/assessments/{{{{assessment}}}}"
    chosen = {"experiment_id": Ref("experiment"), "request_ids": [trace_id]}
    return [
        Call("GET", trace),
        Call("GET", V3 + "traces/nobody"),
        Call("GET", V3 + "traces/get", query={**query, "allow_partial": "true"}),
        Call("GET", V3 + "traces/batchGet", query={"trace_ids": trace_id}),
        Call("POST", V3 + "traces/batchGetInfos", {"trace_ids": [trace_id]}),
        Call("POST", V3 + "traces/search", {"locations": [PLACE]}),
        *(
            Call("POST", V3 + "traces/search", {"locations": [PLACE], "filter": filter_string})
            for filter_string in ("feedback.good = 'true'", "attributes.run_id = 'r'")
        ),
        Call("PATCH", f"{trace}/tags", {"key": "k", "value": "v"}),
        Call("DELETE", f"{trace}/tags", {"key": "k"}),
        trace_of(f"{trace_id}-another"),
        Call("POST", f"{trace}/assessments", assessment_of(trace_id)),
        Call("GET", assessment),
        Call("PATCH", assessment, {**assessment_of(trace_id), "update_mask": "rationale"}),
        Call("DELETE", assessment),
        Call("GET", API + f"traces/{trace_id}/info"),
        Call("GET", API + "traces", query={"experiment_ids": Ref("experiment")}),
        post("traces", {"experiment_id": Ref("experiment"), "timestamp_ms": 1}),
        Call("PATCH", API + f"traces/{trace_id}", {"timestamp_ms": 2, "status": "OK"}),
        Call("PATCH", API + f"traces/{trace_id}/tags", {"key": "k", "value": "v"}),
        post("traces/link-to-run", {"run_id": Ref("run"), "trace_ids": [trace_id]}),
        Call("GET", AJAX + "get-trace-artifact", query={"request_id": trace_id}),
        Call("POST", V3 + "traces/delete-traces", chosen),
    ]


def _logged_models() -> list[Call]:
    metric = {"run_id": Ref("run"), "key": "m", "value": 2, "timestamp": 2}
    return [
        post("logged-models", {"experiment_id": Ref("experiment"), "name": "another"}),
        post("logged-models/search", {"experiment_ids": [Ref("experiment")]}),
        post(
            "logged-models/search",
            {"experiment_ids": [Ref("experiment")], "filter": "source_run_id = 'r'"},
        ),
        get("logged-models/{{model}}"),
        Call(
            "PATCH",
            API + "logged-models/{{model}}",
            {"model_id": Ref("model"), "status": "LOGGED_MODEL_READY"},
        ),
        Call("PATCH", API + "logged-models/{{model}}/tags", {"tags": [{"key": "k", "value": "v"}]}),
        Call("DELETE", API + "logged-models/{{model}}/tags/k"),
        post("runs/log-metric", {**metric, "model_id": Ref("model")}),
        post("runs/log-metric", {**metric, "model_id": "m-" + "0" * 32}),
        post("runs/outputs", {"run_id": Ref("run"), "models": [{"model_id": Ref("model")}]}),
    ]


def _registry(scene: Scene) -> list[Call]:
    named = {"name": f"m-{scene}"}
    version = {**named, "version": "1"}
    from_run = {**named, "source": "s3://bucket/m", "run_id": Ref("run")}
    return [
        get("registered-models/get", **named),
        get("registered-models/get", name="nothing of that name"),
        get("registered-models/search"),
        get("registered-models/get-latest-versions", **named),
        Call("PATCH", API + "registered-models/update", {**named, "description": "d"}),
        post("registered-models/set-tag", {**named, "key": "k", "value": "v"}),
        Call("DELETE", API + "registered-models/delete-tag", {**named, "key": "k"}),
        post("registered-models/create", {"name": f"another-{scene}"}),
        post("model-versions/create", {**named, "source": "s3://bucket/other"}),
        post("model-versions/create", from_run),
        post("model-versions/create", {**from_run, "run_id": "0" * 32}),
        post("model-versions/create", {**named, "source": "models:/nothing of that name/1"}),
        get("model-versions/get", **version),
        get("model-versions/get", name="nothing of that name", version="1"),
        get("model-versions/get-download-uri", **version),
        get("model-versions/search", filter=f"name = 'm-{scene}'"),
        get("model-versions/search", filter="run_id = 'r'"),
        Call("PATCH", API + "model-versions/update", {**version, "description": "d"}),
        post("model-versions/transition-stage", {**version, "stage": "Staging"}),
        post("model-versions/set-tag", {**version, "key": "k", "value": "v"}),
        Call("DELETE", API + "model-versions/delete-tag", {**version, "key": "k"}),
        post("registered-models/alias", {**version, "alias": "champion"}),
        get("registered-models/alias", **named, alias="champion"),
        Call("DELETE", API + "registered-models/alias", {**named, "alias": "champion"}),
        Call("GET", "/model-versions/get-artifact", query={**version, "path": "nothing.txt"}),
        get("webhooks"),
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


def _last(scene: Scene) -> list[Call]:
    """What goes away, a renamed model with the grants on it among it."""
    experiment, renamed = {"experiment_id": Ref("experiment")}, {"name": f"n-{scene}"}
    old = {"name": f"m-{scene}"}
    return [
        Call("DELETE", API + "logged-models/{{model}}"),
        post("experiments/delete", experiment),
        post("experiments/restore", experiment),
        post("registered-models/rename", {**old, "new_name": renamed["name"]}),
        get("registered-models/get", **renamed),
        Call("PATCH", API + "registered-models/update", {**renamed, "description": "e"}),
        Call("DELETE", API + "model-versions/delete", {**renamed, "version": "1"}),
        Call("DELETE", API + "model-versions/delete", {**old, "version": "1"}),
        Call("DELETE", API + "registered-models/delete", renamed),
        Call("DELETE", API + "registered-models/delete", old),
        post("registered-models/create", renamed),
    ]
