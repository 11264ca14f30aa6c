"""Things that name one another, and the calls whose answers tell so; sends nothing."""

from __future__ import annotations

from tests.differential.auth_calls import PLACE, V3, assessment_of, trace_of
from tests.differential.rest import API, Call, Ref, get, post

HIDDEN = ("run", "logged_model", "registered_model_version", "prompt_version", "assessment")
"""Types whose DENY takes something out of the answers about other things."""


PROMPT = {"key": "mlflow.prompt.is_prompt", "value": "true"}
TEXT = {"key": "mlflow.prompt.text", "value": "Hello"}


def _prompt(name: str) -> dict[str, str]:
    return {"name": f"linked-prompt-{name}"}


def linked_things(name: str) -> list[Call]:
    """A run, a logged model of it, a version of that, and a trace of both, with an assessment."""
    model, run = {"name": f"linked-{name}"}, {"run_id": Ref("run")}
    of_run = {"source": "s3://bucket/model", **run, "run_link": "https://run"}
    of_prompt = {**_prompt(name), **of_run, "source": "dummy-source"}
    trace_id = f"tr-linked-{name}"
    metric = {"key": "m", "value": 1, "timestamp": 1, "model_id": Ref("model")}
    logged = {"experiment_id": Ref("experiment"), "name": "model", "source_run_id": Ref("run")}
    return [
        post("experiments/create", model, saves={"experiment": "experiment_id"}),
        post(
            "runs/create",
            {"experiment_id": Ref("experiment")},
            saves={"run": "run.info.run_id"},
        ),
        post("logged-models", logged, saves={"model": "model.info.model_id"}),
        post("runs/log-metric", {**run, **metric}),
        post("runs/outputs", {**run, "models": [{"model_id": Ref("model"), "step": 0}]}),
        post("registered-models/create", model),
        post("model-versions/create", {**model, **of_run}),
        post("registered-models/alias", {**model, "version": "1", "alias": "a"}),
        post("registered-models/create", {**_prompt(name), "tags": [PROMPT]}),
        post("model-versions/create", {**of_prompt, "tags": [PROMPT, TEXT]}),
        trace_of(trace_id),
        Call("POST", f"{V3}traces/{trace_id}/assessments", assessment_of(trace_id)),
    ]


def linked_reads(name: str) -> list[Call]:
    model = {"name": f"linked-{name}"}
    version = {**model, "version": "1"}
    trace_id = f"tr-linked-{name}"
    experiments = {"experiment_ids": [Ref("experiment")]}
    query = "query q($id: String) { mlflowGetRun(input: {runId: $id}) { run { info { runId } "
    query += "modelVersions { name runId } } } }"
    return [
        get("runs/get", run_id=Ref("run")),
        post("runs/search", experiments),
        get("registered-models/get", **model),
        get("registered-models/search", filter=f"name = '{model['name']}'"),
        get("registered-models/get-latest-versions", **model),
        get("registered-models/alias", **model, alias="a"),
        Call("PATCH", API + "registered-models/update", {**model, "description": "d"}),
        get("model-versions/get", **version),
        get("registered-models/get", **_prompt(name)),
        get("registered-models/search", filter=f"name = '{_prompt(name)['name']}'"),
        get("model-versions/search", filter=f"name = '{_prompt(name)['name']}'"),
        get("model-versions/search", filter=f"name = '{model['name']}'"),
        get("logged-models/{{model}}"),
        post("logged-models/search", experiments),
        get(f"traces/{trace_id}/info"),
        get("traces", experiment_ids=Ref("experiment")),
        Call("GET", f"{V3}traces/{trace_id}"),
        Call("POST", V3 + "traces/batchGetInfos", {"trace_ids": [trace_id]}),
        Call("POST", V3 + "traces/search", {"locations": [PLACE]}),
        Call("POST", "/graphql", {"query": query, "variables": {"id": Ref("run")}}),
    ]
