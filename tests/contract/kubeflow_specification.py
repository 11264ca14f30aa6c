"""What the API of Kubeflow's model registry promises: its operations, their parameters, the fields
of its schemas. Data alone, and apart from the product's own tables."""

from __future__ import annotations

from typing import Final, NamedTuple

TEXT: Final = "text"
TEXTS: Final = "texts"
DOUBLE: Final = "double"
INT64: Final = "int64"
TIME: Final = "time"
"""Milliseconds as a text of digits."""
ID: Final = "id"
"""The id of another entity, a text of digits."""
PROPERTIES: Final = "properties"

LIFE = ("LIVE", "ARCHIVED")
RUN = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")
ARTIFACT = (
    *("UNKNOWN", "PENDING", "LIVE", "MARKED_FOR_DELETION"),
    *("DELETED", "ABANDONED", "REFERENCE"),
)
EXECUTION = ("UNKNOWN", "NEW", "RUNNING", "COMPLETE", "FAILED", "CACHED", "CANCELED")


class Schema(NamedTuple):
    """``own`` fields by their types (a tuple: an enumeration's words)."""

    own: dict[str, str | tuple[str, ...]]
    required: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    """What a PATCH does not take."""
    always: tuple[str, ...] = ()
    """What an answer has beside what all have."""
    artifact_type: str = ""


def _texts(*names: str) -> dict[str, str | tuple[str, ...]]:
    return dict.fromkeys(names, TEXT)


BASE: Final = {"description": TEXT, "externalId": TEXT, "customProperties": PROPERTIES}
"""Of all schemas, beside their names."""

SCHEMAS: Final = {
    "RegisteredModel": Schema(
        {
            **_texts("readme", "maturity", "provider", "logo", "license", "licenseLink"),
            **_texts("libraryName", "owner"),
            "language": TEXTS,
            "tasks": TEXTS,
            "state": LIFE,
        },
        ("name",),
        always=("state",),
    ),
    "ModelVersion": Schema(
        {"registeredModelId": ID, "state": LIFE, "author": TEXT},
        ("name", "registeredModelId"),
        ("registeredModelId",),
        ("registeredModelId", "state"),
    ),
    "ServingEnvironment": Schema({}, ("name",)),
    "InferenceService": Schema(
        {
            **{"registeredModelId": ID, "servingEnvironmentId": ID, "modelVersionId": ID},
            **{"runtime": TEXT, "desiredState": ("DEPLOYED", "UNDEPLOYED")},
        },
        ("registeredModelId", "servingEnvironmentId"),
        ("registeredModelId", "servingEnvironmentId"),
        ("registeredModelId", "servingEnvironmentId", "desiredState"),
    ),
    "ServeModel": Schema(
        {"modelVersionId": ID, "lastKnownState": EXECUTION},
        ("modelVersionId",),
        ("modelVersionId",),
        ("modelVersionId", "lastKnownState"),
    ),
    "Experiment": Schema({"owner": TEXT, "state": LIFE}, ("name",), always=("state",)),
    "ExperimentRun": Schema(
        {
            **{"experimentId": ID, "startTimeSinceEpoch": TIME, "endTimeSinceEpoch": TIME},
            **{"status": RUN, "state": LIFE, "owner": TEXT},
        },
        ("experimentId",),
        ("experimentId", "startTimeSinceEpoch"),
        ("experimentId", "state", "status"),
    ),
    "ModelArtifact": Schema(
        {
            **_texts("uri", "modelFormatName", "modelFormatVersion", "storageKey", "storagePath"),
            **_texts("serviceAccountName", "modelSourceKind", "modelSourceClass"),
            **_texts("modelSourceGroup", "modelSourceId", "modelSourceName"),
            "state": ARTIFACT,
        },
        artifact_type="model-artifact",
    ),
    "DocArtifact": Schema({"uri": TEXT, "state": ARTIFACT}, artifact_type="doc-artifact"),
    "DataSet": Schema(
        {
            **_texts("uri", "digest", "sourceType", "source", "schema", "profile"),
            "state": ARTIFACT,
        },
        artifact_type="dataset-artifact",
    ),
    "Metric": Schema(
        {"value": DOUBLE, "timestamp": TIME, "step": INT64, "state": ARTIFACT},
        ("value",),
        always=("value",),
        artifact_type="metric",
    ),
    "Parameter": Schema(
        {
            "value": TEXT,
            "parameterType": ("string", "number", "boolean", "object"),
            "state": ARTIFACT,
        },
        artifact_type="parameter",
    ),
}
ARTIFACTS: Final = tuple(name for name, schema in SCHEMAS.items() if schema.artifact_type)

PAGE: Final = ("pageSize", "orderBy", "sortOrder", "nextPageToken")


class Operation(NamedTuple):
    """``path`` below the prefix of the API's version."""

    method: str
    path: str
    answer: str
    status: int = 200
    old_only: bool = False
    """Whether v1 has left it out."""

    @property
    def is_list(self) -> bool:
        return self.answer.endswith("List")

    @property
    def schema(self) -> str:
        """Of what it takes and answers; ``Artifact`` is any artifact."""
        return self.answer.removesuffix("List")


def _entity(
    name: str,
    path: str,
    *,
    children: tuple[tuple[str, str], ...] = (),
    old_only: bool = False,
) -> list[Operation]:
    """Find, list, create, get and update; list and create below it."""
    single = path.removesuffix("s")
    results = [
        ("GET", single, name, 200),
        ("GET", path, f"{name}List", 200),
        ("POST", path, name, 201),
        ("GET", f"{path}/{{id}}", name, 200),
        ("PATCH", f"{path}/{{id}}", name, 200),
    ]
    for child, below in children:
        results += [
            ("GET", f"{path}/{{id}}/{below}", f"{child}List", 200),
            ("POST", f"{path}/{{id}}/{below}", child, 201),
        ]
    return [Operation(*each, old_only) for each in results]


OPERATIONS: Final = (
    *_entity("RegisteredModel", "registered_models", children=(("ModelVersion", "versions"),)),
    *_entity("ModelVersion", "model_versions", children=(("Artifact", "artifacts"),)),
    *_entity("Artifact", "artifacts"),
    *_entity("ModelArtifact", "model_artifacts"),
    *_entity(
        "ServingEnvironment",
        "serving_environments",
        children=(("InferenceService", "inference_services"),),
    ),
    *_entity("InferenceService", "inference_services", children=(("ServeModel", "serves"),)),
    Operation("GET", "inference_services/{id}/model", "RegisteredModel"),
    Operation("GET", "inference_services/{id}/version", "ModelVersion"),
    *_entity(
        "Experiment",
        "experiments",
        children=(("ExperimentRun", "experiment_runs"),),
        old_only=True,
    ),
    *_entity(
        "ExperimentRun", "experiment_runs", children=(("Artifact", "artifacts"),), old_only=True
    ),
    Operation("GET", "experiment_runs/metric_history", "MetricList", 200, True),
    Operation("GET", "experiment_runs/{id}/metric_history", "MetricList", 200, True),
)
