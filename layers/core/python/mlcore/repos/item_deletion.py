"""Deletes any number of items, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from mlcore.db.expression import Raw
from mlcore.db.table import key_of_item, table

BATCH: Final = 500


def delete_items(items: Iterable[Raw]) -> None:
    """Deletes items in batches. Each item needs to have only its key attributes."""
    item_keys = map(key_of_item, items)
    while batch := list(islice(item_keys, BATCH)):
        table.batch_write(deletes=batch)
