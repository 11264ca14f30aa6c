"""The kinds of entities in Kubeflow's model registry, with their fields and the values that each
field may hold.

The source is the OpenAPI specification of the API (v1alpha3 and v1).
"""

from __future__ import annotations

from typing import Final, NamedTuple

TEXT: Final = "string"
TEXTS: Final = "array"
DOUBLE: Final = "number"
INT64: Final = "int64"
"""A number. In v1 it is shown as a text of digits; both forms are accepted in either version."""
TIME: Final = "time"
"""Milliseconds since the epoch, as text."""
REFERENCE: Final = "reference"
"""The id of another entity: a text of digits."""

LIFECYCLE_STATES: Final = ("LIVE", "ARCHIVED")
ARTIFACT_STATES: Final = (
    "UNKNOWN",
    "PENDING",
    "LIVE",
    "MARKED_FOR_DELETION",
    "DELETED",
    "ABANDONED",
    "REFERENCE",
)
EXECUTION_STATES: Final = (
    "UNKNOWN",
    "NEW",
    "RUNNING",
    "COMPLETE",
    "FAILED",
    "CACHED",
    "CANCELED",
)
RUN_STATUSES: Final = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")
DEPLOYMENT_STATES: Final = ("DEPLOYED", "UNDEPLOYED")
PARAMETER_TYPES: Final = ("string", "number", "boolean", "object")


class KindField(NamedTuple):
    """A field that one kind of entity in Kubeflow's registry has beyond the fields of all kinds."""

    name: str
    type: str = TEXT
    values: tuple[str, ...] = ()
    """Allowed values of an enumeration, whose name is ``type``."""
    default: str | None = None
    required: bool = False
    fixed: bool = False
    """Whether the field is set at creation and cannot be changed."""
    only: str = ""
    """The only API version that has the field; empty: all have it."""


class EntityKind(NamedTuple):
    """A kind of entity in Kubeflow's model registry, with its fields."""

    name: str
    title: str
    """The name of the kind's OpenAPI schema."""
    words: str
    """The kind's name in messages."""
    fields: tuple[KindField, ...] = ()
    named: bool = True
    """Whether a name is required at creation."""
    artifact_type: str = ""
    empty_is_none: tuple[str, ...] = ()
    """Fields in which MLflow does not distinguish an empty text from a missing one."""

    def field(self, name: str) -> KindField | None:
        return next((field for field in self.fields if field.name == name), None)


def _texts(*names: str) -> tuple[KindField, ...]:
    return tuple(KindField(name) for name in names)


def _state(
    title: str, values: tuple[str, ...] = LIFECYCLE_STATES, default: str | None = "LIVE"
) -> KindField:
    return KindField("state", title, values, default)


_ARTIFACT_STATE: Final = _state("ArtifactState", ARTIFACT_STATES, None)

REGISTERED_MODEL: Final = EntityKind(
    "registered_model",
    "RegisteredModel",
    "registered model",
    (
        *_texts("readme", "maturity"),
        KindField("language", TEXTS),
        KindField("tasks", TEXTS),
        *_texts("provider", "logo", "license", "licenseLink", "libraryName", "owner"),
        _state("RegisteredModelState"),
    ),
    empty_is_none=("description",),
)
MODEL_VERSION: Final = EntityKind(
    "model_version",
    "ModelVersion",
    "model version",
    (
        KindField("registeredModelId", REFERENCE, required=True, fixed=True),
        _state("ModelVersionState"),
        KindField("author"),
    ),
    empty_is_none=("author",),
)
SERVING_ENVIRONMENT: Final = EntityKind(
    "serving_environment", "ServingEnvironment", "serving environment"
)
INFERENCE_SERVICE: Final = EntityKind(
    "inference_service",
    "InferenceService",
    "inference service",
    (
        KindField("registeredModelId", REFERENCE, required=True, fixed=True),
        KindField("servingEnvironmentId", REFERENCE, required=True, fixed=True),
        KindField("modelVersionId", REFERENCE),
        KindField("runtime"),
        KindField("desiredState", "InferenceServiceState", DEPLOYMENT_STATES, "DEPLOYED"),
    ),
    named=False,
)
SERVE_MODEL: Final = EntityKind(
    "serve_model",
    "ServeModel",
    "serve model",
    (
        KindField("modelVersionId", REFERENCE, required=True, fixed=True),
        KindField("lastKnownState", "ExecutionState", EXECUTION_STATES, "UNKNOWN"),
    ),
    named=False,
)
EXPERIMENT: Final = EntityKind(
    "experiment", "Experiment", "experiment", (KindField("owner"), _state("ExperimentState"))
)
EXPERIMENT_RUN: Final = EntityKind(
    "experiment_run",
    "ExperimentRun",
    "experiment run",
    (
        KindField("experimentId", REFERENCE, required=True, fixed=True),
        KindField("startTimeSinceEpoch", TIME, fixed=True),
        KindField("endTimeSinceEpoch", TIME),
        KindField("status", "ExperimentRunStatus", RUN_STATUSES, "RUNNING"),
        _state("ExperimentRunState"),
        KindField("owner"),
    ),
    named=False,
    empty_is_none=("owner",),
)
_RUN_REFERENCES: Final = (
    KindField("experimentId", REFERENCE, fixed=True, only="v1alpha3"),
    KindField("experimentRunId", REFERENCE, fixed=True, only="v1alpha3"),
)


def _artifact(
    name: str, title: str, words: str, artifact_type: str, fields: tuple[KindField, ...]
) -> EntityKind:
    return EntityKind(
        name, title, words, (*fields, _ARTIFACT_STATE, *_RUN_REFERENCES), False, artifact_type
    )


MODEL_ARTIFACT: Final = _artifact(
    "model_artifact",
    "ModelArtifact",
    "model artifact",
    "model-artifact",
    _texts(
        "uri",
        "modelFormatName",
        "modelFormatVersion",
        "storageKey",
        "storagePath",
        "serviceAccountName",
        "modelSourceKind",
        "modelSourceClass",
        "modelSourceGroup",
        "modelSourceId",
        "modelSourceName",
    ),
)
DOC_ARTIFACT: Final = _artifact(
    "doc_artifact", "DocArtifact", "doc artifact", "doc-artifact", _texts("uri")
)
DATA_SET: Final = _artifact(
    "data_set",
    "DataSet",
    "data set",
    "dataset-artifact",
    _texts("uri", "digest", "sourceType", "source", "schema", "profile"),
)
METRIC: Final = _artifact(
    "metric",
    "Metric",
    "metric",
    "metric",
    (
        KindField("value", DOUBLE, required=True),
        KindField("timestamp", TIME),
        KindField("step", INT64),
    ),
)
PARAMETER: Final = _artifact(
    "parameter",
    "Parameter",
    "parameter",
    "parameter",
    (KindField("value"), KindField("parameterType", "ParameterType", PARAMETER_TYPES)),
)

KINDS: Final = {
    kind.name: kind
    for kind in (
        REGISTERED_MODEL,
        MODEL_VERSION,
        MODEL_ARTIFACT,
        DOC_ARTIFACT,
        DATA_SET,
        METRIC,
        PARAMETER,
        SERVING_ENVIRONMENT,
        INFERENCE_SERVICE,
        SERVE_MODEL,
        EXPERIMENT,
        EXPERIMENT_RUN,
    )
}
ARTIFACTS: Final = {
    kind.artifact_type: kind for kind in (MODEL_ARTIFACT, DOC_ARTIFACT, DATA_SET, METRIC, PARAMETER)
}
ARTIFACT_KINDS: Final = tuple(kind.name for kind in ARTIFACTS.values())
