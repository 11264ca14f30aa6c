"""The lines of landing objects (files that wait to be published) about the audit: who did what.

On a laptop the runner writes the lines. In AWS a landing object holds log lines of the functions,
as CloudWatch Logs hands them to Firehose; :func:`lines_of_logs` makes the audit's lines of them.

A line is a JSON object with the fields of :data:`FIELDS`. Its ``id`` identifies the request, so
that the publisher adds a line that is delivered twice only once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mlcore.system_tables import landing_objects

SHARD: Final = "audit"
_DATA: Final = "DATA_MESSAGE"
"""The type of a message with log lines. Messages of other types only test the destination."""
MEASURED: Final = {
    "milliseconds": "DOUBLE",
    "read_units": "DOUBLE",
    "write_units": "DOUBLE",
    "round_trips": "BIGINT",
    "memory_mb": "BIGINT",
}
"""The fields with the costs of the request, and their types in DuckDB. A field may be missing: the
function's memory is known only in Lambda."""
_MEASURED: Final = dict(
    zip(MEASURED, ("Latency", "ReadUnits", "WriteUnits", "RoundTrips", "MemoryMB"), strict=True)
)
"""Names of these fields in a log line."""
FIELDS: Final = {
    "id": "VARCHAR",
    "t": "BIGINT",
    "rpc": "VARCHAR",
    "method": "VARCHAR",
    "status": "BIGINT",
    "user": "VARCHAR",
    "login": "VARCHAR",
    "key": "VARCHAR",
    "admin": "BOOLEAN",
    "address": "VARCHAR",
    "workspace": "VARCHAR",
    "outcome": "VARCHAR",
    "entity": "VARCHAR",
    **MEASURED,
}
"""The type in DuckDB of each field. ``t`` is in milliseconds since 1970, ``entity`` a JSON object
as a text."""


def line_of(record_id: str, milliseconds: int, request: Mapping[str, Any]) -> str:
    """Returns the JSON line about one audited request in a landing object (a file of changes that
    wait to be published in the table ``audit_log``).

    Args:
        record_id: an id that no other request has.
        milliseconds: the end of the request, since 1970.
        request: ``rpc``, ``method``, ``status``, ``audit`` (the entry of :mod:`mlcore.http.audit`)
            and the costs, as in the request's log line.
    """
    entry: Mapping[str, Any] = request["audit"]
    return json.dumps(
        {
            "id": record_id,
            "t": milliseconds,
            "rpc": request["rpc"],
            "method": request["method"],
            "status": request["status"],
            "user": entry.get("user"),
            "login": entry.get("login", "none"),
            "key": entry.get("key_id"),
            "admin": bool(entry.get("is_admin")),
            "address": entry.get("address", ""),
            "workspace": entry.get("workspace") or "",
            "outcome": entry["outcome"],
            "entity": json.dumps(entry.get("entity", {}), sort_keys=True),
            **{field: request[name] for field, name in _MEASURED.items() if name in request},
        },
        separators=(",", ":"),
    )


def lines_of_logs(content: bytes) -> Iterator[str]:
    """Yields the lines of a landing object, one for each audited request in log lines of the
    functions. The id of a line is the id of its log event, so a log event that is delivered again
    gives the same id.

    Args:
        content: the decompressed messages of a subscription filter, one directly after the other
            (AWS, "Log group-level subscription filters").
    """
    text = content.decode()
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text):
        message, position = decoder.raw_decode(text, position)
        for event in message["logEvents"] if message["messageType"] == _DATA else ():
            request = json.loads(event["message"])
            if "audit" in request:
                yield line_of(event["id"], event["timestamp"], request)


def put(name: str, lines: Iterable[str]) -> None:
    """Writes lines about audited requests as a landing object, from which the publisher updates the
    system tables. An object of the same name is replaced."""
    landing_objects.put(f"{SHARD}/{name}", landing_objects.compress(lines), landing_objects.AUDIT)
