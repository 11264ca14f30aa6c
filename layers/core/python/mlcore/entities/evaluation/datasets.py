"""An evaluation dataset and its records."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class EvaluationDataset(NamedTuple):
    """``schema`` and ``profile`` are JSON texts, None before the first record."""

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
    """Of the item that it was read from."""


class EvaluationRecord(NamedTuple):
    """``number`` is the place in the request that brought it: what came together stays in order."""

    record_id: str
    dataset_id: str
    created_time: int
    number: int
    content: Json
    """The other fields of the record as clients see them; what is None is missing."""
    version: int = 0
