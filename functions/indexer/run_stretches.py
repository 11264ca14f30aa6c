"""Reads the run part of an experiment's partition, run by run, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import LAST
from mlcore.db.table import key_in, table
from mlcore.models.base import KEY

TOGETHER: Final = 64
_BEGIN, _END = keys.sort_keys_with(keys.run_prefix())


class Stretch(NamedTuple):
    """A stretch of the partition: a run with its children, and what belongs to no run."""

    run_id: str | None
    items: list[Raw]


def sort_keys(pk: str) -> list[str]:
    """The sort keys of the runs of a partition, in order."""
    listed = table.query_all(pk, index="LSI2", prefix=keys.lsi2_run_prefix(), attributes=KEY)
    return sorted(key_in(item).sk for item in listed)


def stretches(pk: str) -> Iterator[Stretch]:
    """The run part of the partition without the packs of history, which nothing is derived of."""
    found = sort_keys(pk)
    first = found[0] if found else _END
    yield Stretch(None, _before(first, table.query_all(pk, between=(_BEGIN, first))))
    bounds = list(pairwise([*found, _END]))
    for at in range(0, len(bounds), TOGETHER):
        calls = [partial(_stretch, pk, *bound) for bound in bounds[at : at + TOGETHER]]
        yield from table.parallel(calls)


def _stretch(pk: str, sort_key: str, following: str) -> Stretch:
    run_id: str = keys.parse(pk, sort_key).fields["run_id"]
    until_metrics = keys.run_child_prefix(run_id, "METRIC") + LAST
    from_params = keys.run_child_prefix(run_id, "PARAM")
    items = list(table.query_all(pk, between=(sort_key, until_metrics)))
    items += _before(following, table.query_all(pk, between=(from_params, following)))
    return Stretch(run_id, items)


def _before(following: str, items: Iterator[Raw]) -> list[Raw]:
    """Without the item that a closed range ends with."""
    return [item for item in items if key_in(item).sk != following]
