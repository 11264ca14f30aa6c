"""Reads the runs of an experiment's partition with their child items, several runs in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import UPPER_BOUND
from mlcore.db.table import key_of_item, table
from mlcore.models.base import KEY

IN_PARALLEL: Final = 64
"""Number of runs that are read at the same time."""
_FIRST, _LAST = keys.prefix_range(keys.run_prefix())


class RunItems(NamedTuple):
    """The items of one run; with ``run_id`` None, the items in the runs' key range before the first
    run."""

    run_id: str | None
    items: list[Raw]


def run_sort_keys(pk: str) -> list[str]:
    """Returns the sort keys of all run items of a partition, in order."""
    listed = table.query_all(pk, index="LSI2", prefix=keys.lsi2_run_prefix(), attributes=KEY)
    return sorted(key_of_item(item).sk for item in listed)


def runs_with_items(pk: str) -> Iterator[RunItems]:
    """Yields all items in the key range of an experiment's runs, run by run, without packs of
    metric history, from which no other items are derived."""
    sort_keys = run_sort_keys(pk)
    first = sort_keys[0] if sort_keys else _LAST
    yield RunItems(None, _until(first, table.query_all(pk, between=(_FIRST, first))))
    bounds = list(pairwise([*sort_keys, _LAST]))
    for at in range(0, len(bounds), IN_PARALLEL):
        calls = [partial(_run_items, pk, *bound) for bound in bounds[at : at + IN_PARALLEL]]
        yield from table.parallel(calls)


def _run_items(pk: str, sort_key: str, next_sort_key: str) -> RunItems:
    run_id: str = keys.parse(pk, sort_key).fields["run_id"]
    # MHIST is between METRIC and PARAM.
    until_metrics = keys.run_child_prefix(run_id, "METRIC") + UPPER_BOUND
    from_params = keys.run_child_prefix(run_id, "PARAM")
    items = list(table.query_all(pk, between=(sort_key, until_metrics)))
    items += _until(next_sort_key, table.query_all(pk, between=(from_params, next_sort_key)))
    return RunItems(run_id, items)


def _until(excluded: str, items: Iterator[Raw]) -> list[Raw]:
    """Returns the items of a key range without the one at its end, which DynamoDB includes."""
    return [item for item in items if key_of_item(item).sk != excluded]
