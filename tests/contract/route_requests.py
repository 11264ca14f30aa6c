"""A small valid request for each route of the product, about what ``route_world`` makes."""

from __future__ import annotations

import json
from typing import Any, Final

import catalog.app
from tests.contract import stored_job, trace_calls, write_requests
from tests.contract.route_world import PASSWORD, YES_NO

Fields = dict[str, Any]

OF_EXPERIMENT: Final = {"experiment_id": "{experiment}"}
OF_RUN: Final = {"run_id": "{run}"}
OF_FILE: Final = {**OF_RUN, "path": "a.txt"}
NAME_AND_VERSION: Final = {"name": "{name}", "version": "1"}
OF_SCORER: Final = {**OF_EXPERIMENT, "name": "quality"}
OF_QUEUE: Final = {"queue_id": "{queue}"}
POINT: Final = {"key": "m", "value": 1.5, "timestamp": 7, "step": 7}
SCHEMA: Final = {**OF_EXPERIMENT, "name": "good", "type": "FEEDBACK", "input": YES_NO}
RECORDS: Final = {"records": json.dumps([{"inputs": {"q": "2"}, "expectations": {"a": "4"}}])}
ISSUE: Final = {**OF_EXPERIMENT, "name": "slow", "description": "d"}
PROMPT: Final = {
    "prompt_template": "Say it",
    "prompt_parameters": [{"key": "thing", "value": "hello"}],
    "model_route": "chat",
    "model_input": "Say hello",
    "model_output": "Hello",
    "mlflow_version": "3.0.0",
}
GRANT: Final = {
    "username": "{user}",
    "permission": "READ",
    "resource_type": "experiment",
    "resource_id": "{experiment}",
}

_EXPERIMENTS: Final = "/2.0/mlflow/experiments"
_RUNS: Final = "/2.0/mlflow/runs"
_METRICS: Final = "/2.0/mlflow/metrics"
_LOGGED: Final = "/2.0/mlflow/logged-models"
_MODEL: Final = f"{_LOGGED}/{{path_model_id}}"
_REGISTERED: Final = "/2.0/mlflow/registered-models"
_VERSIONS: Final = "/2.0/mlflow/model-versions"
_TRACES: Final = "/3.0/mlflow/traces"
_DATASETS: Final = "/3.0/mlflow/datasets"
_DATASET: Final = f"{_DATASETS}/{{dataset_id}}"
_SCORERS: Final = "/3.0/mlflow/scorers"
_MCP_SERVERS: Final = "/3.0/mlflow/mcp-servers"
_MCP_SERVER: Final = f"{_MCP_SERVERS}/{{name+}}"
_GATEWAY: Final = write_requests.GATEWAY
_SCHEMAS: Final = "/3.0/mlflow/label-schemas"
_QUEUES: Final = "/3.0/mlflow/review-queues"
_ISSUES: Final = "/3.0/mlflow/issues"
_FILES: Final = "/2.0/mlflow-artifacts"
_USERS: Final = "/2.0/mlflow/users"
_KEYS: Final = "/3.0/mlflow-serverless/keys"
_GRANTS: Final = "/3.0/mlflow/users"
_ROLES: Final = "/3.0/mlflow/roles"
_UI: Final = "/3.0/mlflow"
_SCIM: Final = "/scim/v2"

NOT_SENT: Final = {
    **{
        f"POST /2.0/mlflow/artifacts/presigned-{way}-url": "needs a location in a bucket"
        for way in ("upload", "download")
    },
    "POST /2.0/mlflow/webhooks/{webhook_id}/test": "calls a receiver",
    "POST /3.0/mlflow-serverless/runs/move": "needs a run that nobody has written to for a minute",
    **dict.fromkeys(("GET /graphql", "POST /graphql"), "costs what the query's fields cost"),
    "GET /signup": "a page",
    "GET /scim/v2/Schemas/{scim_id}": "a document without data",
    "GET /scim/v2/ResourceTypes/{scim_id}": "a document without data",
    "POST /api/2.0/mlflow/users/create-ui": "a form, with the cookie of its page",
    f"POST {_FILES}/mpu/complete/{{artifact_path+}}": "needs parts in a store",
    "POST /3.0/mlflow/scorer/invoke": "needs a queue",
    "POST /3.0/mlflow/genai/evaluate/invoke": "needs a queue",
    "POST /3.0/mlflow/issues/invoke": "needs a queue",
    "POST /3.0/mlflow/prompt-optimization/jobs": "needs a queue",
}
"""Routes without a request here, and why: their cost stays unknown."""

REQUESTS: Final[dict[str, Fields]] = {
    **{
        f"{route.method} {route.path}": {"name": "{name}"} if route.method == "POST" else {}
        for route in catalog.app.PLAIN_ROUTES
    },
    **{name: sent for name, sent in write_requests.CASES.items() if name not in NOT_SENT},
    # Experiments.
    f"POST {_EXPERIMENTS}/create": {"name": "another {experiment}"},
    f"GET {_EXPERIMENTS}/get": OF_EXPERIMENT,
    f"GET {_EXPERIMENTS}/get-by-name": {"experiment_name": "{experiment_name}"},
    f"POST {_EXPERIMENTS}/search": {"max_results": 10},
    f"GET {_EXPERIMENTS}/search": {"max_results": 10},
    f"GET {_EXPERIMENTS}/list": {},
    f"POST {_EXPERIMENTS}/update": {**OF_EXPERIMENT, "new_name": "renamed {experiment}"},
    f"POST {_EXPERIMENTS}/delete": OF_EXPERIMENT,
    f"POST {_EXPERIMENTS}/restore": {"experiment_id": "{deleted_experiment}"},
    f"POST {_EXPERIMENTS}/set-experiment-tag": {**OF_EXPERIMENT, "key": "k", "value": "other"},
    f"POST {_EXPERIMENTS}/delete-experiment-tag": {**OF_EXPERIMENT, "key": "k"},
    f"POST {_EXPERIMENTS}/search-datasets": {"experiment_ids": ["{experiment}"]},
    # Runs.
    f"POST {_RUNS}/create": {**OF_EXPERIMENT, "start_time": 1},
    f"POST {_RUNS}/create-promptlab-run": {**OF_EXPERIMENT, **PROMPT},
    f"GET {_RUNS}/get": OF_RUN,
    f"POST {_RUNS}/update": {**OF_RUN, "status": "FINISHED", "end_time": 2},
    f"POST {_RUNS}/delete": OF_RUN,
    f"POST {_RUNS}/restore": {"run_id": "{deleted_run}"},
    f"POST {_RUNS}/log-metric": {**OF_RUN, **POINT},
    f"POST {_RUNS}/log-parameter": {**OF_RUN, "key": "other", "value": "v"},
    "POST /3.0/mlflow-serverless/runs/tags": {
        "run_ids": ["{run}"],
        "tags": [{"key": "reviewed", "value": "yes"}],
        "delete_keys": ["no such key"],
    },
    "POST /3.0/mlflow-serverless/runs/rewind": {**OF_RUN, "after_step": 0},
    f"POST {_RUNS}/log-batch": {
        **OF_RUN,
        "metrics": [POINT],
        "params": [{"key": "another", "value": "v"}],
        "tags": [{"key": "t", "value": "v"}],
    },
    f"POST {_RUNS}/log-model": {
        **OF_RUN,
        "model_json": json.dumps(
            {
                "artifact_path": "m",
                "flavors": {"python_function": {}},
                "utc_time_created": "now",
                "run_id": "r",
            }
        ),
    },
    f"POST {_RUNS}/set-tag": {**OF_RUN, "key": "k", "value": "other"},
    f"POST {_RUNS}/delete-tag": {**OF_RUN, "key": "k"},
    f"POST {_RUNS}/log-inputs": {
        **OF_RUN,
        "datasets": [
            {"dataset": {"name": "d", "digest": "1", "source_type": "local", "source": "{}"}}
        ],
    },
    f"POST {_RUNS}/outputs": {**OF_RUN, "models": [{"model_id": "{model}", "step": 1}]},
    f"POST {_RUNS}/search": {"experiment_ids": ["{experiment}"]},
    f"GET {_METRICS}/get-history": {**OF_RUN, "metric_key": "m"},
    f"GET {_METRICS}/get-history-bulk": {"run_id": ["{run}"], "metric_key": "m"},
    f"GET {_METRICS}/get-history-bulk-interval": {"run_ids": ["{run}"], "metric_key": "m"},
    # Logged models.
    f"POST {_LOGGED}": {**OF_EXPERIMENT, "name": "m"},
    f"POST {_LOGGED}/search": {"experiment_ids": ["{experiment}"]},
    f"GET {_MODEL}": {},
    f"PATCH {_MODEL}": {"model_id": "{model}", "status": "LOGGED_MODEL_READY"},
    f"DELETE {_MODEL}": {},
    f"PATCH {_MODEL}/tags": {"tags": [{"key": "k", "value": "other"}]},
    f"DELETE {_MODEL}/tags/{{tag_key}}": {},
    f"POST {_MODEL}/params": {"model_id": "{model}", "params": [{"key": "p", "value": "1"}]},
    # The registry.
    f"GET {_REGISTERED}/get": {"name": "{name}"},
    f"GET {_REGISTERED}/search": {"filter": "name = '{name}'"},
    f"GET {_REGISTERED}/list": {},
    f"POST {_REGISTERED}/get-latest-versions": {"name": "{name}"},
    f"GET {_REGISTERED}/get-latest-versions": {"name": "{name}"},
    f"GET {_REGISTERED}/alias": {"name": "{name}", "alias": "champion"},
    f"GET {_VERSIONS}/search": {"filter": "name = '{name}'"},
    f"GET {_VERSIONS}/get": NAME_AND_VERSION,
    f"GET {_VERSIONS}/get-download-uri": NAME_AND_VERSION,
    # Traces.
    f"GET {_TRACES}/get": {"trace_id": "{spanned_trace}"},
    f"GET {_TRACES}/batchGet": {"trace_ids": ["{spanned_trace}"]},
    f"POST {_TRACES}/batchGetInfos": {"trace_ids": ["{trace}"]},
    f"GET {_TRACES}/{{trace_id}}": {},
    f"POST {_TRACES}/search": {
        "locations": [
            {
                "type": "MLFLOW_EXPERIMENT",
                "mlflow_experiment": {"experiment_id": "{experiment}"},
            }
        ],
        "max_results": 25,
    },
    f"POST {_TRACES}/metrics": {
        "experiment_ids": ["{experiment}"],
        "view_type": "TRACES",
        "metric_name": "trace_count",
        "aggregations": [{"aggregation_type": "COUNT"}],
    },
    f"POST {_TRACES}/calculate-filter-correlation": {
        "experiment_ids": ["{experiment}"],
        "filter_string1": "trace.status = 'OK'",
        "filter_string2": "trace.status = 'ERROR'",
    },
    f"GET {_TRACES}/{{trace_id}}/assessments/{{assessment_id}}": {},
    "GET /2.0/mlflow/traces/{request_id}/info": {},
    "GET /2.0/mlflow/traces": {"experiment_ids": ["{experiment}"]},
    "POST /v1/traces": trace_calls.resource_spans([trace_calls.span("f" * 32, 1)]),
    "GET /ajax-api/2.0/mlflow/get-trace-artifact": {"request_id": "{spanned_trace}"},
    "GET /ajax-api/3.0/mlflow/get-trace-artifact": {"request_id": "{spanned_trace}"},
    # MCP servers.
    f"GET {write_requests.SKILLS}": {},
    **{
        f"GET {path}{below}": {}
        for path in write_requests.SKILL_PATHS
        for below in ("", "/versions", "/versions/{version}", "/aliases/{alias}")
    },
    f"GET {_MCP_SERVERS}": {},
    f"GET {_MCP_SERVERS}/endpoints": {},
    f"GET {_MCP_SERVER}/versions/{{version+}}": {},
    f"GET {_MCP_SERVER}/versions": {},
    f"GET {_MCP_SERVER}/endpoints/{{endpoint_id}}": {},
    f"GET {_MCP_SERVER}/endpoints": {},
    f"GET {_MCP_SERVER}/aliases/{{alias+}}": {},
    f"GET {_MCP_SERVER}": {},
    # The gateway.
    f"GET {_GATEWAY}/secrets/get": write_requests.SECRET,
    f"GET {_GATEWAY}/secrets/list": {},
    f"GET {_GATEWAY}/secrets/config": {},
    f"GET {_GATEWAY}/model-definitions/get": write_requests.DEFINITION,
    f"GET {_GATEWAY}/model-definitions/list": {},
    f"GET {_GATEWAY}/endpoints/get": {"name": "{name}"},
    f"GET {_GATEWAY}/endpoints/list": {},
    f"GET {_GATEWAY}/endpoints/bindings/list": {},
    f"GET {_GATEWAY}/budgets/get": {"budget_policy_id": "{budget}"},
    f"GET {_GATEWAY}/budgets/list": {},
    f"GET {_GATEWAY}/budgets/windows": {},
    f"GET {_GATEWAY}/guardrails/get": write_requests.GUARDED,
    f"GET {_GATEWAY}/guardrails/list": {},
    f"GET {_GATEWAY}/guardrails/list-for-endpoint": write_requests.ENDPOINT,
    f"GET {_GATEWAY}/supported-providers": {},
    f"GET {_GATEWAY}/supported-models": {"provider": "anthropic"},
    f"GET {_GATEWAY}/provider-config": {"provider": "anthropic"},
    # Evaluation.
    f"POST {_DATASETS}/create": {"name": "d", "experiment_ids": ["{experiment}"]},
    f"POST {_DATASETS}/search": {"experiment_ids": ["{experiment}"]},
    f"GET {_DATASETS}/search": {"experiment_ids": ["{experiment}"]},
    f"GET {_DATASET}": {},
    f"DELETE {_DATASET}": {},
    f"PATCH {_DATASET}/tags": {"tags": json.dumps({"k": "other"})},
    f"DELETE {_DATASET}/tags/{{key}}": {},
    f"POST {_DATASET}/records": RECORDS,
    f"GET {_DATASET}/records": {},
    f"DELETE {_DATASET}/records": {"dataset_record_ids": ["{record}"]},
    f"GET {_DATASET}/experiment-ids": {},
    f"POST {_DATASET}/add-experiments": {"experiment_ids": ["{other_experiment}"]},
    f"POST {_DATASET}/remove-experiments": {"experiment_ids": ["{experiment}"]},
    f"POST {_SCORERS}/register": {**OF_SCORER, "serialized_scorer": "{}"},
    f"GET {_SCORERS}/list": OF_EXPERIMENT,
    f"GET {_SCORERS}/versions": OF_SCORER,
    f"GET {_SCORERS}/get": OF_SCORER,
    f"DELETE {_SCORERS}/delete": OF_SCORER,
    f"GET {_SCORERS}/online-configs": {"scorer_ids": ["{scorer}"]},
    f"PUT {_SCORERS}/online-config": {**OF_SCORER, "sample_rate": 0},
    f"POST {_SCHEMAS}/create": {**SCHEMA, "name": "new"},
    f"GET {_SCHEMAS}/get": {"schema_id": "{schema}"},
    f"GET {_SCHEMAS}/get-by-name": {**OF_EXPERIMENT, "name": "good"},
    f"GET {_SCHEMAS}/list": OF_EXPERIMENT,
    f"PATCH {_SCHEMAS}/update": {"schema_id": "{schema}", "instruction": "look"},
    f"DELETE {_SCHEMAS}/delete": {"schema_id": "{schema}"},
    f"POST {_QUEUES}/create": {**OF_EXPERIMENT, "name": "new", "queue_type": "CUSTOM"},
    f"POST {_QUEUES}/get-or-create-user": {**OF_EXPERIMENT, "user": "ann"},
    f"GET {_QUEUES}/get": OF_QUEUE,
    f"GET {_QUEUES}/get-by-name": {**OF_EXPERIMENT, "name": "queue"},
    f"GET {_QUEUES}/list": OF_EXPERIMENT,
    f"POST {_QUEUES}/update": {**OF_QUEUE, "name": "other"},
    f"POST {_QUEUES}/delete": OF_QUEUE,
    f"POST {_QUEUES}/items/add": {**OF_QUEUE, "item_type": "TRACE", "item_ids": ["{new_trace}"]},
    f"POST {_QUEUES}/items/remove": {**OF_QUEUE, "item_ids": ["{trace}"]},
    f"GET {_QUEUES}/items/list": OF_QUEUE,
    f"POST {_QUEUES}/items/set-status": {
        **OF_QUEUE,
        "item_id": "{trace}",
        "status": "COMPLETE",
        "completed_by": "ann",
    },
    f"POST {_ISSUES}": ISSUE,
    f"POST {_ISSUES}/search": OF_EXPERIMENT,
    f"POST {_ISSUES}/schedule/state": OF_EXPERIMENT,
    f"GET {_ISSUES}/{{issue_id}}": {},
    f"PATCH {_ISSUES}/{{issue_id}}": {"name": "slower"},
    **stored_job.REQUESTS,
    # Files.
    f"GET {_FILES}/artifacts": {"path": "{experiment}"},
    f"GET {_FILES}/presigned/{{artifact_path+}}": {},
    "GET /2.0/mlflow/artifacts/list": OF_RUN,
    "GET /2.0/mlflow/logged-models/{model_id}/artifacts/directories": {},
    **{
        f"{method} {prefix}{_FILES}/artifacts/{{artifact_path+}}": {}
        for prefix in ("/api", "/ajax-api")
        for method in ("GET", "PUT")
    },
    "GET /get-artifact": OF_FILE,
    "GET /ajax-api/2.0/mlflow/get-artifact": OF_FILE,
    "GET /model-versions/get-artifact": {
        "name": "filed {name}",
        "version": "1",
        "path": "a.txt",
    },
    "GET /ajax-api/2.0/mlflow/logged-models/{model_id}/artifacts/files": {
        "artifact_file_path": "a.txt"
    },
    "POST /ajax-api/2.0/mlflow/upload-artifact": {"run_uuid": "{run}", "path": "b.txt"},
    # Server, web UI, workspaces, webhooks.
    f"GET {_UI}/server-info": {},
    "GET /health": {},
    "GET /version": {},
    "GET /2.0/mlflow/gateway-proxy": {},
    "POST /2.0/mlflow/gateway-proxy": {},
    f"GET {_UI}/ui-telemetry": {},
    f"POST {_UI}/ui-telemetry": {},
    f"GET {_UI}/assistant/config": {},
    f"GET {_UI}/assistant/providers": {},
    f"GET {_UI}/workspaces": {},
    f"GET {_UI}/workspaces/{{workspace_name}}": {},
    "GET /3.0/mlflow-serverless/config": {},
    "GET /3.0/mlflow-serverless/trash": {"experiment_id": "{experiment}"},
    "GET /3.0/mlflow-serverless/system-tables/readers": {},
    "GET /3.0/mlflow-serverless/config/{key}": {},
    **{
        f"GET /3.0/mlflow-serverless/{path}": {}
        for path in ("alerts", "alerts/{alert_id}", "gateway-limits", "queries", "queries/{name}")
    },
    "GET /2.0/mlflow/webhooks": {},
    "GET /2.0/mlflow/webhooks/{webhook_id}": {},
    # Users.
    f"POST {_USERS}/create": {"username": "new {user}", "password": PASSWORD},
    f"GET {_USERS}/get": {"username": "{user}"},
    f"GET {_USERS}/list": {},
    f"GET {_USERS}/current": {},
    f"PATCH {_USERS}/update-password": {"username": "{user}", "password": PASSWORD + "!"},
    f"PATCH {_USERS}/update-admin": {"username": "{user}", "is_admin": True},
    f"DELETE {_USERS}/delete": {"username": "{user}"},
    f"POST {_KEYS}": {"name": "nightly", "username": "{robot}", "scopes": ["read"]},
    f"GET {_KEYS}": {"username": "{robot}"},
    f"POST {_KEYS}/rotate": {"key_id": "{key_id}"},
    f"DELETE {_KEYS}": {"key_id": "{key_id}"},
    "POST /3.0/mlflow-serverless/service-accounts": {"username": "new {robot}"},
    **{
        f"GET {_SCIM}/{path}": {}
        for path in ("ServiceProviderConfig", "ResourceTypes", "Schemas", "Users", "Groups")
    },
    f"GET {_SCIM}/Users/{{scim_id}}": {},
    f"POST {_SCIM}/Users": {"userName": "new {user}"},
    f"PUT {_SCIM}/Users/{{scim_id}}": {"userName": "{user}", "displayName": "Ann"},
    f"PATCH {_SCIM}/Users/{{scim_id}}": {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{"op": "replace", "path": "displayName", "value": "Ann"}],
    },
    f"DELETE {_SCIM}/Users/{{scim_id}}": {},
    f"GET {_SCIM}/Groups/{{group_id}}": {},
    f"POST {_SCIM}/Groups": {"displayName": "new {group_id}", "members": [{"value": "{scim_id}"}]},
    f"PUT {_SCIM}/Groups/{{group_id}}": {
        "displayName": "renamed {group_id}",
        "members": [{"value": "{scim_id}"}],
    },
    f"PATCH {_SCIM}/Groups/{{group_id}}": {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{"op": "add", "path": "members", "value": [{"value": "{scim_id}"}]}],
    },
    f"DELETE {_SCIM}/Groups/{{group_id}}": {},
    f"POST {_GRANTS}/permissions/grant": GRANT,
    f"POST {_GRANTS}/permissions/revoke": {**GRANT, "username": "{holder}"},
    f"GET {_GRANTS}/permissions/get": GRANT,
    f"GET {_GRANTS}/permissions/list": {"username": "{user}"},
    f"GET {_GRANTS}/current/permissions": {},
    f"GET {_GRANTS}/roles/list": {"username": "{user}"},
    f"POST {_ROLES}/create": {"name": "new {role}", "workspace": "default"},
    f"GET {_ROLES}/get": {"role_id": "{role}"},
    f"GET {_ROLES}/list": {"workspace": "default"},
    f"PATCH {_ROLES}/update": {"role_id": "{role}", "description": "d"},
    f"DELETE {_ROLES}/delete": {"role_id": "{role}"},
    f"POST {_ROLES}/permissions/add": {
        "role_id": "{role}",
        "resource_type": "experiment",
        "resource_pattern": "*",
        "permission": "EDIT",
    },
    f"DELETE {_ROLES}/permissions/remove": {"role_permission_id": "{role_permission}"},
    f"GET {_ROLES}/permissions/list": {"role_id": "{role}"},
    f"PATCH {_ROLES}/permissions/update": {
        "role_permission_id": "{role_permission}",
        "permission": "MANAGE",
    },
    f"POST {_ROLES}/assign": {"username": "{user}", "role_id": "{role}"},
    f"DELETE {_ROLES}/unassign": {"username": "{holder}", "role_id": "{role}"},
    f"GET {_ROLES}/users/list": {"role_id": "{role}"},
    **{
        f"{method} {start}/permissions/{word}": {**what, "permission": level, "username": whose}
        for start, what in (
            (_EXPERIMENTS, OF_EXPERIMENT),
            (_REGISTERED, {"name": "{name}"}),
            (_SCORERS, {**OF_EXPERIMENT, "scorer_name": "quality"}),
        )
        for method, word, whose, level in (
            ("POST", "create", "{user}", "READ"),
            ("GET", "get", "{holder}", "READ"),
            ("PATCH", "update", "{holder}", "EDIT"),
            ("DELETE", "delete", "{holder}", "READ"),
        )
    },
}
