"""Request messages for issues. Fields are in the order of MLflow's protobuf
definitions."""

from __future__ import annotations

from typing import Final

from mlcore.limits.evaluation.issues import check_last_seen, check_metadata
from mlcore.wire import (
    Int32,
    Message,
    array,
    boolean,
    intlike,
    item_type_string,
    required,
    string,
)

_TEXTS: Final = (array, item_type_string)


class CreateIssue(Message):
    experiment_id: str
    name: str
    description: str
    status: str
    severity: str
    root_causes: list[str]
    source_run_id: str
    created_by: str
    categories: list[str]
    issue_id: str
    last_seen_timestamp: int
    metadata: dict[str, str]
    checks = {
        "name": (required, string),
        "description": (required, string),
        "experiment_id": (required, string),
        "status": (string,),
        "severity": (string,),
        "root_causes": _TEXTS,
        "source_run_id": (string,),
        "created_by": (string,),
        "categories": _TEXTS,
        "issue_id": (string,),
        "last_seen_timestamp": (check_last_seen,),
        "metadata": (check_metadata,),
    }


class UpdateIssue(Message):
    issue_id: str
    name: str
    description: str
    status: str
    severity: str
    categories: list[str]
    last_seen_timestamp: int
    last_updated_by: str
    metadata: dict[str, str]
    delete_metadata_keys: list[str]
    checks = {
        "issue_id": (required, string),
        "name": (string,),
        "description": (string,),
        "status": (string,),
        "severity": (string,),
        "categories": _TEXTS,
        "last_seen_timestamp": (check_last_seen,),
        "last_updated_by": (string,),
        "metadata": (check_metadata,),
        "delete_metadata_keys": _TEXTS,
    }


class GetIssue(Message):
    issue_id: str


class SearchIssues(Message):
    experiment_id: str
    filter_string: str
    max_results: Int32
    page_token: str
    include_trace_count: bool
    name: str
    statuses: list[str]
    severities: list[str]
    categories: list[str]
    order_by: list[str]
    include_total_count: bool
    view: str
    checks = {
        "experiment_id": (string,),
        "filter_string": (string,),
        "max_results": (intlike,),
        "page_token": (string,),
        "include_trace_count": (boolean,),
        "name": (string,),
        "statuses": _TEXTS,
        "severities": _TEXTS,
        "categories": _TEXTS,
        "order_by": _TEXTS,
        "include_total_count": (boolean,),
        "view": (string,),
    }
