"""Requests of the workspace RPCs, in the field order of MLflow's service.proto."""

from __future__ import annotations

from typing import Any, Final

from mlcore.wire import (
    Message,
    array,
    boolean,
    intlike,
    invalid_value,
    item_type_string,
    required,
    string,
    within,
)
from mlcore.wire.checks import CheckFailed

MOST_OF_USERNAME: Final = 255
MOST_WORKSPACES: Final = 50
MOST_TRASHED: Final = 1000
"""The most deleted runs and models that a request lists, restores or removes."""


def text(value: Any) -> None:
    """Checks that a value is a text. Unlike ``string`` it refuses null, as MLflow's server does."""
    string(value)


def archival(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, dict):
        raise CheckFailed
    for field in ("location", "retention"):
        if field in value and not isinstance(value[field], str):
            hint = f" Hint: Value was of type '{type(value[field]).__name__}'."
            raise CheckFailed(invalid_value(field, value[field], hint))


def username_length(value: Any) -> None:
    """Raises CheckFailed if a username is longer than MLflow allows."""
    if isinstance(value, str) and len(value) > MOST_OF_USERNAME:
        raise CheckFailed(f"A username has at most {MOST_OF_USERNAME} characters.")


def workspace_names(value: Any) -> None:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_WORKSPACES:
        raise CheckFailed(
            f"'workspaces' names 1 to {MOST_WORKSPACES} workspaces, or is [\"*\"] for all."
        )


def id_list(value: Any) -> None:
    if len(value) > MOST_TRASHED:
        raise CheckFailed(
            f"A request may have at most {MOST_TRASHED} run ids and as many model ids."
        )


class TraceArchivalConfig(Message):
    location: str
    retention: str


class ListWorkspaces(Message):
    """The request to list the workspaces; it takes no arguments."""


class CreateWorkspace(Message):
    name: str
    description: str
    default_artifact_root: str
    trace_archival_config: TraceArchivalConfig | None
    checks = {
        "name": (required, text),
        "description": (text,),
        "default_artifact_root": (text,),
        "trace_archival_config": (archival,),
    }


class GetWorkspace(Message):
    workspace_name: str


class UpdateWorkspace(Message):
    workspace_name: str
    description: str
    default_artifact_root: str
    trace_archival_config: TraceArchivalConfig | None
    checks = {
        "description": (text,),
        "default_artifact_root": (text,),
        "trace_archival_config": (archival,),
    }


class DeleteWorkspace(Message):
    workspace_name: str
    mode: str
    from_arguments = ("mode",)


class ListReaders(Message):
    """The request to list the readers of the system tables: users whom administrators let read
    them. It takes no arguments."""


class ListGatewayLimits(Message):
    """The request to list the limits of the AI gateway; it takes no arguments."""


class PutReader(Message):
    username: str
    workspaces: list[str]
    checks = {
        "username": (required, string, username_length),
        "workspaces": (required, array, item_type_string, workspace_names),
    }


class DeleteReader(Message):
    username: str
    checks = {"username": (required, string)}


class ListConfig(Message):
    """The request to list the deployment's settings; it takes no arguments."""


class GetConfig(Message):
    key: str


class PutConfig(Message):
    key: str
    value: Any
    checks = {"value": (required,)}


_TRASH_PAGE: Final = f"'max_results' is a number from 1 to {MOST_TRASHED}."
_OF_TRASH: Final = {
    "experiment_id": (required, string),
    "run_ids": (array, item_type_string, id_list),
    "model_ids": (array, item_type_string, id_list),
}


class ListTrash(Message):
    """The request to list the deleted runs and logged models of an experiment, or the experiment
    itself if it is deleted."""

    experiment_id: str
    max_results: int
    page_token: str
    checks = {
        "experiment_id": (required, string),
        "max_results": (intlike, within(1, MOST_TRASHED, _TRASH_PAGE)),
        "page_token": (string,),
    }


class RestoreTrash(Message):
    """The request to restore deleted runs and logged models; without ids, their experiment."""

    experiment_id: str
    run_ids: list[str]
    model_ids: list[str]
    checks = _OF_TRASH


class PurgeTrash(Message):
    """The request to remove deleted runs and logged models permanently; with ``dry_run``, only to
    list them. Without ids, it concerns all deleted runs and logged models of the experiment, or the
    experiment itself if it is deleted. With ``deleted_before`` (milliseconds since the epoch), only
    what was deleted before that time, or at an unknown time."""

    experiment_id: str
    dry_run: bool
    run_ids: list[str]
    model_ids: list[str]
    deleted_before: int
    checks = {
        **_OF_TRASH,
        "dry_run": (required, boolean),
        "deleted_before": (intlike,),
    }


_OF_QUERY: Final = {
    "sql": (string,),
    "description": (string,),
    "parameters": (array,),
}


class CreateQuery(Message):
    """The request to save an SQL query. Its ``parameters`` are objects with ``name``, ``type`` and
    ``default``."""

    name: str
    sql: str
    description: str
    parameters: Any
    checks = {**_OF_QUERY, "name": (required, string), "sql": (required, string)}


class SavedQueryName(Message):
    name: str


class ListQueries(Message):
    max_results: int
    page_token: str
    checks = {"max_results": (intlike,), "page_token": (string,)}


class UpdateQuery(Message):
    """The request to change a saved SQL query. With ``revision`` it fails if the query has another
    revision."""

    name: str
    sql: str
    description: str
    parameters: Any
    revision: int
    checks = {**_OF_QUERY, "revision": (intlike,)}


class DeleteQuery(Message):
    """The request to delete a saved SQL query. With ``revision`` it fails if the query has another
    revision."""

    name: str
    revision: int
    checks = {"revision": (intlike,)}


_OF_ALERT: Final = {
    **dict.fromkeys(("sql", "saved", "budget_policy_id", "condition"), (string,)),
    **dict.fromkeys(("interval_minutes", "for_evaluations", "reminder_hours"), (intlike,)),
    "enabled": (boolean,),
    "destinations": (array,),
}


class CreateAlert(Message):
    """The request to create an alert over a query (``sql``), a saved query (``saved``), or a budget
    (``budget_policy_id``). ``destinations`` are objects with ``type``, ``url`` and ``secret``."""

    name: str
    sql: str
    saved: str
    budget_policy_id: str
    parameters: Any
    condition: str
    interval_minutes: int
    for_evaluations: int
    reminder_hours: int
    enabled: bool
    destinations: Any
    checks = {**_OF_ALERT, "name": (required, string)}


class AlertId(Message):
    alert_id: str


class ListAlerts(Message):
    max_results: int
    page_token: str
    checks = {"max_results": (intlike,), "page_token": (string,)}


class UpdateAlert(Message):
    """The request to change an alert over an SQL query or a budget. With ``revision`` a request
    that would change something fails if the alert has another revision. A destination (a receiver
    of messages) for which the request gives only a ``destination_id`` stays as it is."""

    alert_id: str
    sql: str
    saved: str
    budget_policy_id: str
    parameters: Any
    condition: str
    interval_minutes: int
    for_evaluations: int
    reminder_hours: int
    enabled: bool
    destinations: Any
    revision: int
    checks = {**_OF_ALERT, "revision": (intlike,)}


class DeleteAlert(Message):
    """The request to delete an alert (over SQL or a budget). With ``revision`` it fails if the
    alert has another revision."""

    alert_id: str
    revision: int
    checks = {"revision": (intlike,)}
