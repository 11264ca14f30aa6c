"""Request messages for judging and issue detection on the server, and for their jobs."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.jobs import STATUSES
from mlcore.wire import Message, array, item_type_string, required, string
from mlcore.wire.json_body import (
    JsonBody,
    JsonField,
    JsonPath,
    Misfits,
    json_object,
    list_of,
    optional,
)
from mlcore.wire.json_body import text as json_text


class InvokeScorer(Message):
    experiment_id: Any
    serialized_scorer: Any
    scorer_name: Any
    scorer_version: Any
    trace_ids: Any
    log_assessments: Any


class InvokeEvaluation(Message):
    experiment_id: str
    trace_ids: list[str]
    serialized_scorers: Any
    scorer_versions: Any
    checks = {
        "experiment_id": (required, string),
        "trace_ids": (required, array, item_type_string),
        "serialized_scorers": (required, array),
        "scorer_versions": (array,),
    }


class InvokeIssueDetection(Message):
    experiment_id: str
    trace_ids: list[str]
    categories: Any
    instructions: str
    provider: str
    model: str
    secret_id: str
    endpoint_name: str
    checks = {
        "experiment_id": (required, string),
        "trace_ids": (required, array, item_type_string),
        "categories": (required, array),
        "instructions": (string,),
        "provider": (required, string),
        "model": (string,),
        "secret_id": (string,),
        "endpoint_name": (string,),
    }


class UpdateDetectionSchedule(Message):
    experiment_id: str
    checks = {"experiment_id": (required, string)}


class GetJob(Message):
    job_id: str


class CancelJob(Message):
    job_id: str


def _status(value: Any, path: JsonPath, misfits: Misfits) -> Any:
    if value not in STATUSES:
        names = ", ".join(f"'{status}'" for status in STATUSES[:-1])
        expected = f"{names} or '{STATUSES[-1]}'"
        misfits.note(path, f"Input should be {expected}", "enum", value, {"expected": expected})
    return value


class SearchJobs(JsonBody):
    listed = True
    job_name: Any
    params: Any
    statuses: Any
    body = {
        "job_name": JsonField(optional(json_text)),
        "params": JsonField(optional(json_object)),
        "statuses": JsonField(optional(list_of(_status))),
    }
