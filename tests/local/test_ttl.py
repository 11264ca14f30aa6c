"""Expired items disappear, and only they."""

import time
from collections.abc import Iterator
from typing import Any

from local.engine.file import EngineFile
from local.engine.table import ttl_attribute
from local.engine.ttl import sweep

from .conftest import TABLE


def put(engine: Any, name: Any, ttl: Any) -> None:
    engine.dynamodb.put_item(
        TableName=TABLE, Item={"PK": {"S": "P"}, "SK": {"S": name}, "ttl": ttl}
    )


def test_sweep(engine: Any) -> None:
    now = int(time.time())
    put(engine, "due", {"N": str(now - 10)})
    put(engine, "later", {"N": str(now + 1000)})
    put(engine, "text", {"S": "1"})
    engine.put("mentions", body='"ttl":{"N":"1"}')
    engine.put("plain")
    for number in range(700):
        put(engine, f"many#{number}", {"N": "1"})
    attribute = ttl_attribute(engine.properties)
    assert attribute == "ttl"
    assert sweep(engine.dynamodb, engine.file, TABLE, ["PK", "SK"], attribute) == 701
    assert sweep(engine.dynamodb, engine.file, TABLE, ["PK", "SK"], attribute) == 0
    left = engine.dynamodb.scan(TableName=TABLE)["Items"]
    assert {item["SK"]["S"] for item in left} == {"later", "text", "mentions", "plain"}


def test_an_item_that_was_renewed_stays(engine: Any) -> None:
    put(engine, "a", {"N": "1"})

    class Stale(EngineFile):
        """Saw the item before it was renewed."""

        seen = tuple(engine.file.expired("ttl"))

        def expired(self, attribute: str, now: float | None = None) -> Iterator[dict[str, Any]]:
            return iter(self.seen)

    put(engine, "a", {"N": str(int(time.time()) + 1000)})
    stale = Stale(engine.folder.database, TABLE)
    assert len(stale.seen) == 1
    assert sweep(engine.dynamodb, stale, TABLE, ["PK", "SK"], "ttl") == 0
    assert engine.dynamodb.scan(TableName=TABLE)["Count"] == 1
