"""One request for each route that writes."""

from __future__ import annotations

from typing import Any

from tests.contract.route_world import (
    ASSESSMENT,
    BUDGET,
    GUARDRAIL,
    KEY,
    TRACES,
    WEBHOOK,
)

CLOCK = {"updated_at", "version", "last_update_time", "last_updated_at", "entered_at", "event"}
"""Attributes that each write moves. A repeated write is announced to webhooks again, as by MLflow's
server."""


MODEL = {"name": "{name}"}


VERSION = {**MODEL, "version": "1"}


TAG = {**KEY, "value": "other"}


TRACE_3 = {
    "trace_id": "tr-new",
    "trace_location": {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": "{experiment}"},
    },
    "request_time": "2026-01-01T00:00:00Z",
    "execution_duration": "0.5s",
    "state": "OK",
    "tags": {"a": "b"},
    "trace_metadata": {"c": "d"},
}


ONE = "/3.0/mlflow/traces/{trace_id}"


FILES = "/2.0/mlflow-artifacts"


MCP_SERVERS = "/3.0/mlflow/mcp-servers"


MCP_SERVER = f"{MCP_SERVERS}/{{name+}}"


SKILLS = "/3.0/mlflow/skills"


SKILL_PATHS = (f"{SKILLS}/{{name}}", f"{SKILLS}/@{{organization}}/{{name}}")


SKILL_SOURCE = {"source": "git://example.com/a", "digest": "a" * 64}


GATEWAY = "/3.0/mlflow/gateway"


SECRET = {"secret_id": "{secret}"}


DEFINITION = {"model_definition_id": "{definition}"}


LINKED = {**DEFINITION, "linkage_type": "PRIMARY"}


ENDPOINT = {"endpoint_id": "{endpoint}"}


BOUND = {"resource_type": "scorer", "resource_id": "r"}


GUARDED = {"guardrail_id": "{guardrail}"}


IN_TRASH = {"experiment_id": "{experiment}"}


CASES: dict[str, dict[str, Any]] = {
    "POST /3.0/mlflow-serverless/trash/restore": {**IN_TRASH, "run_ids": ["{deleted_run}"]},
    "POST /3.0/mlflow-serverless/trash/purge": {
        **IN_TRASH,
        "run_ids": ["{deleted_run}"],
        "dry_run": False,
    },
    "POST /2.0/mlflow/registered-models/create": {"name": "new {name}", "tags": [TAG]},
    "PATCH /2.0/mlflow/registered-models/update": {**MODEL, "description": "d"},
    "POST /2.0/mlflow/registered-models/rename": {**MODEL, "new_name": "new {name}"},
    "DELETE /2.0/mlflow/registered-models/delete": MODEL,
    "POST /2.0/mlflow/registered-models/set-tag": {**MODEL, **TAG},
    "DELETE /2.0/mlflow/registered-models/delete-tag": {**MODEL, **KEY},
    "POST /2.0/mlflow/registered-models/alias": {**VERSION, "alias": "other"},
    "DELETE /2.0/mlflow/registered-models/alias": {**MODEL, "alias": "champion"},
    "POST /2.0/mlflow/model-versions/create": {**MODEL, "source": "s3://b/y", "run_id": "{run}"},
    "PATCH /2.0/mlflow/model-versions/update": {**VERSION, "description": "d"},
    "DELETE /2.0/mlflow/model-versions/delete": VERSION,
    "POST /2.0/mlflow/model-versions/transition-stage": {
        **VERSION,
        "stage": "Production",
        "archive_existing_versions": True,
    },
    "POST /2.0/mlflow/model-versions/set-tag": {**VERSION, **TAG},
    "DELETE /2.0/mlflow/model-versions/delete-tag": {**VERSION, **KEY},
    "POST /3.0/mlflow/traces": {"trace": {"trace_info": TRACE_3}},
    "POST /3.0/mlflow/traces/delete-traces": {
        "experiment_id": "{experiment}",
        "request_ids": ["{trace}"],
    },
    f"PATCH {ONE}/tags": {"trace_id": "{trace}", **TAG},
    f"DELETE {ONE}/tags": {"trace_id": "{trace}", **KEY},
    f"POST {ONE}/assessments": {"assessment": ASSESSMENT},
    f"PATCH {ONE}/assessments/{{assessment_id}}": {
        "assessment": {**ASSESSMENT, "rationale": "r"},
        "update_mask": "rationale",
    },
    f"DELETE {ONE}/assessments/{{assessment_id}}": {},
    f"POST {TRACES}": {"experiment_id": "{experiment}", "timestamp_ms": 5},
    f"PATCH {TRACES}/{{request_id}}": {"request_id": "{trace}", "timestamp_ms": 9, "status": "OK"},
    f"POST {TRACES}/delete-traces": {"experiment_id": "{experiment}", "request_ids": ["{trace}"]},
    f"PATCH {TRACES}/{{request_id}}/tags": {"request_id": "{trace}", **TAG},
    f"DELETE {TRACES}/{{request_id}}/tags": {"request_id": "{trace}", **KEY},
    f"POST {TRACES}/link-to-run": {"trace_ids": ["{trace}"], "run_id": "{run}"},
    f"POST {TRACES}/link-prompts": {
        "trace_id": "{trace}",
        "prompt_versions": [{"name": "p", "version": "1"}],
    },
    "POST /2.0/mlflow/webhooks": WEBHOOK,
    "PATCH /2.0/mlflow/webhooks/{webhook_id}": {"description": "d", "status": "DISABLED"},
    "DELETE /2.0/mlflow/webhooks/{webhook_id}": {},
    "POST /3.0/mlflow/workspaces": {"name": "team", "description": "d"},
    "PATCH /3.0/mlflow/workspaces/{workspace_name}": {"description": "d"},
    "DELETE /3.0/mlflow/workspaces/{workspace_name}": {},
    "PUT /3.0/mlflow-serverless/config/{key}": {"value": {"traces": "30d"}},
    "DELETE /3.0/mlflow-serverless/config/{key}": {},
    "PUT /3.0/mlflow-serverless/system-tables/readers": {"username": "ann", "workspaces": ["*"]},
    "DELETE /3.0/mlflow-serverless/system-tables/readers": {"username": "{reader}"},
    "POST /3.0/mlflow-serverless/queries": {"name": "new-{name}", "sql": "SELECT 1"},
    "PATCH /3.0/mlflow-serverless/queries/{name}": {"description": "d"},
    "DELETE /3.0/mlflow-serverless/queries/{name}": {"revision": 1},
    "POST /3.0/mlflow-serverless/alerts": {
        "name": "new-{name}",
        "sql": "SELECT 1 AS x",
        "condition": "MAX(x) > 1",
        "destinations": [{"type": "sns"}],
    },
    "PATCH /3.0/mlflow-serverless/alerts/{alert_id}": {"reminder_hours": 3},
    "DELETE /3.0/mlflow-serverless/alerts/{alert_id}": {"revision": 1},
    "POST /3.0/mlflow-serverless/alerts/{alert_id}/test": {},
    f"DELETE {FILES}/artifacts/{{artifact_path+}}": {},
    f"POST {FILES}/mpu/create/{{artifact_path+}}": {"path": "a.txt", "num_parts": 1},
    f"POST {FILES}/mpu/complete/{{artifact_path+}}": {"path": "a.txt", "upload_id": "u"},
    f"POST {FILES}/mpu/abort/{{artifact_path+}}": {"path": "a.txt", "upload_id": "u"},
    f"POST {MCP_SERVERS}": {"name": "com.example/new-{name}"},
    f"POST {MCP_SERVER}/versions/{{version+}}/tags": {**KEY, "value": "other"},
    f"DELETE {MCP_SERVER}/versions/{{version+}}/tags/{{key+}}": {},
    f"PATCH {MCP_SERVER}/versions/{{version+}}": {"status": "active"},
    f"DELETE {MCP_SERVER}/versions/{{version+}}": {},
    f"POST {MCP_SERVER}/versions": {"server_json": {"name": "{name+}", "version": "3.0.0"}},
    f"POST {MCP_SERVER}/endpoints": {"url": "https://b", "server_alias": "latest"},
    f"PATCH {MCP_SERVER}/endpoints/{{endpoint_id}}": {"url": "https://b"},
    f"DELETE {MCP_SERVER}/endpoints/{{endpoint_id}}": {},
    f"POST {MCP_SERVER}/tags": {**KEY, "value": "other"},
    f"DELETE {MCP_SERVER}/tags/{{key+}}": {},
    f"POST {MCP_SERVER}/aliases": {"alias": "champion", "version": "2.0.0"},
    f"DELETE {MCP_SERVER}/aliases/{{alias+}}": {},
    f"PATCH {MCP_SERVER}": {"display_name": "Shown"},
    f"DELETE {MCP_SERVER}": {},
    f"POST {SKILLS}": {"name": "new-{name}"},
    f"POST {SKILLS}/bulk-register": {
        "skills": [
            {"name": "{name}", **SKILL_SOURCE, "subpath": "s"},
            {"name": "bulk-{name}", **SKILL_SOURCE},
        ]
    },
    **{
        f"{method} {path}{below}": fields
        for path in SKILL_PATHS
        for method, below, fields in (
            ("POST", "/versions/{version}/tags", {**KEY, "value": "other"}),
            ("DELETE", "/versions/{version}/tags/{key+}", {}),
            ("PATCH", "/versions/{version}", {"status": "active"}),
            ("DELETE", "/versions/{version}", {}),
            ("POST", "/versions", SKILL_SOURCE),
            ("POST", "/tags", {**KEY, "value": "other"}),
            ("DELETE", "/tags/{key+}", {}),
            ("POST", "/aliases", {"alias": "champion", "version": 2}),
            ("DELETE", "/aliases/{alias}", {}),
            ("PATCH", "", {"description": "Shown"}),
            ("DELETE", "", {}),
        )
    },
    f"POST {GATEWAY}/secrets/create": {"secret_name": "new", "secret_value": {"api_key": "k"}},
    f"POST {GATEWAY}/secrets/update": {**SECRET, "auth_config": {"region": "x"}},
    f"DELETE {GATEWAY}/secrets/delete": SECRET,
    f"POST {GATEWAY}/model-definitions/create": {
        **SECRET,
        "name": "new",
        "provider": "openai",
        "model_name": "gpt-4o",
    },
    f"POST {GATEWAY}/model-definitions/update": {**DEFINITION, "name": "renamed"},
    f"DELETE {GATEWAY}/model-definitions/delete": {"model_definition_id": "{other_definition}"},
    f"POST {GATEWAY}/endpoints/create": {
        "name": "new",
        "model_configs": [LINKED],
        "usage_tracking": False,
    },
    f"POST {GATEWAY}/endpoints/update": {**ENDPOINT, "name": "renamed"},
    f"DELETE {GATEWAY}/endpoints/delete": ENDPOINT,
    f"POST {GATEWAY}/endpoints/models/attach": {
        **ENDPOINT,
        "model_config": {**LINKED, "linkage_type": "FALLBACK"},
    },
    f"POST {GATEWAY}/endpoints/models/detach": {**ENDPOINT, **DEFINITION},
    f"POST {GATEWAY}/endpoints/bindings/create": {**ENDPOINT, **BOUND, "resource_id": "other"},
    f"DELETE {GATEWAY}/endpoints/bindings/delete": {**ENDPOINT, **BOUND},
    f"POST {GATEWAY}/endpoints/set-tag": {**ENDPOINT, **TAG},
    f"DELETE {GATEWAY}/endpoints/delete-tag": {**ENDPOINT, **KEY},
    # Only such a policy reads the same number of experiments in each run.
    f"POST {GATEWAY}/budgets/create": {
        **BUDGET,
        "target_scope": "ENDPOINT",
        "target_value": "{endpoint}",
    },
    f"POST {GATEWAY}/budgets/update": {"budget_policy_id": "{budget}", "budget_amount": 7},
    f"DELETE {GATEWAY}/budgets/delete": {"budget_policy_id": "{budget}"},
    f"POST {GATEWAY}/guardrails/create": GUARDRAIL,
    f"DELETE {GATEWAY}/guardrails/delete": GUARDED,
    f"POST {GATEWAY}/guardrails/add-to-endpoint": {
        **ENDPOINT,
        "guardrail_id": "{other_guardrail}",
    },
    f"DELETE {GATEWAY}/guardrails/remove-from-endpoint": {**ENDPOINT, **GUARDED},
    f"PATCH {GATEWAY}/guardrails/update-config": {**ENDPOINT, **GUARDED, "execution_order": 2},
}
