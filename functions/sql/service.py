"""SQL over the system tables: who sees which rows, and what an answer looks like."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from mlcore.http import Request, Response
from mlcore.policies.system_tables import visible
from mlcore.system_tables import freshness
from sql import child
from sql import messages as m

MEDIA_TYPES: Final = {
    "application/json": "json",
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
}
"""Formats by what a caller may name in ``Accept``."""


def query(message: m.Query, request: Request) -> dict[str, Any] | Response:
    """``{"columns", "types", "rows", "truncated"}``, for CSV ``{"text"}``, for Arrow ``{"arrow"}``
    with a stream of its IPC format in Base64. Where ``Accept`` asks for one of the two, the text or
    the stream itself.

    Raises:
        InvalidParameterValue: the statement is refused, wrong, or asks too much.
    """
    workspaces = None if request.access is None else visible(request.access)
    media = accepted(request.headers.get("accept", ""))
    form = message.format or MEDIA_TYPES[media]
    asked = {
        "sql": message.sql,
        "parameters": message.parameters or {},
        "workspaces": workspaces,
        "format": form,
    }
    try:
        with child.turn():
            if message.fresh:
                freshness.refresh()
            answer = child.ask(asked)
    except child.Busy as busy:
        retry = {"retry-after": str(child.RETRY_SECONDS)}
        return Response(busy.status, json.dumps(busy.body()), headers=retry)
    if form == "json" or form != MEDIA_TYPES[media]:
        return answer
    if form == "csv":
        return Response(200, answer["text"], f"{media}; charset=utf-8")
    return Response(200, base64.b64decode(answer["arrow"]), media)


def accepted(header: str) -> str:
    """The one of ``MEDIA_TYPES`` that a caller likes best; JSON where nothing else is named."""
    liked = "application/json", 0.0
    for one in header.split(","):
        name, _, more = one.partition(";")
        media = name.strip().lower()
        weight = _weight(more)
        if media in MEDIA_TYPES and weight > liked[1]:
            liked = media, weight
    return liked[0]


def _weight(parameters: str) -> float:
    """``q`` of a media type; 1 without one, 0 where it is no number."""
    for one in parameters.split(";"):
        name, _, value = one.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
