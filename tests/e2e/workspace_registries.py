"""What requests to the two registries beside MLflow's own may hold, Kubeflow's and that of MCP
servers, and to the configuration of the gateway."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.workspace_values import Values

KUBEFLOW: Final = "/api/model_registry/"
MCP_SERVERS: Final = "/3.0/mlflow/mcp-servers"

GATEWAY: Final = "/3.0/mlflow/gateway"
GATEWAY_KINDS: Final = {
    "secret_id": "secret",
    "model_definition_id": "definition",
    "endpoint_id": "gateway_endpoint",
    "budget_policy_id": "budget",
}
"""What the ids of its messages are of."""

KINDS: Final = {
    "registered_models": "registered_kmodel",
    "model_versions": "kversion",
    "artifacts": "kartifact",
    "model_artifacts": "kmodel_artifact",
    "serving_environments": "kenvironment",
    "inference_services": "kservice",
    "experiments": "kexperiment",
    "experiment_runs": "krun",
    "serves": "kserve",
    "inference_service": "kservice",
    "versions": "kversion",
}
"""Of the entities that Kubeflow's paths name: what ids are of."""
_MODEL_ARTIFACT: Final = "model-artifact"


class RegistryValues(Values):
    """Bodies and names for all three."""

    def kubeflow_id(self, path: str, name: str) -> str:
        """What stands in a path for ``{id}`` or ``{serve_id}``."""
        before = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
        return self._ref(KINDS[before])

    def makes(self, path: str) -> tuple[str, str] | None:
        """What a POST to Kubeflow's registry makes, and where its answer says the id."""
        return KINDS[path.rpartition("/")[2]], "id"

    def kubeflow_body(self, method: str, path: str) -> dict[str, Any]:
        text = self._text()
        properties = {
            "common": {"string_value": text, "metadataType": "MetadataStringValue"},
        }
        results: dict[str, Any] = {"description": text, "customProperties": properties}
        kind = path.rpartition("/")[2]
        if method == "PATCH":
            if "artifacts" in path:
                results["artifactType"] = _MODEL_ARTIFACT
            return results
        results["name"] = f"{self._name(KINDS[kind], own=True)}-{self._rng.randint(1, 9)}"
        match KINDS[kind]:
            case "kversion":
                results["registeredModelId"] = self._ref("registered_kmodel")
            case "kartifact" | "kmodel_artifact":
                results |= {"artifactType": _MODEL_ARTIFACT, "uri": f"s3://{self._marker}/x"}
            case "kservice":
                results["registeredModelId"] = self._ref("registered_kmodel")
                results["servingEnvironmentId"] = self._ref("kenvironment")
            case "kserve":
                results["modelVersionId"] = self._ref("kversion")
            case "krun":
                results["experimentId"] = self._ref("kexperiment")
        return results

    def kubeflow_query(self, path: str) -> dict[str, str]:
        """For the look-ups of one entity, which are by name."""
        kind = path.rpartition("/")[2]
        if f"{kind}s" not in KINDS or "{" in path:
            return {}
        query = {"name": f"{self._name(KINDS[f'{kind}s'])}-{self._rng.randint(1, 9)}"}
        parents = {"model_version": "registered_kmodel", "experiment_run": "kexperiment"}
        parents["inference_service"] = "kenvironment"
        if kind in parents:
            query["parentResourceId"] = self._ref(parents[kind])
        return query

    def mcp_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a request to the registry of MCP servers, as it would have them."""
        makes = self._route.endswith(("/mcp-servers", "/versions"))
        name = f"com.{self._name('server', own=makes)}/server"
        results = {**fields, "name": name}
        made = {
            "server_json": {"name": name, "version": self._version(), "description": self._text()},
            "version": self._version(),
            "server_version": "1.0.0",
            "url": f"https://{self._marker}.example/{self._rng.randint(1, 9)}",
            "endpoint_id": self._ref("endpoint_id"),
            "status": "active",
        }
        for field in results.keys() & made.keys():
            results[field] = made[field]
        if self._route.endswith("/versions") and "server_json" not in results:
            results["server_json"] = made["server_json"]
        for field in ("icons", "tools", "connect_options", "server_alias", "transport_type"):
            results.pop(field, None)
        for field in ("filter_string", "order_by", "page_token"):
            results.pop(field, None)
        return results

    def _version(self) -> str:
        return self._rng.choice(("1.0.0", "1.0.0", "2.0.0"))

    def gateway_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a request about the gateway's configuration, as it would have them."""
        model = {
            "model_definition_id": self._ref("definition"),
            "linkage_type": "PRIMARY",
            "weight": 1.0,
        }
        named = f"{self._name('gateway', own=True)}-{self._numbers}"
        made: dict[str, Any] = {
            **{field: self._ref(kind) for field, kind in GATEWAY_KINDS.items()},
            **dict.fromkeys(("name", "secret_name"), named),
            "secret_value": {"api_key": self._text()},
            "auth_config": {},
            **{"provider": "openai", "model_name": "gpt-4o", "resource_type": "scorer"},
            "model_config": model,
            "model_configs": [model],
            "duration": {"unit": "DAYS", "value": 1},
            "target_scope": "WORKSPACE",
        }
        results = {field: made.get(field, value) for field, value in fields.items()}
        for field in ("routing_strategy", "fallback_config", "target_value", "page_token"):
            results.pop(field, None)
        if self._route.endswith("/get") and "name" in results and "endpoint_id" in results:
            del results["name"]
        return results
