"""Expired items disappear, and only they."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from local.store import file_maintenance
from local.store.expired_items import delete_expired
from local.store.file_maintenance import TableFile
from local.table import ttl_attribute

from .conftest import TABLE, OpenTable


def put(opened: OpenTable, name: Any, ttl: Any) -> None:
    opened.dynamodb.put_item(
        TableName=TABLE, Item={"PK": {"S": "P"}, "SK": {"S": name}, "ttl": ttl}
    )


def test_sweep(opened: OpenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    now = int(time.time())
    put(opened, "due", {"N": str(now - 10)})
    put(opened, "later", {"N": str(now + 1000)})
    put(opened, "text", {"S": "1"})
    opened.put("mentions", body='"ttl":{"N":"1"}')
    opened.put("plain")
    put(opened, "ancient", {"N": str(now - 6 * 365 * 24 * 3600)})
    for number in range(700):
        put(opened, f"many#{number}", {"N": str(now - 10 - number)})
    monkeypatch.setattr(file_maintenance, "_SWEPT_AT_ONCE", 13)
    attribute = ttl_attribute(opened.properties)
    assert attribute == "ttl"
    assert delete_expired(opened.dynamodb, opened.file, TABLE, ["PK", "SK"], attribute) == 701
    assert delete_expired(opened.dynamodb, opened.file, TABLE, ["PK", "SK"], attribute) == 0
    left = opened.dynamodb.scan(TableName=TABLE)["Items"]
    assert {item["SK"]["S"] for item in left} == {
        *("later", "text", "mentions", "plain", "ancient")
    }


def test_an_item_that_was_renewed_stays(opened: OpenTable) -> None:
    put(opened, "a", {"N": str(int(time.time()) - 10)})

    class Stale(TableFile):
        """Saw the item before it was renewed."""

        seen = tuple(opened.file.expired("ttl"))

        def expired(self, attribute: str, now: float | None = None) -> Iterator[dict[str, Any]]:
            return iter(self.seen)

    put(opened, "a", {"N": str(int(time.time()) + 1000)})
    stale = Stale(opened.file.path)
    assert len(stale.seen) == 1
    assert delete_expired(opened.dynamodb, stale, TABLE, ["PK", "SK"], "ttl") == 0
    assert opened.dynamodb.scan(TableName=TABLE)["Count"] == 1
