"""What a query answers, as JSON, CSV and Arrow; asks nothing itself."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import duckdb

from mltables.dialect import types

BATCH: Final = 500


class TooLarge(Exception):
    """An answer that cannot be cut without becoming another one."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"The result has more than {most_bytes} bytes: add a LIMIT.")


class RowTooLarge(TooLarge):
    """One row has more bytes than an answer may have."""

    def __init__(self, most_bytes: int) -> None:
        Exception.__init__(
            self,
            f"One row of the result has more than {most_bytes} bytes: select fewer columns, or a "
            "part of a long one, such as left(value, 1000).",
        )


def in_json(cursor: duckdb.DuckDBPyConnection, most_rows: int, most_bytes: int) -> dict[str, Any]:
    """``{"columns", "types", "rows", "truncated"}``.

    Raises:
        RowTooLarge: not even one row has room.
    """
    about = cursor.description or []
    rows: list[list[Any]] = []
    size = 0
    truncated = False
    while not truncated and (batch := cursor.fetchmany(BATCH)):
        for row in batch:
            values = [_value(value) for value in row]
            length = len(json.dumps(values))
            if length > most_bytes:
                raise RowTooLarge(most_bytes)
            size += length
            if len(rows) >= most_rows or size > most_bytes:
                truncated = True
                break
            rows.append(values)
    return {
        "columns": [column[0] for column in about],
        "types": [types.word(str(column[1])) for column in about],
        "rows": rows,
        "truncated": truncated,
    }


def in_csv(cursor: duckdb.DuckDBPyConnection, most_bytes: int) -> dict[str, Any]:
    """``{"text": CSV}``, its first line the names.

    Raises:
        TooLarge: it has more bytes.
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([column[0] for column in cursor.description or []])
    while batch := cursor.fetchmany(BATCH):
        for row in batch:
            lines.writerow(
                [
                    json.dumps(value) if isinstance(value, list | dict) else value
                    for value in map(_value, row)
                ]
            )
        if text.tell() > most_bytes:
            raise TooLarge(most_bytes)
    return {"text": text.getvalue()}


def in_arrow(relation: duckdb.DuckDBPyRelation, most_bytes: int) -> dict[str, Any]:
    """``{"arrow": Base64 of a stream of Arrow's IPC format}``: exact types, NaN included.

    Raises:
        TooLarge: it has more bytes.
        RuntimeError: the query fails, or has a type that cannot be written.
    """
    from nanoarrow import c_array_stream  # noqa: PLC0415 -- what other answers do without
    from nanoarrow.c_array_stream import CArrayStream  # noqa: PLC0415
    from nanoarrow.ipc import StreamWriter  # noqa: PLC0415

    out = io.BytesIO()
    with c_array_stream(relation) as batches, StreamWriter.from_writable(out) as writer:
        # The schema alone: an answer without rows has one, too, and a batch without rows has
        # offsets that not every reader takes.
        writer.write_stream(CArrayStream.from_c_arrays([], batches.get_schema()))
        for batch in batches:
            if not batch.length:
                continue
            writer.write_array(batch)
            if out.tell() > most_bytes:
                raise TooLarge(most_bytes)
    return {"arrow": base64.b64encode(out.getvalue()).decode()}


def _value(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601 with Z; what JSON has no number for, as MLflow
    writes it."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _interval(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(key): _value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    if value is None or isinstance(value, str | int):
        return value
    return str(value)


def _interval(value: timedelta) -> str:
    """``1 02:03:04.500000000``: days, and the time of the rest."""
    sign = "-" if value < timedelta() else ""
    whole = abs(value)
    hours, seconds = divmod(whole.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    clock = f"{hours:02}:{minutes:02}:{seconds:02}.{whole.microseconds:06}000"
    return f"{sign}{whole.days} {clock}"
