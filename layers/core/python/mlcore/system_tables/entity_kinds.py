"""Declares the kinds of entities whose current state is a row of a system table of its own, and
which belong to no experiment: registered models and their versions, evaluation datasets and their
records, and jobs.

A declaration says which items are such entities, and how an entity is named in landing objects. How
their rows are read is declared in ``entity_sources``, their columns in
``mltables/entity_tables.py``. Lander, publisher, backfill and verification work from these
declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.models.evaluation import EvaluationDataset, EvaluationRecord, Job
from mlcore.models.registry import ModelVersion, RegisteredModel
from mlcore.repos.registry import registered_models

EntityRef = tuple[str, ...]
"""The reference of an entity in landing objects. First comes the id of the root: the entity itself,
or the entity of which it is a part. Further texts follow by which its item is found, and at the
end, for a part, its own id. Example: ``(model's id, home, "3")`` for version 3 of a model."""


class TableKind(NamedTuple):
    """A kind of entities with a system table of its own (``table``)."""

    table: str
    item_type: str
    """The type of the entities' items. Their stream records are written to landing objects."""
    ref_of: Callable[[Raw], EntityRef]
    """Returns the reference of an entity from its item, as in the stream's old or new image."""


def _ref_of_model(image: Raw) -> EntityRef:
    """Returns (incarnation, home) of a model's item."""
    return (RegisteredModel.of(image).incarnation, registered_models.home_of(image))


def _ref_of_version(image: Raw) -> EntityRef:
    """Returns (incarnation, home, number) of a version's item."""
    item = ModelVersion.of(image)
    return (item.incarnation, item.PK, str(item.model_version))


def _ref_of_dataset(image: Raw) -> EntityRef:
    """Returns (id, workspace) of a dataset's item."""
    item = EvaluationDataset.of(image)
    return (item.dataset_id, keys.workspace_of_dataset(item.PK))


def _ref_of_record(image: Raw) -> EntityRef:
    """Returns (id of the dataset, id) of the item of a dataset's record."""
    item = EvaluationRecord.of(image)
    return (keys.dataset_of_record(item.PK), item.record_id)


def _ref_of_job(image: Raw) -> EntityRef:
    """Returns (id, workspace) of a job's item."""
    item = Job.of(image)
    return (item.job_id, item.workspace)


MODELS: Final = TableKind("registered_models", keys.REGISTERED_MODEL.name, _ref_of_model)
VERSIONS: Final = TableKind("model_versions", keys.MODEL_VERSION.name, _ref_of_version)
DATASETS: Final = TableKind("evaluation_datasets", keys.EVALUATION_DATASET.name, _ref_of_dataset)
RECORDS: Final = TableKind(
    "evaluation_dataset_records", keys.EVALUATION_RECORD.name, _ref_of_record
)
JOBS: Final = TableKind("jobs", keys.JOB.name, _ref_of_job)

KINDS: Final = (MODELS, VERSIONS, DATASETS, RECORDS, JOBS)

BY_ITEM_TYPE: Final[Mapping[str, TableKind]] = {kind.item_type: kind for kind in KINDS}
"""All kinds, by the type of their items."""
