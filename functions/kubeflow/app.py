"""The routes of Kubeflow's model registry, in both versions of its API over one store."""

from __future__ import annotations

from typing import Final

from kubeflow import artifacts, experiments, health, models, run_artifacts, serving, versions
from kubeflow.answers import MANNER, OLD, PREFIX, Function, answering
from mlcore.http import PlainRoute, lambda_handler
from mlcore.kubeflow.entity import V1

_MODELS: Final = "/registered_models"
_VERSIONS: Final = "/model_versions"
_ENVIRONMENTS: Final = "/serving_environments"
_SERVICES: Final = "/inference_services"
_EXPERIMENTS: Final = "/experiments"
_RUNS: Final = "/experiment_runs"

_BOTH: Final[tuple[tuple[str, str, Function, str], ...]] = (
    ("GET", "/registered_model", models.find, "kubeflow.find_model"),
    ("GET", _MODELS, models.list_all, "requests.anybody"),
    ("POST", _MODELS, models.create, "kubeflow.create_model"),
    ("GET", f"{_MODELS}/{{id}}", models.get, "kubeflow.read_model"),
    ("PATCH", f"{_MODELS}/{{id}}", models.update, "kubeflow.update_model"),
    ("DELETE", f"{_MODELS}/{{id}}", models.delete, "kubeflow.delete_model"),
    ("GET", f"{_MODELS}/{{id}}/versions", versions.list_of_model, "kubeflow.read_model"),
    ("POST", f"{_MODELS}/{{id}}/versions", versions.create_in_model, "kubeflow.update_model"),
    ("GET", "/model_version", versions.find, "kubeflow.find_version"),
    ("GET", _VERSIONS, versions.list_all, "requests.anybody"),
    ("POST", _VERSIONS, versions.create, "kubeflow.create_version"),
    ("GET", f"{_VERSIONS}/{{id}}", versions.get, "kubeflow.read_version"),
    ("PATCH", f"{_VERSIONS}/{{id}}", versions.update, "kubeflow.update_version"),
    ("DELETE", f"{_VERSIONS}/{{id}}", versions.delete, "kubeflow.delete_version"),
    ("GET", f"{_VERSIONS}/{{id}}/artifacts", artifacts.list_of_version, "kubeflow.read_version"),
    (
        "POST",
        f"{_VERSIONS}/{{id}}/artifacts",
        artifacts.upsert_of_version,
        "kubeflow.write_artifact",
    ),
    ("GET", "/artifact", artifacts.find, "kubeflow.find_artifact"),
    ("GET", "/artifacts", artifacts.list_all, "kubeflow.list_artifacts"),
    ("POST", "/artifacts", artifacts.create, "kubeflow.create_own"),
    ("GET", "/artifacts/{id}", artifacts.get, "kubeflow.read_artifact"),
    ("PATCH", "/artifacts/{id}", artifacts.update, "kubeflow.update_artifact"),
    ("DELETE", "/artifacts/{id}", artifacts.delete, "kubeflow.delete_artifact"),
    ("GET", "/model_artifact", artifacts.find_model_artifact, "kubeflow.find_artifact"),
    ("GET", "/model_artifacts", artifacts.list_model_artifacts, "kubeflow.list_artifacts"),
    ("POST", "/model_artifacts", artifacts.create_model_artifact, "kubeflow.create_own"),
    ("GET", "/model_artifacts/{id}", artifacts.get_model_artifact, "kubeflow.read_artifact"),
    (
        "PATCH",
        "/model_artifacts/{id}",
        artifacts.update_model_artifact,
        "kubeflow.update_artifact",
    ),
    ("DELETE", "/model_artifacts/{id}", artifacts.delete, "kubeflow.delete_artifact"),
    ("GET", "/serving_environment", serving.find_environment, "kubeflow.read_serving"),
    ("GET", _ENVIRONMENTS, serving.list_environments, "kubeflow.read_serving"),
    ("POST", _ENVIRONMENTS, serving.create_environment, "kubeflow.create_own"),
    ("GET", f"{_ENVIRONMENTS}/{{id}}", serving.get_environment, "kubeflow.read_serving"),
    ("PATCH", f"{_ENVIRONMENTS}/{{id}}", serving.update_environment, "kubeflow.write_environment"),
    ("DELETE", f"{_ENVIRONMENTS}/{{id}}", serving.delete_environment, "kubeflow.write_environment"),
    (
        "GET",
        f"{_ENVIRONMENTS}/{{id}}/inference_services",
        serving.list_services_of_environment,
        "kubeflow.read_serving",
    ),
    (
        "POST",
        f"{_ENVIRONMENTS}/{{id}}/inference_services",
        serving.create_service_in_environment,
        "kubeflow.serve_model",
    ),
    ("GET", "/inference_service", serving.find_service, "kubeflow.read_serving"),
    ("GET", _SERVICES, serving.list_services, "kubeflow.read_serving"),
    ("POST", _SERVICES, serving.create_service, "kubeflow.serve_model"),
    ("GET", f"{_SERVICES}/{{id}}", serving.get_service, "kubeflow.read_serving"),
    ("PATCH", f"{_SERVICES}/{{id}}", serving.update_service, "kubeflow.write_service"),
    ("DELETE", f"{_SERVICES}/{{id}}", serving.delete_service, "kubeflow.write_service"),
    ("GET", f"{_SERVICES}/{{id}}/model", serving.model_of_service, "kubeflow.served_model"),
    ("GET", f"{_SERVICES}/{{id}}/version", serving.version_of_service, "kubeflow.served_model"),
    ("GET", f"{_SERVICES}/{{id}}/serves", serving.list_serves, "kubeflow.read_serving"),
    ("POST", f"{_SERVICES}/{{id}}/serves", serving.create_serve, "kubeflow.write_service"),
    (
        "DELETE",
        f"{_SERVICES}/{{id}}/serves/{{serve_id}}",
        serving.delete_serve,
        "kubeflow.write_service",
    ),
)

_OLD_ONLY: Final[tuple[tuple[str, str, Function, str], ...]] = (
    ("GET", "/experiment", experiments.find, "kubeflow.find_experiment"),
    ("GET", _EXPERIMENTS, experiments.list_all, "requests.anybody"),
    ("POST", _EXPERIMENTS, experiments.create, "kubeflow.create_experiment"),
    ("GET", f"{_EXPERIMENTS}/{{id}}", experiments.get, "kubeflow.read_experiment"),
    ("PATCH", f"{_EXPERIMENTS}/{{id}}", experiments.update, "kubeflow.update_experiment"),
    ("DELETE", f"{_EXPERIMENTS}/{{id}}", experiments.delete, "kubeflow.delete_experiment"),
    (
        "GET",
        f"{_EXPERIMENTS}/{{id}}/experiment_runs",
        experiments.list_runs_of_experiment,
        "kubeflow.read_experiment",
    ),
    (
        "POST",
        f"{_EXPERIMENTS}/{{id}}/experiment_runs",
        experiments.create_run_in_experiment,
        "kubeflow.make_run",
    ),
    ("GET", "/experiment_run", experiments.find_run, "kubeflow.find_run"),
    ("GET", _RUNS, experiments.list_runs, "requests.anybody"),
    ("POST", _RUNS, experiments.create_run, "kubeflow.make_run"),
    ("GET", f"{_RUNS}/metric_history", run_artifacts.history_of_all, "requests.administrators"),
    ("GET", f"{_RUNS}/{{id}}", experiments.get_run, "kubeflow.read_run"),
    ("PATCH", f"{_RUNS}/{{id}}", experiments.update_run, "kubeflow.update_run"),
    ("DELETE", f"{_RUNS}/{{id}}", experiments.delete_run, "kubeflow.delete_run"),
    ("GET", f"{_RUNS}/{{id}}/artifacts", artifacts.list_of_run, "kubeflow.read_run"),
    ("POST", f"{_RUNS}/{{id}}/artifacts", artifacts.upsert_of_run, "kubeflow.write_artifact"),
    ("GET", f"{_RUNS}/{{id}}/metric_history", run_artifacts.history_of_run, "kubeflow.read_run"),
)

_HEALTH: Final = (
    PlainRoute("GET", "/readyz/health", health.health, "requests.public"),
    PlainRoute("GET", "/readyz/isDirty", health.is_dirty, "requests.public"),
)


def _routes(api: str, table: tuple[tuple[str, str, Function, str], ...]) -> list[PlainRoute]:
    return [
        PlainRoute(method, f"{PREFIX}/{api}{path}", answering(function), policy)
        for method, path, function, policy in table
    ]


PLAIN_ROUTES: Final = (
    *_HEALTH,
    *_routes(V1, _BOTH),
    *_routes(OLD, _BOTH),
    *_routes(OLD, _OLD_ONLY),
)

handler = lambda_handler((), PLAIN_ROUTES, MANNER)
