"""What deleted models leave in their homes; clears it, and never touches what can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from mlcore.db import keys
from mlcore.db.expression import Condition, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table

CLEARED_TOGETHER = 1_000


def clear(home: str, incarnation: str) -> None:
    """Removes all of a deleted model: aliases, versions, the links of their runs, at last the claim
    to the partition. Nobody reaches any of it, so it may stop anywhere and be done again."""
    owner = table.get(keys.model_home(home))
    if owner is None or owner["incarnation"]["S"] != incarnation:
        return
    model = table.get(keys.model_at(owner["model_pk"]["S"]))
    if model is not None and model["incarnation"]["S"] == incarnation:
        return
    left = _children(home)
    while chunk := list(islice(left, CLEARED_TOGETHER)):
        table.batch_write(deletes=chunk)
    mine = Condition()
    mine.require_equal("incarnation", string(incarnation))
    try:
        table.delete(keys.model_home(home), mine)
    except ConditionFailed:
        return  # another has done the same


def _children(home: str) -> Iterator[keys.Key]:
    kept = {keys.model_at(home).sk, keys.model_home(home).sk}
    for item in table.query_all(
        home, attributes=["PK", "SK", "run_id", "incarnation", "model_version"]
    ):
        place = keys.Key(item["PK"]["S"], item["SK"]["S"])
        if place.sk in kept:
            continue
        if "run_id" in item and item["run_id"]["S"]:
            yield keys.run_model_version(
                item["run_id"]["S"], item["incarnation"]["S"], int(item["model_version"]["N"])
            )
        yield place
