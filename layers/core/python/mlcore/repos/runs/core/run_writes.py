"""Writes of runs, with conditions that keep the concurrent writes of other processes, and retries
after conflicts. Also caches runs as this process wrote them last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.table import Operation, table
from mlcore.entities.lifecycle_stages import DELETED
from mlcore.entities.runs import ENDED, RUNNING
from mlcore.ids import now_ms
from mlcore.models.runs import Run as RunItem
from mlcore.repos import document, document_write_retries, document_writes
from mlcore.repos.property_types import remove_types
from mlcore.repos.runs.core import index_keys as run_keys
from mlcore.repos.runs.core import marks, runs
from mlcore.repos.runs.core.index_keys import Values
from mlcore.repos.runs.core.run_cache import KNOWN_BYTES, cache_run, forget_run
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import rewinds


def set_stage(run: StoredRun, target: str) -> None:
    """Deletes a run (``target`` is ``deleted``) or restores it (``active``), whatever its stage is.

    The update requires that nobody deleted or restored the run since it was read, so an update that
    DynamoDB executes late or twice changes nothing. Raises ResourceDoesNotExist.
    """

    def send(current: StoredRun) -> None:
        # The stage may be set already: this call was repeated, or another request did the same.
        if current is run or current.stage != target:
            table.update(current.document.key, _stage_change(current, target))

    forget_run(run.run_id)
    document_write_retries.write("run", run, send, meanwhile)


def _stage_change(run: StoredRun, target: str) -> Update:
    item = run.item
    change = Update()
    document.touch(change)
    change.set(RunItem.stage, target)
    change.set(RunItem.epoch, run.experiment.epoch)
    change.set(RunItem.lsi1sk, keys.lsi1_run(target, item.start_time, item.run_id))
    if target == DELETED:
        change.set(RunItem.deleted_time, now_ms())
    else:
        change.remove(RunItem.deleted_time)
        change.remove(RunItem.ttl)
    _require_same_stage(change, item)
    change.add(RunItem.stage_changes, 1)
    return change


def stage_unchanged(item: RunItem) -> ConditionExpression:
    """Returns the condition that nobody deleted, restored or removed the run since it was read."""
    condition = ConditionExpression()
    _require_same_stage(condition, item)
    return condition


def _require_same_stage(condition: Update, item: RunItem) -> None:
    condition.require_exists(RunItem.PK)
    # The version of the item would conflict with every metric that is logged meanwhile.
    if item.stage_changes is None:
        condition.require_absent(RunItem.stage_changes)
    else:
        condition.require_equal(RunItem.stage_changes, item.stage_changes)


Decision = Callable[[StoredRun], tuple[Mapping[str, Mapping[str, str]], Sequence[tuple[str, str]]]]
"""Decides, from the current run, which texts to set by map and which (map, key) pairs to remove.
Raises if the write is not allowed."""


def write(
    run: StoredRun,
    decide: Decision,
    attributes: Values = (),
    *,
    exclusive: bool = False,
    any_stage: bool = False,
    shared: bool = False,
) -> StoredRun:
    """Changes maps and attributes of an active run; calls ``decide`` again after each conflict with
    another writer.

    Args:
        decide: returns the changes for the run as it is now.
        attributes: further attributes to set, or to remove where the value is None.
        exclusive: the decision depends on the value that it replaces, so no other write may come in
            between.
        any_stage: also write a run that is no longer active, to complete an earlier write.
        shared: other processes are known to write at the same time.

    Returns:
        The run as it was before the write.

    Raises:
        InvalidParameterValue: the run is not active.
        ResourceDoesNotExist: the run was removed meanwhile.
    """
    check = _any if any_stage else runs.check_active
    check(run)
    change = decided(run, decide, attributes)
    if change is None:
        return run

    def send(current: StoredRun) -> None:
        to_send: RunChange | None = change
        if current is not run:
            check(current)
            to_send = decided(current, decide, attributes)
        if to_send is not None:
            others = shared or current is not run
            send_change(current, to_send, exclusive=exclusive, shared=others)

    return document_write_retries.write("run", run, send, meanwhile)


def _any(_: StoredRun) -> None:
    """Accepts an active or deleted run: the check of :func:`write` for ``any_stage``."""


class RunChange(NamedTuple):
    """The changes of a run in one write."""

    sets: Mapping[str, Mapping[str, str]]
    removals: Sequence[tuple[str, str]]
    attributes: Values


def decided(run: StoredRun, decide: Decision, attributes: Values) -> RunChange | None:
    """Returns the changes that ``decide`` and ``attributes`` make in a run; None if nothing
    changes."""
    sets, removals = decide(run)
    extra = [*attributes, *run_keys.of_texts(run.item, sets)]
    if not any(sets.values()) and not removals and not extra:
        return None
    return RunChange(sets, removals, extra)


def send_change(
    run: StoredRun,
    change: RunChange,
    *,
    exclusive: bool,
    shared: bool = False,
    beside: Sequence[Operation] = (),
    overriding: bool = False,
) -> Raw | None:
    """Writes changes of a run, and caches the run if it is running and small enough. Returns the
    run's item after the write; None if it is not known.

    Raises ConditionFailed and TransactionFailed as :func:`mlcore.repos.document_writes.write` does,
    and ItemTooLarge.

    Args:
        exclusive, shared: as for :func:`write`.
        beside: further operations of the same transaction.
        overriding: set metrics also to points that are older than the latest ones; only together
            with ``exclusive``.
    """
    item = run.item
    mark = marks.after(item, change.sets, change.removals)

    def complete(update: Update) -> None:
        for attribute, value in change.attributes:
            update.set_or_remove(attribute, value)
        if mark is not None:
            update.set(RunItem.lsi5sk, mark)
        if not any(attribute is RunItem.property_types for attribute, _ in change.attributes):
            types = item.property_types
            remove_types(update, RunItem.property_types, types, change.sets, change.removals)
        update.require_equal(RunItem.epoch, item.epoch)
        update.require_equal(RunItem.stage, item.stage)
        if change.sets.get("metrics"):
            rewinds.require_unchanged(update, item)

    worth_it = item.status == RUNNING and (item.bytes or 0) <= KNOWN_BYTES
    written = document_writes.write(
        run.document,
        change.sets,
        change.removals,
        complete,
        beside,
        exclusive=exclusive,
        shared=shared,
        compact=any(changed is RunItem.status and to in ENDED for changed, to in change.attributes),
        returning=worth_it,
        overriding=overriding,
    )
    if written is None:
        forget_run(run.run_id)
    else:
        cache_run(run.experiment, written)
    return written


def meanwhile(run: StoredRun, item: Raw | None) -> StoredRun:
    """Returns the run as another writer changed it before our write. Reads the run again with its
    experiment if the run was deleted or restored, or if ``item`` is missing or incomplete.

    Args:
        run: the run as it was read.
        item: the run's item as the other writer left it; None if it is not known.
    """
    moved = item is None or RunItem.of(item).epoch != run.item.epoch
    if item is None or moved or RunItem.run_id.attr_name not in item:
        return runs.load(run.run_id, run.experiment.workspace)
    return runs.of_item(item, run.experiment)
