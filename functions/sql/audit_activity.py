"""Lists who did what, from the table ``audit_log``, newest first.

The SQL statement is made here; a request only chooses among prepared conditions, and gives their
values and the length of a page. So it cannot contain an expression that fails, or takes long, only
for certain rows, and so tells something about rows that the caller may not see.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from mlcore import paging
from mlcore.errors import InvalidParameterValue
from mlcore.http import Request, Response
from mlcore.policies.system_tables import audited_workspaces
from sql import messages as m
from sql import service

ROWS: Final = 50
"""Rows of a page, unless the request says how many."""

_COLUMNS: Final = (
    *("event_time", "sequence", "user_name", "user_id", "login", "key_id", "is_admin", "address"),
    *("workspace_id", "rpc", "method", "http_status", "outcome", "entity"),
)
_OF_ADMINISTRATORS: Final = ("login", "key_id", "is_admin", "address", "workspace_id")
"""Columns that only administrators see: how and from where somebody logged in is information about
the person, not about the experiment."""
_OF_EXPERIMENTS: Final = frozenset(
    {
        *("run_id", "run_uuid", "run_ids", "trace_id", "request_id", "trace_ids"),
        *("model_id", "path_model_id", "model_ids", "username", "permission"),
    }
)
"""Fields of ``entity`` that the managers of an experiment see. Other fields may name models, roles
or experiments that the caller may not know."""

_NAMED: Final = "get_json_object(entity, '$.{}')"
_IN_LIST: Final = "instr(get_json_object(entity, '$.{}'), concat('\"', :{}, '\"')) > 0"
_CONDITIONS: Final = {
    "experiment_id": f"({_NAMED.format('experiment_id')} = :experiment_id OR "
    f"{_IN_LIST.format('experiment_ids', 'experiment_id')})",
    "model": "(rpc LIKE '%/registered-models/%' OR rpc LIKE '%/model-versions/%') AND "
    f"(get_json_object(entity, '$.name') = :model OR {_NAMED.format('new_name')} = :model)",
    "about_user": f"({_NAMED.format('username')} = :about_user OR "
    f"{_IN_LIST.format('username', 'about_user')})",
    "user": "user_name = :user",
    "rpc": "instr(rpc, :rpc) > 0",
    "outcome": "outcome = :outcome",
    "since": "event_time >= CAST(:since AS TIMESTAMP)",
    "until": "event_time < CAST(:until AS TIMESTAMP)",
}
_AFTER: Final = (
    "(event_time < CAST(:last_time AS TIMESTAMP) OR "
    "(event_time = CAST(:last_time AS TIMESTAMP) AND sequence < :last_sequence))"
)
_SELECT: Final = (
    "SELECT {} FROM system.mlflow.audit_log WHERE {} "
    "ORDER BY event_time DESC, sequence DESC LIMIT {}"
)
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = ("since", "until")


def search(message: m.SearchActivity, request: Request) -> dict[str, Any] | Response:
    """Returns a page of the audit log: ``{"rows": […], "next_page_token"}``; the last has no token.

    The route's policy admits only administrators and managers of the request's experiment.
    Administrators get the rows that they may read in SQL. Managers get the experiment's rows in the
    request's workspace, without addresses, logins and the names of other entities. If all slots for
    queries are taken, the response is 429.
    """
    access = request.access
    workspaces = None if access is None else audited_workspaces(access)
    is_manager = workspaces == []
    wanted = {
        name: value
        for name in _CONDITIONS
        if (value := getattr(message, name, None))
        or (name in _TIMES and message.has(name) and value is not None)
    }
    token_of = [wanted, is_manager, request.workspace]
    size = int(message.max_results) if message.has("max_results") else ROWS
    values = {
        name: _time(int(value)) if name in _TIMES else value for name, value in wanted.items()
    }
    conditions = [_CONDITIONS[name] for name in wanted]
    position = paging.position_of(message.page_token, token_of)
    if position is not None:
        conditions.append(_AFTER)
        values |= _position(position)
    where = " AND ".join(conditions) or "true"
    answer = service.run(
        {
            "sql": _SELECT.format(", ".join(_COLUMNS), where, size + 1),
            "parameters": values,
            "workspaces": [],
            "audited": [request.workspace] if is_manager else workspaces,
            "format": "json",
        },
        fresh=bool(message.fresh),
    )
    if isinstance(answer, Response):
        return answer
    rows = [_row(row) for row in answer["rows"]]
    is_last = len(rows) <= size and not answer["truncated"]
    page = rows[:size]
    result: dict[str, Any] = {
        "rows": [_limited(row, message.experiment_id) for row in page] if is_manager else page
    }
    if page and not is_last:
        result["next_page_token"] = paging.token(
            [page[-1]["event_time"], page[-1]["sequence"]], token_of
        )
    return result


def _row(values: list[Any]) -> dict[str, Any]:
    row = dict(zip(_COLUMNS, values, strict=True))
    row["event_time"] = _milliseconds(row["event_time"])
    row["sequence"] = int(row["sequence"])
    row["entity"] = json.loads(row["entity"])
    return row


def _limited(row: dict[str, Any], experiment_id: str) -> dict[str, Any]:
    """Returns the part of a row that a manager of the experiment may see. If the row is about
    several experiments, its ``entity`` is reduced to this experiment's id."""
    entity = row["entity"]
    is_only = "experiment_ids" not in entity and entity.get("experiment_id") == experiment_id
    shown = {name: entity[name] for name in _OF_EXPERIMENTS & entity.keys()} if is_only else {}
    seen = {name: value for name, value in row.items() if name not in _OF_ADMINISTRATORS}
    return {**seen, "entity": {"experiment_id": experiment_id, **shown}}


def _position(position: list[object]) -> dict[str, Any]:
    match position:
        case [int(milliseconds), int(sequence)]:
            return {"last_time": _time(milliseconds), "last_sequence": sequence}
    raise InvalidParameterValue("Invalid page token")


def _time(milliseconds: int) -> str:
    try:
        moment = _BEGINNING + timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise InvalidParameterValue("Invalid page token") from error
    return moment.isoformat(timespec="milliseconds")


def _milliseconds(text: str) -> int:
    return round((datetime.fromisoformat(text) - _BEGINNING) / timedelta(milliseconds=1))
