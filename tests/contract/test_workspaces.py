"""Workspaces: their own RPCs, their three ways to end, and that nothing of one shows in another."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mlcore import artifacts as port
from mlcore.artifacts.local_folder_store import Folder
from mlcore.entities.workspaces import Workspace
from mlcore.repos.workspaces import workspaces as repo
from tests.contract.conftest import Store
from tests.contract.workspace_calls import V3, ask, world
from workspaces import removal

__all__ = ["world"]


def files() -> Folder:
    store = port.store()
    assert isinstance(store, Folder)
    return store


def test_the_life_of_a_workspace(world: Store) -> None:
    listed = ask("GET", V3)
    assert listed.body == {
        "workspaces": [{"name": "default", "description": repo.DEFAULT_DESCRIPTION}]
    }
    made = ask("POST", V3, {"name": "team-a", "description": "A", "default_artifact_root": " "})
    assert (made.status, made.body) == (201, {"workspace": {"name": "team-a", "description": "A"}})
    again = ask("POST", V3, {"name": "team-a"})
    assert (again.status, again.body["error_code"]) == (400, "RESOURCE_ALREADY_EXISTS")
    path = f"{V3}/team-a"
    assert ask("GET", path).body == made.body
    assert ask("PATCH", path, {}).body["message"] == "Workspace update must have at least one key"
    root = "s3://bucket/team-a"
    config = {"location": "s3://archive/a", "retention": "30d"}
    given = {"default_artifact_root": root, "trace_archival_config": config, "description": ""}
    changed = ask("PATCH", path, given).body["workspace"]
    assert changed == {"name": "team-a", **given}
    experiment = ask("POST", "/api/2.0/mlflow/experiments/create", {"name": "x"}, "team-a").body
    body = ask("GET", "/api/2.0/mlflow/experiments/get", None, "team-a", **experiment).body
    assert body["experiment"]["artifact_location"] == f"{root}/{experiment['experiment_id']}"
    given = {"default_artifact_root": "", "trace_archival_config": {"location": ""}}
    changed = ask("PATCH", path, given).body["workspace"]
    retained = {"retention": "30d"}
    assert changed == {"name": "team-a", "description": "", "trace_archival_config": retained}
    assert ask("PATCH", f"{V3}/default", {"description": "D"}).status == 200
    names = [(entry["name"], entry["description"]) for entry in ask("GET", V3).body["workspaces"]]
    assert names == [("default", "D"), ("team-a", "")]
    assert ask("DELETE", path, mode="CASCADE").status == 204
    for gone in (ask("GET", path), ask("DELETE", path), ask("PATCH", path, {"description": "x"})):
        assert (gone.status, gone.body["message"]) == (404, "Workspace 'team-a' not found")
    assert ask("GET", "/api/2.0/mlflow/experiments/get", None, "team-a").status == 404


REFUSED = (
    ("POST", V3, {"name": "default"}, "reserved and cannot be created"),
    ("DELETE", f"{V3}/default", None, "reserved and cannot be deleted"),
    ("POST", V3, {"name": "a"}, "between 2 and 63"),
    ("POST", V3, {"name": "a_b"}, "must match the pattern"),
    ("POST", V3, {"name": "api"}, "is reserved and cannot be used"),
    ("POST", V3, {}, "Missing value for required parameter 'name'"),
    ("POST", V3, {"name": "ok", "default_artifact_root": "a/b"}, "Expected a URI"),
    ("POST", V3, {"name": "ok", "default_artifact_root": "s3://b/#x"}, "can't include fragments"),
    ("POST", V3, {"name": "ok", "trace_archival_config": {"retention": "x"}}, "<int><unit>"),
    ("POST", V3, {"name": "ok", "trace_archival_config": {"location": "/x"}}, "a URI string"),
    ("GET", f"{V3}/A_", None, "must match the pattern"),
)


@pytest.mark.parametrize(("method", "path", "body", "text"), REFUSED)
def test_refused(world: Store, method: str, path: str, body: Any, text: str) -> None:
    answer = ask(method, path, body)
    assert (answer.status, answer.body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert text in answer.body["message"]


def test_switched_off(world: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_ENABLE_WORKSPACES")
    answer = ask("GET", V3)
    assert answer.status == 503
    assert answer.text.startswith("Endpoint: /api/3.0/mlflow/workspaces disabled because")


def furnish(workspace: str) -> dict[str, str]:
    """One of everything in a workspace; their ids."""
    api = "/api/2.0/mlflow/"

    def post(path: str, body: Any) -> dict[str, Any]:
        answer = ask("POST", path if path.startswith("/") else api + path, body, workspace)
        assert answer.status == 200, (path, answer)
        return answer.body

    experiment_id = post("experiments/create", {"name": "same"})["experiment_id"]
    run = post("runs/create", {"experiment_id": experiment_id, "run_name": "same"})["run"]
    run_id = run["info"]["run_id"]
    post("runs/log-metric", {"run_id": run_id, "key": "m", "value": 1, "timestamp": 1})
    post("runs/log-parameter", {"run_id": run_id, "key": "p", "value": f"of {workspace}"})
    dataset = {"name": "d", "digest": "d", "source_type": "s", "source": "s"}
    post("runs/log-inputs", {"run_id": run_id, "datasets": [{"dataset": dataset}]})
    model = post("logged-models", {"experiment_id": experiment_id, "name": "same"})["model"]
    post("registered-models/create", {"name": "same"})
    source = f"s3://{workspace}/m"
    post("model-versions/create", {"name": "same", "source": source, "run_id": run_id})
    post("registered-models/alias", {"name": "same", "alias": "a", "version": "1"})
    events = [{"entity": "REGISTERED_MODEL", "action": "CREATED"}]
    hook = {"name": "same", "url": "https://127.0.0.1/x", "events": events}
    webhook_id = post("webhooks", hook)["webhook"]["webhook_id"]
    trace_id = f"tr-{workspace:0>32}"
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}
    info = {
        "trace_id": trace_id,
        "trace_location": location,
        "request_time": "2026-01-01T00:00:00Z",
        "state": "OK",
    }
    post("/api/3.0/mlflow/traces", {"trace": {"trace_info": info}})
    files().put(f"workspaces/{workspace}/{experiment_id}/{run_id}/artifacts/f", b"x")
    return {
        "experiment": experiment_id,
        "run": run_id,
        "model": model["info"]["model_id"],
        "webhook": webhook_id,
        "trace": trace_id,
    }


def reads(ids: dict[str, str]) -> Iterator[tuple[str, str, Any, dict[str, Any]]]:
    """Calls that name something of a workspace by its id, and searches of all kinds."""
    api = "/api/2.0/mlflow/"
    experiment, run, model, trace = (ids[k] for k in ("experiment", "run", "model", "trace"))
    where = {"experiment_ids": [experiment]}
    yield "GET", api + "experiments/get", None, {"experiment_id": experiment}
    yield "POST", api + "experiments/search", {"max_results": 100}, {}
    yield "POST", "/ajax-api/2.0/mlflow/experiments/search-datasets", where, {}
    yield "GET", api + "runs/get", None, {"run_id": run}
    yield "POST", api + "runs/search", where, {}
    yield "GET", api + "metrics/get-history", None, {"run_id": run, "metric_key": "m"}
    bulk = {"run_id": [run], "metric_key": "m"}
    yield "GET", "/ajax-api/2.0/mlflow/metrics/get-history-bulk", None, bulk
    interval = {"run_ids": [run], "metric_key": "m"}
    yield "GET", "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval", None, interval
    yield "GET", f"{api}logged-models/{model}", None, {}
    yield "POST", api + "logged-models/search", where, {}
    yield "GET", api + "model-versions/search", None, {"filter": f"run_id = '{run}'"}
    yield "GET", f"{api}webhooks/{ids['webhook']}", None, {}
    yield "GET", f"/api/3.0/mlflow/traces/{trace}", None, {}
    locations = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}]
    yield "POST", "/api/3.0/mlflow/traces/search", {"locations": locations}, {}
    yield "GET", api + "artifacts/list", None, {"run_id": run}
    yield "GET", "/get-artifact", None, {"run_id": run, "path": "f"}
    yield "GET", f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/f", None, {}
    query = {"query": f'{{mlflowGetRun(input: {{runId: "{run}"}}) {{run {{info {{runId}}}}}}}}'}
    yield "POST", "/graphql", {**query, "variables": {}}, {}


def writes(ids: dict[str, str]) -> Iterator[tuple[str, str, Any]]:
    api = "/api/2.0/mlflow/"
    experiment, run, model, trace = (ids[k] for k in ("experiment", "run", "model", "trace"))
    yield "POST", "experiments/update", {"experiment_id": experiment, "new_name": "x"}
    yield (
        "POST",
        "experiments/set-experiment-tag",
        {
            "experiment_id": experiment,
            "key": "k",
            "value": "v",
        },
    )
    yield "POST", "experiments/delete", {"experiment_id": experiment}
    yield "POST", "runs/create", {"experiment_id": experiment}
    yield "POST", "runs/update", {"run_id": run, "status": "FINISHED"}
    yield "POST", "runs/log-metric", {"run_id": run, "key": "n", "value": 1, "timestamp": 1}
    metric = {"key": "n", "value": 1, "timestamp": 1, "step": 0}
    yield "POST", "runs/log-batch", {"run_id": run, "metrics": [metric]}
    yield "POST", "runs/log-parameter", {"run_id": run, "key": "q", "value": "1"}
    yield "POST", "runs/set-tag", {"run_id": run, "key": "q", "value": "1"}
    yield "POST", "runs/delete-tag", {"run_id": run, "key": "mlflow.runName"}
    dataset = {"name": "e", "digest": "d", "source_type": "s", "source": "s"}
    yield "POST", "runs/log-inputs", {"run_id": run, "datasets": [{"dataset": dataset}]}
    yield "POST", "runs/outputs", {"run_id": run, "models": [{"model_id": model, "step": 1}]}
    yield "POST", "runs/delete", {"run_id": run}
    yield "POST", "logged-models", {"experiment_id": experiment, "name": "x"}
    yield "DELETE", f"logged-models/{model}", None
    yield "PATCH", f"webhooks/{ids['webhook']}", {"name": "x"}
    yield "DELETE", f"webhooks/{ids['webhook']}", None
    tag = {"key": "k", "value": "v"}
    yield "PATCH", f"{api[:5]}3.0/mlflow/traces/{trace}/tags", tag
    assessment = {
        "assessment_name": "a",
        "trace_id": trace,
        "source": {"source_type": "HUMAN", "source_id": "s"},
        "feedback": {"value": 1},
    }
    path = f"{api[:5]}3.0/mlflow/traces/{trace}/assessments"
    yield "POST", path, {"assessment": assessment}
    yield (
        "POST",
        f"{api[:5]}3.0/mlflow/traces/delete-traces",
        {
            "experiment_id": experiment,
            "request_ids": [trace],
        },
    )


def sources(store: Store) -> list[dict[str, Any]]:
    """All items, but not when anything was last made in a workspace, and how many there were."""
    kept = ("workspace", "id_counter")
    return sorted(
        (item for item in store.items() if item["type"]["S"] not in kept),
        key=lambda item: (item["PK"]["S"], item["SK"]["S"]),
    )


def test_nothing_of_one_shows_in_another(world: Store) -> None:
    for name in ("team-a", "team-b"):
        repo.create(Workspace(name, None))
    theirs = furnish("team-a")
    ours = furnish("team-b")
    secrets = [theirs[kind] for kind in ("run", "model", "webhook", "trace")]
    for method, path, body, query in reads(theirs):
        right = ask(method, path, body, "team-a", **query)
        assert right.status in (200, 307), (path, right)
        for workspace in ("team-b", "default"):
            answer = ask(method, path, body, workspace, **query)
            shown = json.dumps(answer.text)
            request = json.dumps([path, body, query])
            leaked = [secret for secret in secrets if secret in shown and secret not in request]
            assert not leaked, (path, workspace, answer)
            assert "of team-a" not in shown, (path, answer)
            if answer.status == 200 and path != "/graphql":
                fields = answer.body
                for kind in ("runs", "models", "traces", "dataset_summaries", "metrics"):
                    assert not fields.get(kind), (path, workspace, answer)
                names = [entry["experiment_id"] for entry in fields.get("experiments", ())]
                assert theirs["experiment"] not in names
    before = sources(world)
    for method, path, body in writes(theirs):
        full = path if path.startswith("/") else f"/api/2.0/mlflow/{path}"
        for workspace in ("team-b", "default"):
            answer = ask(method, full, body, workspace)
            assert answer.status in (200, 400, 403, 404), (full, answer)
            assert sources(world) == before, (full, workspace, answer)
    assert ours["experiment"] != theirs["experiment"]


def test_restrict_refuses_what_is_not_empty(world: Store) -> None:
    repo.create(Workspace("team-a", None))
    ids = furnish("team-a")
    before = sources(world)
    answer = ask("DELETE", f"{V3}/team-a")
    assert (answer.status, answer.body["error_code"]) == (400, "INVALID_STATE")
    assert "table 'registered_models' still contains 1 resource(s)" in answer.body["message"]
    assert sources(world) == before
    where = {"name": "same"}
    assert ask("DELETE", "/api/2.0/mlflow/registered-models/delete", where, "team-a").status == 200
    run = {"run_id": ids["run"]}
    assert ask("GET", "/api/2.0/mlflow/runs/get", None, "team-a", **run).status == 200
    assert "'experiments' still contains 1" in ask("DELETE", f"{V3}/team-a").text


def test_cascade_leaves_nothing_wherever_it_is_cut(
    world: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = furnish("default")
    kept = sources(world)
    for name in ("team-a", "team-b"):
        repo.create(Workspace(name, None))
        furnish(name)
    monkeypatch.setattr(removal, "WORK_SECONDS", -1.0)
    statuses = [ask("DELETE", f"{V3}/team-a", mode="CASCADE").status for _ in range(3)]
    assert statuses[0] == 503
    assert ask("GET", f"{V3}/team-a").status == 404
    monkeypatch.setattr(removal, "WORK_SECONDS", 20.0)
    if statuses[-1] == 503:
        assert ask("DELETE", f"{V3}/team-a", mode="CASCADE").status == 204
    assert ask("DELETE", f"{V3}/team-b", mode="CASCADE").status == 204
    assert [item for item in sources(world) if item not in kept] == []
    assert [item for item in kept if item not in sources(world)] == []
    assert files().list("workspaces/team-a") == []
    assert files().list(f"workspaces/default/{default['experiment']}") != []


def test_set_default_moves_everything(world: Store) -> None:
    repo.create(Workspace("team-a", None))
    ids = furnish("team-a")
    assert ask("DELETE", f"{V3}/team-a", mode="SET_DEFAULT").status == 204
    for method, path, body, query in reads(ids):
        if "artifact" in path:
            continue  # the files stay where their locations say, as with MLflow's server
        answer = ask(method, path, body, "default", **query)
        assert answer.status == 200, (path, answer)
    alias = {"name": "same", "alias": "a"}
    response = ask("GET", "/api/2.0/mlflow/registered-models/alias", None, "", **alias)
    assert response.body["model_version"]["source"] == "s3://team-a/m"
    named = {"experiment_name": "same"}
    response = ask("GET", "/api/2.0/mlflow/experiments/get-by-name", None, "", **named)
    assert response.body["experiment"]["experiment_id"] == ids["experiment"]
    repo.create(Workspace("team-b", None))
    furnish("team-b")
    answer = ask("DELETE", f"{V3}/team-b", mode="SET_DEFAULT")
    assert (answer.status, answer.body["error_code"]) == (400, "INVALID_STATE")
    assert "  - experiments: 'same'" in answer.body["message"]
    assert ask("GET", f"{V3}/team-b").status == 200


def test_a_trace_of_another_workspace_is_missing_in_one_way(world: Store) -> None:
    repo.create(Workspace("team-a", None))
    known = furnish("team-a")["trace"]
    body = {"assessment": {"rationale": "x"}, "update_mask": "rationale"}
    for method, path, sent in (
        ("GET", "assessments/a-1", None),
        ("PATCH", "assessments/a-1", body),
        ("DELETE", "assessments/a-1", None),
        ("PATCH", "tags", {"key": "k", "value": "v"}),
        ("DELETE", "tags", {"key": "k"}),
    ):
        for trace in (known, "tr-unknown"):
            answer = ask(method, f"/api/3.0/mlflow/traces/{trace}/{path}", sent, "default")
            refusal = (answer.status, answer.body["message"])
            assert refusal == (404, f"Trace with ID '{trace}' not found."), (method, path)
