"""An evaluation dataset and its records."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class EvaluationDataset(NamedTuple):
    """An evaluation dataset, without its records. ``schema`` and ``profile`` are JSON texts; None
    before the first record."""

    dataset_id: str
    workspace: str
    name: str
    digest: str
    tags: dict[str, str]
    schema: str | None
    profile: str | None
    created_time: int
    last_update_time: int
    created_by: str | None
    last_updated_by: str | None
    experiment_ids: tuple[str, ...]
    version: int = 0
    """Version of the stored item."""


class EvaluationRecord(NamedTuple):
    """A record of an evaluation dataset. ``number`` is the position within the request that created
    the record, so that records of one request stay in order."""

    record_id: str
    dataset_id: str
    created_time: int
    number: int
    content: Json
    """The other fields, as clients see them; fields that are None are left out."""
    version: int = 0
