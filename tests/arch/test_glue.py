"""The tables that template.yaml defines in Glue are those that the publisher makes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.arch import project

KINDS = {
    "boolean": "boolean",
    "string": "string",
    "timestamp": "timestamp",
    "long": "bigint",
    "double": "double",
}
DEFINED = {
    table["TableInput"]["Name"]: table["TableInput"]
    for table in project.resources("AWS::Glue::Table").values()
}


def _kind(of_delta: Any) -> str:
    """The type of a column in Hive's words."""
    kind = of_delta if isinstance(of_delta, str) else of_delta["type"]
    if kind == "map":
        return f"map<{_kind(of_delta['keyType'])},{_kind(of_delta['valueType'])}>"
    if kind == "array":
        return f"array<{_kind(of_delta['elementType'])}>"
    if kind == "struct":
        fields = [f"{field['name']}:{_kind(field['type'])}" for field in of_delta["fields"]]
        return f"struct<{','.join(fields)}>"
    return KINDS[kind]


def test_columns_are_those_of_the_log() -> None:
    """In its order, the partition's included: Lake Formation, and views and filters of Athena, need
    the schema of the transaction log."""
    engine = pytest.importorskip("mltables.table_definitions")
    expected = {
        table.name: [
            (field["name"], _kind(field["type"]))
            for field in json.loads(engine.delta_schema(table).to_json())["fields"]
        ]
        for table in engine.TABLES
    }
    results = {
        name: [(column["Name"], column["Type"]) for column in table["StorageDescriptor"]["Columns"]]
        for name, table in DEFINED.items()
    }
    assert results == expected


def test_readers_know_a_delta_table_and_its_place() -> None:
    assert DEFINED
    for name, table in DEFINED.items():
        storage = table["StorageDescriptor"]
        assert table["Parameters"]["spark.sql.sources.provider"] == "delta"
        assert "table_type" not in table["Parameters"], "the other form, which has no columns"
        assert table["PartitionKeys"] == []
        assert storage["SerdeInfo"]["Parameters"]["path"] == storage["Location"]
        location = f"s3://${{SystemTablesBucket}}/system/mlflow/{name}/"
        assert storage["Location"] == {"Fn::Sub": location}
