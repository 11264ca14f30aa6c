"""Answers SQL queries over the system tables: finds the workspaces whose rows the caller may read,
runs the query, and picks the format of the answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.entities.saved_queries import DATE, TIMESTAMP
from mlcore.http import Request, Response
from mlcore.limits.saved_queries import check_name, values_of
from mlcore.policies.system_tables import audited_workspaces, readable_workspaces
from mlcore.repos import saved_queries
from mlcore.system_tables import table_refresh
from sql import execution
from sql import messages as m

MEDIA_TYPES: Final = {
    "application/json": "json",
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
}
"""Formats by the media types that a caller may name in ``Accept``."""
_CASTS: Final = {DATE: "DATE", TIMESTAMP: "TIMESTAMP"}
"""The SQL types of parameters whose values are texts in JSON."""


class _Statement(NamedTuple):
    sql: str
    parameters: Mapping[str, Any]
    casts: Mapping[str, str]
    """The SQL types to which the statement casts parameters, by name."""


def query(message: m.Query, request: Request) -> dict[str, Any] | Response:
    """Runs a query, or a saved query, with the rights of the caller. Returns ``{"columns", "types",
    "rows", "truncated"}``; for CSV ``{"text"}``; for Arrow ``{"arrow"}`` with a stream in its IPC
    format as Base64. If ``Accept`` names CSV or Arrow and the request no other format, the response
    is the text or the stream itself. If all slots for queries are taken, the response is 429.

    Raises:
        InvalidParameterValue: the statement is refused, wrong, or exceeds its limits; a parameter
            of a saved query is missing, unknown or not of its type.
        ResourceDoesNotExist: the workspace has no saved query of this name.
    """
    statement = _statement(message, request)
    access = request.access
    workspaces = None if access is None else readable_workspaces(access)
    audited = None if access is None else audited_workspaces(access)
    media_type = preferred_media_type(request.headers.get("accept", ""))
    answer_format = message.format or MEDIA_TYPES[media_type]
    query_request = {
        "sql": statement.sql,
        "parameters": dict(statement.parameters),
        "casts": dict(statement.casts),
        "workspaces": workspaces,
        "audited": audited,
        "format": answer_format,
    }
    answer = run(query_request, fresh=bool(message.fresh))
    if isinstance(answer, Response):
        return answer
    if answer_format == "json" or answer_format != MEDIA_TYPES[media_type]:
        return answer
    if answer_format == "csv":
        return Response(200, answer["text"], f"{media_type}; charset=utf-8")
    return Response(200, base64.b64decode(answer["arrow"]), media_type)


def run(query_request: dict[str, Any], *, fresh: bool) -> dict[str, Any] | Response:
    """Runs an SQL query (see :func:`sql.execution.run_query`) in one of the slots for concurrent
    queries. Returns its answer, or a response 429 if all slots are taken.

    Args:
        fresh: whether to publish the latest changes to the system tables first.
    """
    try:
        with execution.query_slot():
            if fresh:
                table_refresh.refresh()
            return execution.run_query(query_request)
    except execution.Busy as busy:
        retry = {"retry-after": str(execution.RETRY_SECONDS)}
        return Response(busy.status, json.dumps(busy.body()), headers=retry)


def _statement(message: m.Query, request: Request) -> _Statement:
    """Returns the statement that a request is about."""
    parameters: Mapping[str, Any] = message.parameters or {}
    if not message.has("saved"):
        if not message.sql:
            raise errors.InvalidParameterValue(
                "Missing value for required parameter 'sql'. The text of a query is needed, or "
                "the name of a saved query in 'saved'."
            )
        return _Statement(message.sql, parameters, {})
    if message.has("sql"):
        raise errors.InvalidParameterValue("A request has either 'sql' or 'saved'.")
    check_name(message.saved)
    saved = saved_queries.get(request.workspace, message.saved)
    values = values_of(saved.parameters, parameters)
    casts = {
        parameter.name: _CASTS[parameter.kind]
        for parameter in saved.parameters
        if parameter.kind in _CASTS
    }
    return _Statement(saved.sql, values, casts)


def preferred_media_type(header: str) -> str:
    """Returns the one of ``MEDIA_TYPES`` with the greatest weight in an ``Accept`` header; JSON if
    it names none."""
    preferred = "application/json", 0.0
    for entry in header.split(","):
        name, _, parameters = entry.partition(";")
        media_type = name.strip().lower()
        weight = _weight(parameters)
        if media_type in MEDIA_TYPES and weight > preferred[1]:
            preferred = media_type, weight
    return preferred[0]


def _weight(parameters: str) -> float:
    """Returns the parameter ``q`` of a media type; 1 if it is absent, 0 if it is not a number."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
