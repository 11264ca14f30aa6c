"""Workspaces against MLflow's server with workspaces: their RPCs, the header, what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.differential.calls import E, R, metric
from tests.differential.pair import Pair, pair
from tests.differential.rest import AJAX, Call, Ref, delete, get, patch, post
from tests.differential.servers import stock_or_recording
from tests.servers import Server, start_product, start_stock, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SPACES = "/api/3.0/mlflow/workspaces"


@pytest.fixture(scope="module")
def urls(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    def with_workspaces(folder: Path) -> Server:
        return start_stock(folder, "--enable-workspaces")

    with (
        stock_or_recording(request, with_workspaces) as stock,
        stopped(
            start_product(tmp_path_factory.mktemp("product"), "--workspaces", INDEX_LAG_MS="0")
        ) as product,
    ):
        yield stock, product.url


@pytest.fixture
def spaces(urls: tuple[str, str]) -> Iterator[Pair]:
    with pair(*urls) as both:
        yield both


def space(method: str, path: str = "", body: Any = None, **query: Any) -> Call:
    return Call(method, SPACES + path, body, query or None)


def inside(name: str, *calls: Call) -> list[Call]:
    return [call._replace(workspace=name) for call in calls]


def made(name: str, **more: Any) -> Call:
    return space("POST", "", {"name": name, **more})


NAMES = (
    *("a", "ab", "team-a", "a" * 63, "a" * 64, "", "A", "Team", "a_b", "a.b", "-a", "a-", "a--b"),
    *("0", "00", "a b", "ä" * 3, "default", "workspaces", "api", "ajax-api", "static-files"),
    *(" ab", "default ", "new", "settings"),
)
ROOTS = (
    *(
        "",
        " ",
        "s3://b/p",
        "s3://b/p/",
        "/x/y",
        "x/y",
        "file:///x",
        "mlflow-artifacts:/x",
        "s3://b#x",
    ),
    *("mlflow-artifacts:/workspaces/x", "s3://b/../x", "http://h/x?a=b", "s3://b/x?a=b", "dbfs:/x"),
)
ARCHIVES = (
    *({}, {"location": "s3://b/x"}, {"location": ""}, {"location": "x"}, {"location": "/x"}),
    *({"location": "mlflow-artifacts:/x"}, {"retention": "30d"}, {"retention": "0d"}),
    *({"retention": "30"}, {"retention": "30w"}, {"retention": ""}, {"retention": "1" * 33 + "d"}),
    *({"retention": " 5m "}, {"retention": "-1d"}, {"retention": "1.5h"}, {"retention": "05d"}),
)


def test_names(spaces: Pair) -> None:
    spaces.send_all(made(name) for name in NAMES)
    spaces.send_all(space("GET", f"/{name}") for name in ("ab", "a", "A", "a_b", "missing", "api"))
    spaces.send_all(inside("ab", get("experiments/get-by-name", experiment_name="x")))
    for name in ("a", "A", "missing", "", " ", "ab ", "default", "DEFAULT", "api", "a_b"):
        spaces.send_all(
            inside(
                name, post("experiments/search", {"max_results": 5, "filter": "name != 'Default'"})
            )
        )
        spaces.send_all(inside(name, get("registered-models/search", max_results=5)))
        spaces.send_all(inside(name, space("GET"), space("GET", "/ab")))
        info = Call("GET", "/api/3.0/mlflow/server-info", workspace=name)
        enabled = [
            side.send(info).body["workspaces_enabled"] for side in (spaces.stock, spaces.product)
        ]
        assert enabled == [True, True]
        spaces.send_all(inside(name, Call("GET", "/version"), Call("GET", "/health")))


def test_bodies(spaces: Pair) -> None:
    bodies: tuple[Any, ...] = (
        *({}, {"name": None}, {"name": 5}, {"name": ["ab"]}, [], None, {"name": "nn", "x": 1}),
        *({"name": "d0", "description": ""}, {"name": "d1", "description": "x" * 5000}),
        *({"name": "d2", "description": None}, {"name": "d3", "description": 5}),
    )
    spaces.send_all(space("POST", "", body) for body in bodies)
    for number, root in enumerate(ROOTS):
        name = f"root-{number}"
        spaces.send(made(name))
        spaces.send_all(
            [
                made(f"made-{name}", default_artifact_root=root),
                space("PATCH", f"/{name}", {"default_artifact_root": root}),
                space("GET", f"/{name}"),
            ]
        )
    for number, archive in enumerate(ARCHIVES):
        name = f"archive-{number}"
        spaces.send(made(name))
        spaces.send_all(
            [
                made(f"made-{name}", trace_archival_config=archive),
                space("PATCH", f"/{name}", {"trace_archival_config": archive}),
                space("GET", f"/{name}"),
            ]
        )
    changes: tuple[Any, ...] = ({}, {"description": ""}, {"name": "other"}, {"description": "x"})
    for body in (*changes, [], {"description": None}, {"description": 5}, {"name": "root-0"}):
        for name in ("root-0", "default", "missing"):
            spaces.send(space("PATCH", f"/{name}", body))
    spaces.send_all(space("PATCH", "/A", body) for body in changes)
    spaces.send(space("GET"))


def test_modes_of_deletion(spaces: Pair) -> None:
    for mode in ("RESTRICT", "SET_DEFAULT", "CASCADE", "restrict", "", "x", None):
        query = {} if mode is None else {"mode": mode}
        for name in ("default", "missing", "A"):
            spaces.send(space("DELETE", f"/{name}", **query))
        name = f"gone-{mode}".lower()
        spaces.send(made(name))
        spaces.send_all([space("DELETE", f"/{name}", **query), space("GET", f"/{name}")])
    spaces.send(made("taken"))
    for where in ("taken", "default"):
        for call in (
            post("experiments/create", {"name": "same name"}),
            post("registered-models/create", {"name": "same name"}),
        ):
            spaces.send(call._replace(workspace=where))
    spaces.send_all([space("DELETE", "/taken", mode="SET_DEFAULT"), space("GET", "/taken")])
    # MLflow's server gives the ids of what went with CASCADE to others.
    for mode in ("RESTRICT", "SET_DEFAULT", "CASCADE"):
        name = f"full-{mode.lower().replace('_', '-')}"
        spaces.send(made(name))
        contents = (
            post("experiments/create", {"name": f"e {name}"}, saves={"in": "experiment_id"}),
            post("registered-models/create", {"name": f"m {name}"}),
            post("registered-models/create", {"name": f"n {name}"}),
        )
        spaces.send_all(inside(name, *contents))
        spaces.send_all(
            [
                space("DELETE", f"/{name}", mode=mode),
                space("GET", f"/{name}"),
                get("experiments/get", experiment_id=Ref("in")),
                get("experiments/get-by-name", experiment_name=f"e {name}"),
                get("registered-models/get", name=f"m {name}"),
            ]
        )


def test_what_is_in_one(spaces: Pair) -> None:
    """The same names in all workspaces; what is another's looks missing in the same words."""
    roots = {"one": "", "two": "s3://bucket/two"}
    for name, root in roots.items():
        spaces.send(made(name, **({"default_artifact_root": root} if root else {})))
    everywhere = (*roots, "default")
    for name in everywhere:
        spaces.send_all(inside(name, *_contents(name)))
    placed = {"name": "placed", "artifact_location": "s3://b/x"}
    spaces.send_all(inside("one", post("experiments/create", placed)))
    at_root = {"default_artifact_root": "s3://bucket/default"}
    spaces.send_all(
        [
            space("PATCH", "/default", at_root),
            post("experiments/create", {"name": "at a root"}, saves={"rooted": "experiment_id"}),
            get("experiments/get", experiment_id=Ref("rooted")),
            space("PATCH", "/default", {"default_artifact_root": ""}),
            post("experiments/create", {"name": "no root"}, saves={"unrooted": "experiment_id"}),
            get("experiments/get", experiment_id=Ref("unrooted")),
        ]
    )
    for name in everywhere:
        for other in everywhere:
            spaces.send_all(inside(name, *_reads(other)))
    for name in everywhere:
        for other in everywhere:
            if other != name:
                spaces.send_all(inside(name, *_changes(other)))
    for name in everywhere:
        spaces.send_all(inside(name, *_reads(name)))


def _contents(name: str) -> list[Call]:
    model = {"name": "same", "source": f"s3://{name}/m", "run_id": R}
    calls = [
        post("experiments/create", {"name": "same"}, saves={"experiment": "experiment_id"}),
        post(
            "runs/create",
            {"experiment_id": E, "run_name": "n", "start_time": 1},
            saves={"run": "run.info.run_id"},
        ),
        post("runs/log-metric", {"run_id": R, **metric("m", 1)}),
        post("runs/log-parameter", {"run_id": R, "key": "p", "value": name}),
        post(
            "logged-models",
            {"experiment_id": E, "name": "same"},
            saves={"model": "model.info.model_id"},
        ),
        post("registered-models/create", {"name": "same"}),
        post("model-versions/create", model),
        post("registered-models/alias", {"name": "same", "alias": "a", "version": "1"}),
        Call("POST", "/api/3.0/mlflow/traces", _trace(name)),
    ]
    return [_own(call, name) for call in calls]


def _own(value: Any, name: str) -> Any:
    """Refs to what this workspace has, and saves of it."""
    if isinstance(value, Ref):
        return Ref(f"{value.name} of {name}")
    if isinstance(value, Call):
        saves = {f"{label} of {name}": path for label, path in (value.saves or {}).items()}
        path = value.path
        for label in ("model", "run", "experiment"):
            path = path.replace(f"{label}}}}}", f"{label} of {name}}}}}")
        query = None if value.query is None else _own(dict(value.query), name)
        return value._replace(
            saves=saves or None, body=_own(value.body, name), query=query, path=path
        )
    if isinstance(value, dict):
        return {key: _own(part, name) for key, part in value.items()}
    if isinstance(value, list):
        return [_own(part, name) for part in value]
    return value


def _trace(name: str) -> dict[str, Any]:
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": E}}
    return {
        "trace": {
            "trace_info": {
                "trace_id": f"tr-{name}",
                "trace_location": location,
                "request_time": "2026-01-01T00:00:00Z",
                "state": "OK",
            }
        }
    }


def _reads(name: str) -> list[Call]:
    v3 = "/api/3.0/mlflow/"
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": E}}
    calls = [
        get("experiments/get", experiment_id=E),
        get("experiments/get-by-name", experiment_name="same"),
        get("runs/get", run_id=R),
        post("runs/search", {"experiment_ids": [E]}),
        get("metrics/get-history", run_id=R, metric_key="m"),
        get("metrics/get-history-bulk-interval", run_ids=R, metric_key="m"),
        Call("GET", AJAX + "metrics/get-history-bulk", query={"run_id": R, "metric_key": "m"}),
        get("logged-models/{{model}}"),
        post("logged-models/search", {"experiment_ids": [E]}),
        get("registered-models/get", name="same"),
        get("model-versions/search", filter="name='same'"),
        get("registered-models/alias", name="same", alias="a"),
        Call("GET", f"{v3}traces/tr-{name}"),
        Call("POST", f"{v3}traces/search", {"locations": [location]}),
        Call("GET", f"{v3}traces/get", query={"trace_id": f"tr-{name}"}),
        get("artifacts/list", run_id=R),
    ]
    return [_own(call, name) for call in calls]


def _changes(name: str) -> list[Call]:
    v3 = f"/api/3.0/mlflow/traces/tr-{name}"
    calls = [
        post("experiments/update", {"experiment_id": E, "new_name": "x"}),
        post("experiments/set-experiment-tag", {"experiment_id": E, "key": "k", "value": "v"}),
        post("experiments/delete", {"experiment_id": E}),
        post("runs/create", {"experiment_id": E}),
        post("runs/update", {"run_id": R, "status": "FINISHED"}),
        post("runs/log-metric", {"run_id": R, **metric("n", 1)}),
        post("runs/log-batch", {"run_id": R, "metrics": [metric("n", 1)]}),
        post("runs/set-tag", {"run_id": R, "key": "k", "value": "v"}),
        post("runs/delete", {"run_id": R}),
        post("logged-models", {"experiment_id": E, "name": "x"}),
        patch("logged-models/{{model}}", {"status": "LOGGED_MODEL_READY"}),
        delete("logged-models/{{model}}"),
        Call("PATCH", f"{v3}/tags", {"key": "k", "value": "v"}),
        post("traces/link-to-run", {"run_id": R, "trace_ids": [f"tr-{name}"]}),
        post("traces/delete-traces", {"experiment_id": E, "request_ids": [f"tr-{name}"]}),
    ]
    return [_own(call, name) for call in calls]
