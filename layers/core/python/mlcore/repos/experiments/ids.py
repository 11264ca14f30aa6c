"""Numbers for new experiments, all from one counter item; owns which numbers are given out, and
makes no experiment.

The protocol holds an experiment's id as an int32 in places, and clients and people take it for a
small number. A number is given out once: a request that fails leaves a gap, and so do numbers that
an experiment had before the counter came to them, because it was imported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.limits.experiments import (
    check_searched,
    experiment_id,
    is_given_out,
    no_experiment_id,
)
from mlcore.models.platform import IdCounter

MOST_TOGETHER: Final = 500
"""Of numbers that are asked for at once."""

PASSED_OVER: Final = 100_000_000
"""Up to here the counter follows imported numbers; to greater ones it may come by itself, or never:
an id must stay an int32."""


def free() -> Iterator[str]:
    """Ids to try one after another until one is free when it is written: at first the next number.

    Where numbers turn out to be taken, twice as many are asked for each time: behind a thousand
    imported experiments there are ten requests, not a thousand.
    """
    (first,) = _next(1)
    yield first
    count = 2
    while True:
        numbers = _next(count)
        items = table.batch_get([keys.experiment(one) for one in numbers])
        for one, item in zip(numbers, items, strict=True):
            if item is None:
                yield one
        count = min(2 * count, MOST_TOGETHER)


def canonical_ids(texts: Sequence[str]) -> list[str]:
    """The canonical ids that a request lists, each once. A request more where one of them is
    neither a number nor a ULID: such an id is one only while there is its experiment.

    Raises:
        InvalidParameterValue: a text is no id, or they are too many.
    """
    check_searched(texts)
    found = list(dict.fromkeys(map(experiment_id, texts)))
    others = [one for one in found if not is_given_out(one)][:MOST_TOGETHER]
    if others:
        for one, item in zip(
            others, table.batch_get(list(map(keys.experiment, others))), strict=True
        ):
            if item is None:
                raise no_experiment_id(one)
    return found


def is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def pass_over(imported: str) -> None:
    """Lets the numbers go on behind an id, if it is one of theirs to come."""
    if not is_number(imported) or int(imported) > PASSED_OVER:
        return
    reached = int(imported)
    update = _update()
    update.set_once(IdCounter.since, now_ms())
    update.set(IdCounter.contexts, reached)
    update.require_absent_or_less(IdCounter.contexts, reached)
    with contextlib.suppress(ConditionFailed):  # they are behind it already
        table.update(keys.id_counter(), update)


def begin_before(creation_time: int) -> None:
    """Notes that there is an experiment that was made at a time before the numbers began."""
    update = _update()
    update.set(IdCounter.since, creation_time)
    update.require_absent_or_greater(IdCounter.since, creation_time)
    with contextlib.suppress(ConditionFailed):
        table.update(keys.id_counter(), update)


def since() -> int | None:
    """When the oldest experiment was made that has a number or was imported, beside 0, in
    milliseconds since the epoch; one GetItem. None: there is none."""
    item = table.get(keys.id_counter())
    return None if item is None else IdCounter.of(item).since


def next_numbers(count: int) -> list[int]:
    """Numbers of contexts, which experiments share; one UpdateItem."""
    return [int(one) for one in _next(count)]


def _next(count: int) -> list[str]:
    update = _update()
    update.set_once(IdCounter.since, now_ms())
    update.add(IdCounter.contexts, count)
    last = IdCounter.of(table.update(keys.id_counter(), update, returning=True)).contexts or 0
    return [str(one) for one in range(last - count + 1, last + 1)]


def _update() -> Update:
    update = Update()
    update.set(IdCounter.type, keys.ID_COUNTER.name)
    update.set(IdCounter.updated_at, now_ms())
    update.add(IdCounter.version, 1)
    return update
