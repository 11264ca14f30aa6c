"""The entity classes of runs, with their params, dataset inputs and logged models."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.entities.metrics import Metric
from mlcore.entities.tags import Tag

RUNNING: Final = "RUNNING"
"""The status of a run that has not ended."""

ENDED: Final = frozenset(("FINISHED", "FAILED", "KILLED"))
"""The statuses of runs that have ended."""


class Dataset(NamedTuple):
    """A dataset that runs use as input. Name and digest identify it within an experiment; the other
    fields do not change once written."""

    name: str
    digest: str
    source_type: str
    source: str
    schema: str | None = None
    profile: str | None = None


class DatasetInput(NamedTuple):
    dataset: Dataset
    tags: tuple[Tag, ...] = ()


class Param(NamedTuple):
    key: str
    value: str


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
