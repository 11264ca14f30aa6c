"""Files of the table of spans, read past the product: which have columns of attributes, and whether
these columns are what the map says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars
import pytest
from deltalake import DeltaTable

from mlcore.system_tables import storage


def files() -> list[Path]:
    """The files of the current version."""
    delta = DeltaTable(storage.table_uri("spans"))
    return [Path(uri.removeprefix("file://")) for uri in delta.file_uris()]


def has_columns(file: Path) -> bool:
    """By the name of the file."""
    return file.name.startswith("part-a3-")


def rows(file: Path) -> list[dict[str, Any]]:
    return polars.read_parquet(file, hive_partitioning=False).to_dicts()


def assert_columns_are_the_map() -> list[bool]:
    """Returns of each file whether it has the columns."""
    from mltables.span_attribute_columns import (  # noqa: PLC0415 -- the engines
        COLUMNS,
        EVENT_NAMES,
        PREFIX,
        ROOT_COLUMNS,
    )

    marked = []
    for file in files():
        marked.append(has_columns(file))
        for row in rows(file):
            attributes = {entry["key"]: entry["value"] for entry in row["attributes"]}
            columns = {name: value for name, value in row.items() if name.startswith(PREFIX)}
            expected = {column: attributes.get(key) for key, column in COLUMNS.items()}
            is_root = not row["parent_span_id"]
            expected |= {
                column: attributes.get(key) if is_root else None
                for key, column in ROOT_COLUMNS.items()
            }
            names = [event["name"] for event in row["events"]]
            if names and columns.get(EVENT_NAMES) is not None:
                columns[EVENT_NAMES] = json.loads(columns[EVENT_NAMES])
            expected[EVENT_NAMES] = names or None
            assert columns == (expected if marked[-1] else {})
    return marked


@contextmanager
def without_columns() -> Iterator[None]:
    """Files are written as versions did that knew no columns."""
    from mltables.table_commit import TableCommit  # noqa: PLC0415 -- the engines

    add = TableCommit.add

    def added(commit: Any, *arguments: Any, **options: Any) -> int:
        table = commit._snapshot.table
        commit._snapshot.table = table._replace(derived=())
        try:
            return add(commit, *arguments, **options)
        finally:
            commit._snapshot.table = table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableCommit, "add", added)
        yield
