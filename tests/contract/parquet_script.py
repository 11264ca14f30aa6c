"""Runs in an environment of its own: a pyarrow of long ago and Daft read Parquet files of the
system tables.

Takes ``{table: [paths]}`` from standard input; prints for each reader, by table, types and rows.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import daft
import pyarrow.parquet


def by_pyarrow(paths: list[str]) -> dict[str, Any]:
    rows, types = [], {}
    for path in paths:
        with open(path, "rb") as file:  # noqa: PTH123 -- not by a name with partitions in it
            table = pyarrow.parquet.read_table(file)
        types |= {
            name: str(kind)
            for name, kind in zip(table.schema.names, table.schema.types, strict=True)
        }
        rows += table.to_pylist()
    return {"types": types, "rows": sorted(map(_text, rows))}


def by_daft(paths: list[str]) -> dict[str, Any]:
    frame = daft.read_parquet(paths).collect()
    types = {field.name: str(field.dtype) for field in frame.schema()}
    return {"types": types, "rows": sorted(map(_text, frame.to_pylist()))}


def _text(row: dict[str, Any]) -> str:
    """Maps are pairs for one reader and dicts for the other."""
    maps = ("params", "tags")
    return repr(
        {
            name: sorted(dict(value).items()) if name in maps else value
            for name, value in sorted(row.items())
        }
    )


def main() -> None:
    files = json.load(sys.stdin)
    readers = {"pyarrow": by_pyarrow, "daft": by_daft}
    json.dump(
        {
            name: {table: read(paths) for table, paths in files.items()}
            for name, read in readers.items()
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # Daft's threads now and then end Python with a fatal error when it finalizes
