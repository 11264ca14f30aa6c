"""The table in template.yaml has the keys, the indexes and the stream filter of the models."""

from __future__ import annotations

import json

from indexer import app as indexer
from mlcore.models.base import IndexedItem
from mlcore.models.by_type import MODELS
from tests.arch import project

TABLE = project.resources("AWS::DynamoDB::Table")["Table"]


def _schema(keys: list[dict[str, str]]) -> dict[str, str]:
    return {key["KeyType"]: key["AttributeName"] for key in keys}


def _indexes(kind: str) -> dict[str, dict[str, str]]:
    return {index["IndexName"]: _schema(index["KeySchema"]) for index in TABLE[kind]}


def test_table_has_the_seeds_keys_and_indexes() -> None:
    assert _schema(TABLE["KeySchema"]) == {"HASH": "PK", "RANGE": "SK"}
    assert _indexes("LocalSecondaryIndexes") == {
        f"LSI{n}": {"HASH": "PK", "RANGE": f"lsi{n}sk"} for n in range(1, 6)
    }
    assert _indexes("GlobalSecondaryIndexes") == {
        f"GSI{n}": {"HASH": f"gsi{n}pk", "RANGE": f"gsi{n}sk"} for n in range(1, 6)
    }


def test_table_has_the_models_keys_and_indexes() -> None:
    attributes = {
        attribute.attr_name: attribute for attribute in IndexedItem.get_attributes().values()
    }
    assert {
        "HASH": next(name for name, attribute in attributes.items() if attribute.is_hash_key),
        "RANGE": next(name for name, attribute in attributes.items() if attribute.is_range_key),
    } == _schema(TABLE["KeySchema"])
    assert {
        index.Meta.index_name: _schema(index._get_schema()["key_schema"])
        for index in IndexedItem._indexes.values()
    } == _indexes("LocalSecondaryIndexes") | _indexes("GlobalSecondaryIndexes")


def test_stream_filter_names_the_types_that_the_indexer_reads() -> None:
    mapping = project.resources("AWS::Lambda::EventSourceMapping")["IndexerEventSourceMapping"]
    named: set[str] = set()
    for declared in mapping["FilterCriteria"]["Filters"]:
        pattern = json.loads(declared["Pattern"])
        image = "OldImage" if pattern["eventName"] == ["REMOVE"] else "NewImage"
        named |= set(pattern["dynamodb"][image]["type"]["S"])
    assert named == {
        *indexer._PROJECTORS,
        *indexer.ANNOUNCING,
        *indexer.ARCHIVING,
        *indexer.EXPIRING,
        *indexer.UPLOADED,
    }
    assert named <= set(MODELS)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_every_index_holds_keys_only() -> None:
    for index in TABLE["LocalSecondaryIndexes"] + TABLE["GlobalSecondaryIndexes"]:
        assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_attribute_definitions_are_the_keys_in_use() -> None:
    used = {key["AttributeName"] for key in TABLE["KeySchema"]}
    for index in TABLE["LocalSecondaryIndexes"] + TABLE["GlobalSecondaryIndexes"]:
        used |= {key["AttributeName"] for key in index["KeySchema"]}
    assert {item["AttributeName"] for item in TABLE["AttributeDefinitions"]} == used
    assert {item["AttributeType"] for item in TABLE["AttributeDefinitions"]} == {"S"}
