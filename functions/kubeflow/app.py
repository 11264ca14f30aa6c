"""The routes of Kubeflow's model registry. Both versions of Kubeflow's API (``v1`` and
``v1alpha3``) call the same functions; only ``v1alpha3`` has experiments and runs."""

from __future__ import annotations

from typing import Final

from kubeflow import artifacts, experiments, health, models, run_artifacts, serving, versions
from kubeflow.calls import ERROR_FORMAT, PREFIX, V1ALPHA3, RouteFunction, route_function
from kubeflow.parsing import (
    ARTIFACT,
    artifact,
    entity,
    find_child,
    find_one,
    list_artifacts,
    without_body,
)
from mlcore.http import Parse, PlainRoute, lambda_handler, nothing
from mlcore.kubeflow import kinds
from mlcore.kubeflow.body import CREATE, UPDATE, UPSERT
from mlcore.kubeflow.entity import V1

_Row = tuple[str, str, Parse, RouteFunction, str]
"""Method, path, parser, function, policy. A policy without a module is one of
:mod:`mlcore.policies.kubeflow`."""

_ANYBODY: Final = "shared_rules.anybody"
_ADMINISTRATORS: Final = "shared_rules.administrators"

_MODELS: Final = "/registered_models"
_VERSIONS: Final = "/model_versions"
_ENVIRONMENTS: Final = "/serving_environments"
_SERVICES: Final = "/inference_services"
_EXPERIMENTS: Final = "/experiments"
_RUNS: Final = "/experiment_runs"

_MODEL: Final = kinds.REGISTERED_MODEL
_VERSION: Final = kinds.MODEL_VERSION
_ENVIRONMENT: Final = kinds.SERVING_ENVIRONMENT
_SERVICE: Final = kinds.INFERENCE_SERVICE
_EXPERIMENT: Final = kinds.EXPERIMENT
_RUN: Final = kinds.EXPERIMENT_RUN
_MODEL_ARTIFACT: Final = kinds.MODEL_ARTIFACT

_IN_BOTH_VERSIONS: Final[tuple[_Row, ...]] = (
    ("GET", "/registered_model", find_one(), models.find, "find_model"),
    ("GET", _MODELS, without_body(), models.list_all, _ANYBODY),
    ("POST", _MODELS, entity(_MODEL, CREATE), models.create, "create_model"),
    ("GET", f"{_MODELS}/{{id}}", without_body(_MODEL), models.get, "read_model"),
    ("PATCH", f"{_MODELS}/{{id}}", entity(_MODEL, UPDATE, _MODEL), models.update, "update_model"),
    ("DELETE", f"{_MODELS}/{{id}}", without_body(_MODEL), models.delete, "delete_model"),
    (
        "GET",
        f"{_MODELS}/{{id}}/versions",
        without_body(_MODEL),
        versions.list_of_model,
        "read_versions_of_model",
    ),
    (
        "POST",
        f"{_MODELS}/{{id}}/versions",
        entity(_VERSION, UPSERT, _MODEL),
        versions.create_in_model,
        "write_version_in_model",
    ),
    ("GET", "/model_version", find_child(), versions.find, "find_version"),
    ("GET", _VERSIONS, without_body(), versions.list_all, _ANYBODY),
    ("POST", _VERSIONS, entity(_VERSION, CREATE), versions.create, "create_version"),
    ("GET", f"{_VERSIONS}/{{id}}", without_body(_VERSION), versions.get, "read_version"),
    (
        "PATCH",
        f"{_VERSIONS}/{{id}}",
        entity(_VERSION, UPDATE, _VERSION),
        versions.update,
        "update_version",
    ),
    ("DELETE", f"{_VERSIONS}/{{id}}", without_body(_VERSION), versions.delete, "delete_version"),
    (
        "GET",
        f"{_VERSIONS}/{{id}}/artifacts",
        list_artifacts(_VERSION),
        artifacts.list_of_version,
        "read_version",
    ),
    (
        "POST",
        f"{_VERSIONS}/{{id}}/artifacts",
        artifact(UPSERT, _VERSION),
        artifacts.upsert_of_version,
        "write_artifact_of_version",
    ),
    ("GET", "/artifact", find_child(*kinds.ARTIFACT_KINDS), artifacts.find, "find_artifact"),
    ("GET", "/artifacts", list_artifacts(), artifacts.list_all, "list_artifacts"),
    ("POST", "/artifacts", artifact(CREATE), artifacts.create, "create_own"),
    ("GET", "/artifacts/{id}", without_body(ARTIFACT), artifacts.get, "read_artifact"),
    ("PATCH", "/artifacts/{id}", artifact(UPDATE, ARTIFACT), artifacts.update, "update_artifact"),
    ("DELETE", "/artifacts/{id}", without_body(ARTIFACT), artifacts.delete, "delete_artifact"),
    (
        "GET",
        "/model_artifact",
        find_child(_MODEL_ARTIFACT.name),
        artifacts.find,
        "find_artifact",
    ),
    ("GET", "/model_artifacts", without_body(), artifacts.list_model_artifacts, "list_artifacts"),
    (
        "POST",
        "/model_artifacts",
        entity(_MODEL_ARTIFACT, CREATE),
        artifacts.create_model_artifact,
        "create_own",
    ),
    (
        "GET",
        "/model_artifacts/{id}",
        without_body(_MODEL_ARTIFACT),
        artifacts.get_model_artifact,
        "read_artifact",
    ),
    (
        "PATCH",
        "/model_artifacts/{id}",
        entity(_MODEL_ARTIFACT, UPDATE, _MODEL_ARTIFACT),
        artifacts.update_model_artifact,
        "update_artifact",
    ),
    (
        "DELETE",
        "/model_artifacts/{id}",
        without_body(ARTIFACT),
        artifacts.delete,
        "delete_artifact",
    ),
    (
        "GET",
        "/serving_environment",
        find_one(),
        serving.find_environment,
        "kubeflow_serving.read_serving",
    ),
    (
        "GET",
        _ENVIRONMENTS,
        without_body(),
        serving.list_environments,
        "kubeflow_serving.read_serving",
    ),
    ("POST", _ENVIRONMENTS, entity(_ENVIRONMENT, CREATE), serving.create_environment, "create_own"),
    (
        "GET",
        f"{_ENVIRONMENTS}/{{id}}",
        without_body(_ENVIRONMENT),
        serving.get_environment,
        "kubeflow_serving.read_serving",
    ),
    (
        "PATCH",
        f"{_ENVIRONMENTS}/{{id}}",
        entity(_ENVIRONMENT, UPDATE, _ENVIRONMENT),
        serving.update_environment,
        "kubeflow_serving.write_environment",
    ),
    (
        "DELETE",
        f"{_ENVIRONMENTS}/{{id}}",
        without_body(_ENVIRONMENT),
        serving.delete_environment,
        "kubeflow_serving.delete_environment",
    ),
    (
        "GET",
        f"{_ENVIRONMENTS}/{{id}}/inference_services",
        without_body(_ENVIRONMENT),
        serving.list_services_of_environment,
        "kubeflow_serving.read_serving",
    ),
    (
        "POST",
        f"{_ENVIRONMENTS}/{{id}}/inference_services",
        entity(_SERVICE, CREATE, _ENVIRONMENT),
        serving.create_service_in_environment,
        "kubeflow_serving.create_service",
    ),
    (
        "GET",
        "/inference_service",
        find_child(),
        serving.find_service,
        "kubeflow_serving.find_service",
    ),
    ("GET", _SERVICES, without_body(), serving.list_services, "kubeflow_serving.read_serving"),
    (
        "POST",
        _SERVICES,
        entity(_SERVICE, CREATE),
        serving.create_service,
        "kubeflow_serving.create_service",
    ),
    (
        "GET",
        f"{_SERVICES}/{{id}}",
        without_body(_SERVICE),
        serving.get_service,
        "kubeflow_serving.read_service",
    ),
    (
        "PATCH",
        f"{_SERVICES}/{{id}}",
        entity(_SERVICE, UPDATE, _SERVICE),
        serving.update_service,
        "kubeflow_serving.update_service",
    ),
    (
        "DELETE",
        f"{_SERVICES}/{{id}}",
        without_body(_SERVICE),
        serving.delete_service,
        "kubeflow_serving.delete_service",
    ),
    (
        "GET",
        f"{_SERVICES}/{{id}}/model",
        without_body(_SERVICE),
        serving.model_of_service,
        "kubeflow_serving.read_service",
    ),
    (
        "GET",
        f"{_SERVICES}/{{id}}/version",
        without_body(_SERVICE),
        serving.version_of_service,
        "kubeflow_serving.read_served_version",
    ),
    (
        "GET",
        f"{_SERVICES}/{{id}}/serves",
        without_body(_SERVICE),
        serving.list_serves,
        "kubeflow_serving.read_service",
    ),
    (
        "POST",
        f"{_SERVICES}/{{id}}/serves",
        entity(kinds.SERVE_MODEL, CREATE, _SERVICE),
        serving.create_serve,
        "kubeflow_serving.create_serve",
    ),
    (
        "DELETE",
        f"{_SERVICES}/{{id}}/serves/{{serve_id}}",
        without_body(_SERVICE),
        serving.delete_serve,
        "kubeflow_serving.delete_service",
    ),
)

_IN_V1ALPHA3: Final[tuple[_Row, ...]] = (
    ("GET", "/experiment", find_one(), experiments.find, "find_experiment"),
    ("GET", _EXPERIMENTS, without_body(), experiments.list_all, _ANYBODY),
    ("POST", _EXPERIMENTS, entity(_EXPERIMENT, CREATE), experiments.create, "create_experiment"),
    (
        "GET",
        f"{_EXPERIMENTS}/{{id}}",
        without_body(_EXPERIMENT),
        experiments.get,
        "read_experiment",
    ),
    (
        "PATCH",
        f"{_EXPERIMENTS}/{{id}}",
        entity(_EXPERIMENT, UPDATE, _EXPERIMENT),
        experiments.update,
        "update_experiment",
    ),
    (
        "DELETE",
        f"{_EXPERIMENTS}/{{id}}",
        without_body(_EXPERIMENT),
        experiments.delete,
        "delete_experiment",
    ),
    (
        "GET",
        f"{_EXPERIMENTS}/{{id}}/experiment_runs",
        without_body(_EXPERIMENT),
        experiments.list_runs_of_experiment,
        "read_runs_of_experiment",
    ),
    (
        "POST",
        f"{_EXPERIMENTS}/{{id}}/experiment_runs",
        entity(_RUN, UPSERT, _EXPERIMENT),
        experiments.create_run_in_experiment,
        "write_run_in_experiment",
    ),
    ("GET", "/experiment_run", find_child(), experiments.find_run, "find_run"),
    ("GET", _RUNS, without_body(), experiments.list_runs, _ANYBODY),
    ("POST", _RUNS, entity(_RUN, CREATE), experiments.create_run, "create_run"),
    (
        "GET",
        f"{_RUNS}/metric_history",
        without_body(),
        run_artifacts.history_of_all,
        _ADMINISTRATORS,
    ),
    ("GET", f"{_RUNS}/{{id}}", without_body(_RUN), experiments.get_run, "read_run"),
    ("PATCH", f"{_RUNS}/{{id}}", entity(_RUN, UPDATE, _RUN), experiments.update_run, "update_run"),
    ("DELETE", f"{_RUNS}/{{id}}", without_body(_RUN), experiments.delete_run, "delete_run"),
    (
        "GET",
        f"{_RUNS}/{{id}}/artifacts",
        list_artifacts(_RUN),
        artifacts.list_of_run,
        "read_run",
    ),
    (
        "POST",
        f"{_RUNS}/{{id}}/artifacts",
        artifact(UPSERT, _RUN),
        artifacts.upsert_of_run,
        "write_artifact_of_run",
    ),
    (
        "GET",
        f"{_RUNS}/{{id}}/metric_history",
        without_body(_RUN),
        run_artifacts.history_of_run,
        "read_run",
    ),
)

_HEALTH: Final = (
    PlainRoute("GET", "/readyz/health", nothing, health.health, "shared_rules.public"),
    PlainRoute("GET", "/readyz/isDirty", nothing, health.is_dirty, "shared_rules.public"),
)


def _policy(name: str) -> str:
    return name if "." in name else f"kubeflow.{name}"


def _routes(api: str, table: tuple[_Row, ...]) -> list[PlainRoute]:
    return [
        PlainRoute(
            method, f"{PREFIX}/{api}{path}", parse, route_function(function), _policy(policy)
        )
        for method, path, parse, function, policy in table
    ]


PLAIN_ROUTES: Final = (
    *_HEALTH,
    *_routes(V1, _IN_BOTH_VERSIONS),
    *_routes(V1ALPHA3, _IN_BOTH_VERSIONS),
    *_routes(V1ALPHA3, _IN_V1ALPHA3),
)

handler = lambda_handler((), PLAIN_ROUTES, ERROR_FORMAT, in_workspaces=f"{PREFIX}/")
