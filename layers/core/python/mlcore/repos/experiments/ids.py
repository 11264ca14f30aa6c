"""Ids for new experiments: increasing numbers from one counter item.

MLflow's protocol holds an experiment's id as an int32 in places, and clients expect a small number.
A number is given out only once: failed requests leave gaps, and numbers that imported experiments
already have are skipped.
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
    is_numeric_id,
    no_experiment_id,
)
from mlcore.models.counters import IdCounter

MOST_TOGETHER: Final = 500
"""Maximum of numbers taken from the counter at once."""

PASSED_OVER: Final = 100_000_000
"""The counter is advanced past imported ids up to this number. Greater ids are ignored, so that new
ids stay within int32."""


def unused_ids() -> Iterator[str]:
    """Yields ids for a new experiment, for the caller to try until a write shows that one is free.

    If the first id is taken, two numbers are taken from the counter together, then four, and so on:
    passing a thousand imported experiments takes about ten rounds, each of one write to the counter
    and one BatchGetItem per hundred numbers.
    """
    (first,) = _next(1)
    yield first
    count = 2
    while True:
        numbers = _next(count)
        items = table.batch_get([keys.experiment(number) for number in numbers])
        for candidate, item in zip(numbers, items, strict=True):
            if item is None:
                yield candidate
        count = min(2 * count, MOST_TOGETHER)


def canonical_ids(texts: Sequence[str]) -> list[str]:
    """Returns the experiment ids of a request in their canonical form, each once. Raises
    InvalidParameterValue if a text is not an experiment id, or there are too many.

    A text that is no number is an id only while an experiment has it. The first
    :data:`MOST_TOGETHER` such texts are looked up, with one BatchGetItem per hundred."""
    check_searched(texts)
    ids = list(dict.fromkeys(map(experiment_id, texts)))
    others = [canonical for canonical in ids if not is_numeric_id(canonical)][:MOST_TOGETHER]
    if others:
        for canonical, item in zip(
            others, table.batch_get(list(map(keys.experiment, others))), strict=True
        ):
            if item is None:
                raise no_experiment_id(canonical)
    return ids


def is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def advance_past(imported: str) -> None:
    """Advances the counter of experiment ids past the id of an imported experiment. Does nothing if
    the id is not a number or is greater than :data:`PASSED_OVER`."""
    if not is_number(imported) or int(imported) > PASSED_OVER:
        return
    reached = int(imported)
    update = _update()
    update.set_once(IdCounter.since, now_ms())
    update.set(IdCounter.contexts, reached)
    update.require_absent_or_less(IdCounter.contexts, reached)
    with contextlib.suppress(ConditionFailed):  # the counter is past them already
        table.update(keys.id_counter(), update)


def note_creation_time(creation_time: int) -> None:
    """Stores the creation time of an imported experiment (milliseconds since the epoch) in the item
    that counts ids, as the oldest creation time of all experiments; does nothing if the stored
    time is as old or older."""
    update = _update()
    update.set(IdCounter.since, creation_time)
    update.require_absent_or_greater(IdCounter.since, creation_time)
    with contextlib.suppress(ConditionFailed):
        table.update(keys.id_counter(), update)


def oldest_creation_time() -> int | None:
    """Returns when the first id was taken from the counter item (for an experiment other than 0 or
    for an entity of Kubeflow's registry), or when the oldest imported experiment was created,
    whichever is earlier, in milliseconds since the epoch; None if neither happened. One GetItem."""
    item = table.get(keys.id_counter())
    return None if item is None else IdCounter.of(item).since


def next_numbers(count: int) -> list[int]:
    """Returns new Kubeflow numbers (integer ids), such as those of models and runs, from the
    counter that also gives experiments their ids. One UpdateItem."""
    return [int(text) for text in _next(count)]


def _next(count: int) -> list[str]:
    update = _update()
    update.set_once(IdCounter.since, now_ms())
    update.add(IdCounter.contexts, count)
    last = IdCounter.of(table.update(keys.id_counter(), update, returning=True)).contexts or 0
    return [str(number) for number in range(last - count + 1, last + 1)]


def _update() -> Update:
    update = Update()
    update.set(IdCounter.type, keys.ID_COUNTER.name)
    update.set(IdCounter.updated_at, now_ms())
    update.add(IdCounter.version, 1)
    return update
