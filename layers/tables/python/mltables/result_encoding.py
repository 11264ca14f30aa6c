"""Encodes the result of an SQL query as JSON, CSV or Arrow."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import duckdb

from mltables.dialect import result_types

BATCH: Final = 500


class TooLarge(Exception):
    """Raised if the encoded SQL result exceeds the limit of bytes. CSV and Arrow results are
    refused then, not truncated."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"The result has more than {most_bytes} bytes: add a LIMIT.")


class RowTooLarge(TooLarge):
    """Raised if a single row exceeds the limit of bytes for an SQL result."""

    def __init__(self, most_bytes: int) -> None:
        Exception.__init__(
            self,
            f"One row of the result has more than {most_bytes} bytes: select fewer columns, or a "
            "part of a long one, such as left(value, 1000).",
        )


def encode_json(
    cursor: duckdb.DuckDBPyConnection, most_rows: int, most_bytes: int
) -> dict[str, Any]:
    """Returns the result of a SQL query as ``{"columns", "types", "rows", "truncated"}``. If it has
    more rows than ``most_rows``, or more bytes of JSON than ``most_bytes``, ``truncated`` is true
    and the rest is missing. Raises RowTooLarge if a single row exceeds ``most_bytes``."""
    about = cursor.description or []
    rows: list[list[Any]] = []
    size = 0
    truncated = False
    while not truncated and (batch := cursor.fetchmany(BATCH)):
        for row in batch:
            values = [_json_value(value) for value in row]
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
        "types": [result_types.databricks_type(str(column[1])) for column in about],
        "rows": rows,
        "truncated": truncated,
    }


def encode_csv(cursor: duckdb.DuckDBPyConnection, most_bytes: int) -> dict[str, Any]:
    """Returns an SQL query's result as ``{"text": CSV}``. The first line holds the column names.
    Raises TooLarge if the text has more than ``most_bytes`` in UTF-8."""
    parts = [_csv_text([[column[0] for column in cursor.description or []]])]
    size = len(parts[0].encode())
    while batch := cursor.fetchmany(BATCH):
        parts.append(
            _csv_text(
                [
                    json.dumps(value) if isinstance(value, list | dict) else value
                    for value in map(_json_value, row)
                ]
                for row in batch
            )
        )
        size += len(parts[-1].encode())
        if size > most_bytes:
            raise TooLarge(most_bytes)
    return {"text": "".join(parts)}


def _csv_text(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def encode_arrow(relation: duckdb.DuckDBPyRelation, most_bytes: int) -> dict[str, Any]:
    """Returns the result of an SQL query as ``{"arrow": stream in Arrow's IPC format, as Base64}``,
    with exact types and NaN.

    Raises:
        TooLarge: the stream exceeds ``most_bytes`` before Base64.
        RuntimeError: the query fails, or a column has a type that cannot be written.
    """
    from nanoarrow import c_array_stream  # noqa: PLC0415 -- only Arrow results need it
    from nanoarrow.c_array_stream import CArrayStream  # noqa: PLC0415
    from nanoarrow.ipc import StreamWriter  # noqa: PLC0415

    out = io.BytesIO()
    with c_array_stream(relation) as batches, StreamWriter.from_writable(out) as writer:
        # Write the schema first, so that an empty result has one. Batches without rows are
        # skipped: not every reader accepts their offsets.
        writer.write_stream(CArrayStream.from_c_arrays([], batches.get_schema()))
        for batch in batches:
            if not batch.length:
                continue
            writer.write_array(batch)
            if out.tell() > most_bytes:
                raise TooLarge(most_bytes)
    return {"arrow": base64.b64encode(out.getvalue()).decode()}


def _json_value(value: Any) -> Any:
    """Returns a value in a form that JSON can express. Times become ISO 8601 with Z. NaN and
    infinities become the texts that MLflow uses."""
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
        return {str(key): _json_value(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(element) for element in value]
    if value is None or isinstance(value, str | int):
        return value
    return str(value)


def _interval(value: timedelta) -> str:
    """Returns an interval as days and a time of day, such as ``1 02:03:04.500000000``."""
    sign = "-" if value < timedelta() else ""
    whole = abs(value)
    hours, seconds = divmod(whole.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    clock = f"{hours:02}:{minutes:02}:{seconds:02}.{whole.microseconds:06}000"
    return f"{sign}{whole.days} {clock}"
