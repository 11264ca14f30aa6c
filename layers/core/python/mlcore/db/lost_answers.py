"""Recognizes a conditional write that was executed although its answer was lost.

The repeated attempt of such a write fails its condition, because the item is as the first attempt
left it. To the caller this would look like another writer.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from mlcore.db.expression import AttributePath, Raw, Update
from mlcore.db.failures import ConditionFailed

LeftBy = Callable[[Raw | None], bool]
"""Returns whether a stored item (None if there is none) is as a write leaves it."""


def execute(write: Callable[[], Raw], is_left_by_write: LeftBy) -> Raw:
    """Calls a function that sends a conditional write, and returns DynamoDB's answer. If the
    condition fails only because an earlier attempt was executed, the answer has the stored item.

    Another writer may have left exactly the same item meanwhile. Then the item is as the caller
    wants it, too.

    Raises:
        ConditionFailed: no earlier attempt may have been executed, or the stored item is not as the
            write leaves it.
    """
    try:
        return write()
    except ConditionFailed as failed:
        if not (failed.may_be_own and is_left_by_write(failed.item)):
            raise
        return {} if failed.item is None else {"Attributes": failed.item}


def is_absent(item: Raw | None) -> bool:
    """Returns whether there is no item, as a DeleteItem leaves it."""
    return item is None


def put_of(item: Raw) -> LeftBy:
    """Returns a function that tells whether a stored item is the one that a PutItem of ``item``
    writes."""
    return lambda stored: stored is not None and is_same(stored, item)


def change_of(update: Update) -> LeftBy:
    """Returns a function that tells whether a stored item is as an UpdateItem leaves it: it has
    each value that the update sets and none that it removes, and each number to which the update
    adds is the required number plus the amount. The function returns False if the update adds to a
    number without requiring its value, uses :meth:`Update.set_once`, or changes a set."""
    return lambda stored: stored is not None and _shows(stored, update)


def _shows(stored: Raw, update: Update) -> bool:
    return update.sets_only_values and all(
        _has_change(stored, update, *change) for change in update.changes
    )


def _has_change(
    stored: Raw, update: Update, path: AttributePath, value: Raw | None, amount: int
) -> bool:
    attribute, key = path if isinstance(path, tuple) else (path, None)
    current = stored.get(attribute.attr_name)
    if key is not None and current is not None:
        current = current.get("M", {}).get(key)
    if not amount:
        return is_same(current, value)
    required = update.required.get(attribute.attr_name)
    if required is None:
        return False
    return is_same(current, {"N": str(int(required["N"]) + amount)})


def is_same(stored: Any, written: Any) -> bool:
    """Returns whether two values in DynamoDB JSON, or two items, are equal. DynamoDB may return a
    number in another spelling, the texts of a set in another order, and bytes as Base64."""
    if isinstance(written, dict):
        if not isinstance(stored, dict) or stored.keys() != written.keys():
            return False
        return all(
            Decimal(stored[name]) == Decimal(value)
            if name == "N" and isinstance(value, str)
            else sorted(stored[name]) == sorted(value)
            if name == "SS" and isinstance(value, list)
            else is_same(stored[name], value)
            for name, value in written.items()
        )
    if isinstance(written, list):
        return len(stored) == len(written) and all(map(is_same, stored, written))
    if isinstance(written, bytes | bytearray | memoryview) and isinstance(stored, str):
        return stored == base64.b64encode(written).decode()
    return bool(stored == written)
