"""Random calls of every route that the product declares, with bodies that fit; sends nothing.

A text such as ``⟦a.run.2⟧`` stands for something that a workspace has: whose it is, of what kind,
and a number. Whoever sends the call puts in what it is there.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from mlcore.http.routes import PlainRoute, Route, Rpc
from tests.arch.project import DOMAINS
from tests.e2e.workspace_registries import GATEWAY, KUBEFLOW, MCP_SERVERS, RegistryValues
from tests.e2e.workspace_values import CHOSEN_TRACES, KINDS

ALL_WORKSPACES = (
    *("/mlflow/workspaces", "/mlflow-serverless/", "/signup"),
    *("/mlflow/users/create", "/mlflow/users/list", "/mlflow/users/delete", "/users/update-"),
)
"""Routes of the whole deployment, by a part of their path."""
ACCOUNTS = ("/mlflow/users", "/mlflow/roles", "/permissions/")

CREATED = {
    "/2.0/mlflow/experiments/create": ("experiment", "experiment_id"),
    "/2.0/mlflow/runs/create": ("run", "run.info.run_id"),
    "/2.0/mlflow/logged-models": ("model", "model.info.model_id"),
    "/2.0/mlflow/webhooks": ("webhook_id", "webhook.webhook_id"),
    "/2.0/mlflow/traces": ("trace", "trace_info.request_id"),
    "/3.0/mlflow/traces/{trace_id}/assessments": ("assessment_id", "assessment.assessment_id"),
    "/2.0/mlflow-artifacts/mpu/create/{artifact_path+}": ("upload_id", "upload_id"),
    "/3.0/mlflow/datasets/create": ("dataset", "dataset.dataset_id"),
    "/3.0/mlflow/label-schemas/create": ("schema", "label_schema.schema_id"),
    "/3.0/mlflow/review-queues/create": ("queue", "review_queue.queue_id"),
    "/3.0/mlflow/issues": ("issue", "issue.issue_id"),
    f"{MCP_SERVERS}/{{name+}}/endpoints": ("endpoint_id", "id"),
    f"{GATEWAY}/secrets/create": ("secret", "secret.secret_id"),
    f"{GATEWAY}/model-definitions/create": (
        "definition",
        "model_definition.model_definition_id",
    ),
    f"{GATEWAY}/endpoints/create": ("gateway_endpoint", "endpoint.endpoint_id"),
    f"{GATEWAY}/budgets/create": ("budget", "budget_policy.budget_policy_id"),
    "/3.0/mlflow/roles/create": ("role_id", "role.id"),
    "/3.0/mlflow/roles/permissions/add": ("permission", "role_permission.id"),
}
"""What a POST makes, and where its answer says the id."""

ATTACHMENT = "7f1d8cb4-52a7-4a1c-9f6e-3c1d7a0b5e11"
MAKING = (
    *CREATED,
    *("/2.0/mlflow/registered-models/create", "/2.0/mlflow/model-versions/create"),
    *("/3.0/mlflow/traces", "/v1/traces", "/api/2.0/mlflow-artifacts/artifacts/{artifact_path+}"),
    *("/2.0/mlflow/runs/set-tag", "/2.0/mlflow/registered-models/alias"),
    *("/2.0/mlflow/experiments/restore", "/2.0/mlflow/runs/restore"),
    *(f"{MCP_SERVERS}/{{name+}}/{part}" for part in ("versions", "tags", "aliases")),
    *(f"{KUBEFLOW}v1/{part}" for part in ("registered_models", "model_versions")),
    *(f"{KUBEFLOW}v1/{part}" for part in ("serving_environments", "inference_services")),
    *(f"{KUBEFLOW}v1/{part}" for part in ("model_artifacts", "artifacts")),
    *(f"{KUBEFLOW}v1/inference_services/{{id}}/serves",),
    *(f"{KUBEFLOW}v1alpha3/{part}" for part in ("experiments", "experiment_runs")),
)
"""Called more often than the others, so that there is something for those."""

GRAPHQL = (
    '{mlflowGetExperiment(input: {experimentId: "⟦%(e)s⟧"}) {experiment {name artifactLocation '
    "tags {key value} workspace} apiError {code message}}}",
    '{mlflowGetRun(input: {runId: "⟦%(r)s⟧"}) {run {info {runName artifactUri} data {params {key '
    "value} tags {key value}} experiment {name} modelVersions {name}} apiError {code}}}",
    '{mlflowListArtifacts(input: {runId: "⟦%(r)s⟧"}) {rootUri files {path}}}',
    "{mlflowSearchModelVersions(input: {filter: \"run_id = '⟦%(r)s⟧'\"}) {modelVersions {name}}}",
    '{mlflowGetMetricHistoryBulkInterval(input: {runIds: ["⟦%(r)s⟧"], metricKey: "common"}) '
    "{metrics {key value runId}}}",
    'mutation {mlflowSearchRuns(input: {experimentIds: ["⟦%(e)s⟧"]}) {runs {info {runName}}}}',
    'mutation {mlflowSearchDatasets(input: {experimentIds: ["⟦%(e)s⟧"]}) {datasetSummaries {name '
    "experimentId}}}",
)


class Call(NamedTuple):
    route: str
    """Method and declared path."""
    method: str
    path: str
    query: str = ""
    body: str | None = None
    headers: Mapping[str, str] = {}
    makes: tuple[str, str] | None = None


def routes(*, accounts: bool) -> list[Route]:
    """Those that belong to a workspace."""
    results: list[Route] = []
    for domain in DOMAINS:
        app = importlib.import_module(f"{domain}.app")
        for route in (*getattr(app, "RPCS", ()), *getattr(app, "PLAIN_ROUTES", ())):
            everywhere = any(part in route.path for part in ALL_WORKSPACES)
            of_accounts = any(part in route.path for part in ACCOUNTS)
            if not everywhere and (accounts or not of_accounts):
                results.append(route)
    return results


def is_read(route: Route) -> bool:
    """Whether a route changes nothing."""
    return route.method == "GET" or route.path.endswith(("/search", "/metrics", "/graphql"))


class Caller(RegistryValues):
    """Makes the calls of one of the two workspaces."""

    def call(self, route: Route) -> Call:
        path = route.path
        self._route = path
        self._numbers += 1
        if isinstance(route, PlainRoute):
            return self._plain(route)
        prefix = "/ajax-api" if route.ajax_only else self._rng.choice(("/api", "/ajax-api"))
        fields = self._fields(route.message)
        if path.startswith(MCP_SERVERS):
            fields = self.mcp_fields(fields)
        elif path.startswith(GATEWAY):
            fields = self.gateway_fields(fields)
        elif path.endswith("/jobs/search"):
            fields = {}
        path, left = self._placed(path, fields)
        body, query = None, ""
        if route.method == "GET":
            query = urlencode(left, doseq=True)
        else:
            body = json.dumps(left, ensure_ascii=False)
        makes = CREATED.get(route.path) if route.method == "POST" else None
        return Call(
            f"{route.method} {route.path}", route.method, prefix + path, query, body, {}, makes
        )

    def _placed(self, path: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        left = dict(fields)
        for name in [part.split("}")[0] for part in path.split("{")[1:]]:
            value = left.pop(name.rstrip("+"), None)
            if value is None:
                value = self._in_path(path, name)
            path = path.replace(f"{{{name}}}", str(value))
        return path, left

    def _in_path(self, path: str, name: str) -> str:
        if name == "artifact_path+":
            return self._path()
        if path.startswith(KUBEFLOW):
            return self.kubeflow_id(path, name)
        return self._ref(KINDS.get(name, "") or name)

    def _kubeflow(self, call: Call, path: str) -> Call:
        if call.method == "GET":
            return call._replace(query=urlencode(self.kubeflow_query(path)))
        if call.method == "DELETE":
            return call
        body = json.dumps(self.kubeflow_body(call.method, path), ensure_ascii=False)
        makes = self.makes(path) if call.method == "POST" else None
        return call._replace(body=body, makes=makes)

    def _plain(self, route: PlainRoute) -> Call:
        path, _ = self._placed(route.path, {})
        name = f"{route.method} {route.path}"
        call = Call(name, route.method, path)
        if route.path.startswith(KUBEFLOW):
            return self._kubeflow(call, route.path)
        run = {"run_id": f"⟦{self._rng.choice('ab')}.run.1⟧", "path": self._file()}
        if route.path == "/v1/traces":
            return call._replace(body=self._spans(), headers=self._span_headers())
        if route.path == "/graphql":
            chosen = self._rng.choice(GRAPHQL)
            texts = {"e": self._ref("experiment")[1:-1], "r": self._ref("run")[1:-1]}
            query = {"query": chosen % texts, "variables": {}}
            if route.method == "GET":
                return call._replace(query=urlencode({"query": query["query"]}))
            return call._replace(body=json.dumps(query, ensure_ascii=False))
        if route.path.endswith("/upload-artifact"):
            run["run_uuid"] = run.pop("run_id")
            return call._replace(query=urlencode(run), body=self._text())
        if route.path.startswith("/model-versions/"):
            model = {"name": self._name("model"), "version": "1", "path": self._file()}
            return call._replace(query=urlencode(model))
        if route.path.endswith("/get-trace-artifact"):
            return call._replace(
                query=urlencode({"request_id": self._ref("trace"), "path": ATTACHMENT})
            )
        if route.path.endswith("/artifacts/files"):
            return call._replace(query=urlencode({"artifact_file_path": self._file()}))
        if route.method == "PUT":
            return call._replace(body=self._text(), headers={"content-type": "text/plain"})
        return call._replace(query=urlencode(run))

    def _span_headers(self) -> dict[str, str]:
        headers = {"x-mlflow-experiment-id": self._ref("experiment")}
        if self._rng.random() < 0.3:
            headers["x-mlflow-run-id"] = self._ref("run")
        return headers

    def _spans(self) -> str:
        span = {
            "traceId": f"⟦{self._me}.hex.{self._rng.randint(1, CHOSEN_TRACES)}⟧",
            "spanId": f"{self._rng.randint(1, 3):016x}",
            "name": self._name("span", own=True),
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": "1700000001000000000",
            "attributes": [
                {"key": "mlflow.spanInputs", "value": {"stringValue": f'"{self._text()}"'}}
            ],
        }
        return json.dumps(
            {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}, ensure_ascii=False
        )


def beginning(caller: Caller, listed: list[Route]) -> Iterator[Call]:
    """What a workspace needs before anything else is of use."""
    by_path = {(route.method, route.path): route for route in listed if isinstance(route, Rpc)}
    for path in (
        *("/2.0/mlflow/experiments/create", "/2.0/mlflow/runs/create", "/2.0/mlflow/runs/create"),
        *("/2.0/mlflow/logged-models", "/2.0/mlflow/registered-models/create"),
        *("/2.0/mlflow/registered-models/create", "/2.0/mlflow/model-versions/create"),
        *("/2.0/mlflow/webhooks", "/3.0/mlflow/traces", "/3.0/mlflow/traces"),
    ):
        yield caller.call(by_path["POST", path])
