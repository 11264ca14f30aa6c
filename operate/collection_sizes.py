"""``python -m local.admin sizes``: prints how large the item collections of experiments are.
DynamoDB keeps an experiment's items and their entries in local indexes in one collection of at most
10 GB. The command reads every item: in AWS a collection of 10 GB costs 2.5 million read units, some
0.3 dollars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from operate.module_loading import CannotRun, load_modules

LIMIT_BYTES: Final = 10 * 1024**3
INDEX_ENTRY_BYTES: Final = 100
"""Bytes that DynamoDB counts for an index entry besides its keys."""
_CONTAINER_BYTES: Final = 3


def item_bytes(item: Mapping[str, Any]) -> int:
    """Returns the bytes that DynamoDB counts for an item, given in DynamoDB's JSON, and for its
    entries in local indexes."""
    size = sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())
    key = sum(len(name) + len(item[name]["S"].encode()) for name in ("PK", "SK"))
    for number in range(1, 6):
        entry = item.get(f"lsi{number}sk")
        if entry is not None:
            size += key + len(f"lsi{number}sk") + len(entry["S"].encode()) + INDEX_ENTRY_BYTES
    return size


def collection(experiment_id: str) -> Counter[str]:
    """Returns the number of bytes of an experiment's items and of their entries in local indexes,
    by the items' type."""
    keys, tables = import_module("mlcore.db.keys"), import_module("mlcore.db.table")
    model = import_module("mlcore.models.base").Item
    bytes_by_type: Counter[str] = Counter()
    for item in tables.table.query_all(keys.experiment(experiment_id).pk):
        bytes_by_type[model.of(item).type] += item_bytes(item)
    return bytes_by_type


def run(experiment_id: str | None) -> int:
    """Prints the size of the item collection of one experiment, or of each experiment. Returns 0.
    Raises CannotRun if the table cannot be read."""
    rebuild, errors = load_modules()
    try:
        for number in [experiment_id] if experiment_id else rebuild.experiment_ids():
            _show(number, collection(number))
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error
    return 0


def _show(experiment_id: str, bytes_by_type: Counter[str]) -> None:
    total = bytes_by_type.total()
    print(
        f"experiment {experiment_id}: {total:,} bytes, {100 * total / LIMIT_BYTES:.2f} % of 10 GB"
    )
    for kind, size in bytes_by_type.most_common():
        print(f"  {size:15,}  {kind}")


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return (len(content.lstrip("-")) + 1) // 2 + 1
    if kind == "B":
        # Base64 in responses, bytes in requests.
        return len(content) if isinstance(content, bytes) else len(content.rstrip("=")) * 3 // 4
    if kind == "M":
        return _CONTAINER_BYTES + sum(
            1 + len(name.encode()) + _value_bytes(element) for name, element in content.items()
        )
    if kind == "L":
        return _CONTAINER_BYTES + sum(1 + _value_bytes(element) for element in content)
    return 1
