"""MLflow's entities as plain immutable values; owns their shape and knows neither storage nor wire.

Field names and meanings are those of MLflow's ``mlflow.entities``; times are milliseconds since the
epoch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mlcore.search.text_fields import Indexed

ACTIVE = "active"
DELETED = "deleted"

VIEW_STAGES = {
    "ACTIVE_ONLY": (ACTIVE,),
    "DELETED_ONLY": (DELETED,),
    "ALL": (ACTIVE, DELETED),
}
"""The lifecycle stages that each of MLflow's view types shows."""

MAX_DOUBLE = 1.7976931348623157e308


class Metric(NamedTuple):
    """One point of a metric. ``value`` may be NaN, never infinite (see :func:`stored_value`)."""

    key: str
    value: float
    timestamp: int
    step: int


class Param(NamedTuple):
    key: str
    value: str


class Tag(NamedTuple):
    key: str
    value: str


class Dataset(NamedTuple):
    """Identity within an experiment is (name, digest); everything else is immutable once
    written."""

    name: str
    digest: str
    source_type: str
    source: str
    schema: str | None = None
    profile: str | None = None


class DatasetInput(NamedTuple):
    dataset: Dataset
    tags: tuple[Tag, ...] = ()


class ModelOutput(NamedTuple):
    model_id: str
    step: int


class Run(NamedTuple):
    run_id: str
    experiment_id: str
    run_name: str
    user_id: str
    status: str
    start_time: int | None
    end_time: int | None
    artifact_uri: str
    lifecycle_stage: str
    metrics: dict[str, Metric]
    params: dict[str, str]
    tags: dict[str, str]
    dataset_inputs: tuple[DatasetInput, ...] = ()
    model_inputs: tuple[str, ...] = ()
    model_outputs: tuple[ModelOutput, ...] = ()


class ModelMetric(NamedTuple):
    """A point of a metric that was logged for a logged model. NaN is 0, as in MLflow."""

    key: str
    value: float
    timestamp: int
    step: int
    run_id: str
    dataset_name: str | None = None
    dataset_digest: str | None = None


class LoggedModel(NamedTuple):
    model_id: str
    experiment_id: str
    name: str
    artifact_location: str
    creation_time: int
    last_update_time: int
    status: str
    """``LOGGED_MODEL_PENDING``, ``…_READY``, ``…_UPLOAD_FAILED`` or ``…_STATUS_UNSPECIFIED``."""
    lifecycle_stage: str
    model_type: str
    source_run_id: str
    params: dict[str, str]
    tags: dict[str, str]
    metrics: tuple[ModelMetric, ...] = ()
    """Every point, in the order in which they came."""


class Experiment(NamedTuple):
    experiment_id: str
    name: str
    artifact_location: str
    lifecycle_stage: str
    creation_time: int
    last_update_time: int
    tags: dict[str, str]
    workspace: str
    epoch: int = 0
    """How often the experiment was deleted or restored; see ``repos.runs`` for its use."""
    indexed: Indexed | None = None
    """The texts that its full-text index holds completely."""
    followed: Indexed | None = None
    """The texts that the indexer follows, which may be more."""


class Assessment(NamedTuple):
    """Feedback on a trace, an expectation of it, or a reference to an issue."""

    assessment_id: str
    trace_id: str
    name: str
    kind: str
    """``feedback``, ``expectation`` or ``issue``."""
    value: Any
    """Any JSON value; of an issue ``{"issue_name": …}``."""
    error: dict[str, str | None] | None
    """``error_code``, ``error_message`` and ``stack_trace`` of a feedback that failed."""
    source_type: str
    source_id: str | None
    create_time: int
    last_update_time: int
    run_id: str | None
    span_id: str | None
    rationale: str | None
    metadata: dict[str, str] | None
    overrides: str | None
    valid: bool


class Trace(NamedTuple):
    """What MLflow calls a trace's info; its name is the tag ``mlflow.traceName``."""

    trace_id: str
    experiment_id: str
    request_time: int
    execution_duration: int | None
    state: str
    """OK, ERROR, IN_PROGRESS or STATE_UNSPECIFIED."""
    client_request_id: str | None
    request_preview: str | None
    response_preview: str | None
    trace_metadata: dict[str, str]
    tags: dict[str, str]
    assessments: tuple[Assessment, ...] = ()
    """In the order in which they were made."""
    prompts: tuple[str, ...] = ()
    """Linked prompt versions, ``name/version``."""


class RegisteredModel(NamedTuple):
    name: str
    workspace: str
    creation_timestamp: int
    last_updated_timestamp: int
    description: str
    tags: dict[str, str]
    aliases: dict[str, int]
    """Version numbers by alias."""
    latest: dict[str, int]
    """The greatest version number in each stage."""


class ModelVersion(NamedTuple):
    name: str
    version: int
    creation_timestamp: int
    last_updated_timestamp: int
    description: str | None
    user_id: str | None
    current_stage: str
    source: str
    storage_location: str
    """Where the files are, if ``source`` names another version or a logged model."""
    run_id: str | None
    run_link: str
    status: str
    status_message: str | None
    tags: dict[str, str]
    model_id: str | None = None

    @property
    def version_number(self) -> int:
        """As filters call it."""
        return self.version

    @property
    def source_path(self) -> str:
        """As filters call it."""
        return self.source


def stored_value(value: float) -> float:
    """The double that MLflow stores for a logged value: infinities are clamped, -0.0 becomes
    0.0."""
    if math.isinf(value):
        return MAX_DOUBLE if value > 0 else -MAX_DOUBLE
    return value + 0.0


def recency(metric: Metric) -> tuple[int, int, float]:
    """Orders points of one metric: the greatest is the latest. NaN takes part as 0, as in MLflow's
    SQL store."""
    return (metric.step, metric.timestamp, 0.0 if math.isnan(metric.value) else metric.value)


class Workspace(NamedTuple):
    """A world of its own for experiments, models and webhooks. ``artifact_root`` is None where
    files lie below the server's root."""

    name: str
    description: str | None
    artifact_root: str | None = None
    trace_archival_location: str | None = None
    trace_archival_retention: str | None = None
