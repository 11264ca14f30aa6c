"""Writes of runs, each on the condition that the run still is as it was decided on; what a run is
like after the last of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.table import Operation, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.runs import ENDED, RUNNING
from mlcore.entities.stages import DELETED
from mlcore.ids import now_ms
from mlcore.memory import Memory
from mlcore.models.base import MetaItem
from mlcore.models.runs import Run as RunItem
from mlcore.repos import document, document_writes, settlement
from mlcore.repos.kubeflow.tags import untype
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import index_keys as run_keys
from mlcore.repos.runs import marks, runs
from mlcore.repos.runs.index_keys import Values
from mlcore.repos.runs.runs import StoredRun

KNOWN_BYTES: Final = 16_000
"""Of the texts of a run that is remembered; larger ones are read."""

KNOWN_SECONDS: Final = 600.0


class Left(NamedTuple):
    """A run as a write of this process left it."""

    experiment: Experiment
    item: Raw


def _weigh(left: Left) -> int:
    """Bytes of Python's objects: for the item's own attributes, the experiment that is kept beside
    it, and its maps, whose entries are objects each where they are not one text."""
    tags = sum(len(key) + len(value) + 150 for key, value in left.experiment.tags.items())
    texts = 2 if all(one.is_text(left.item) for one in run_children.MAPS.values()) else 12
    return 9_500 + tags + texts * (MetaItem.of(left.item).bytes or 0)


_known: Memory[str, Left] = Memory("run as left", seconds=KNOWN_SECONDS, weigh=_weigh)


def known(run_id: str, workspace: str) -> StoredRun | None:
    """A run that goes on, as this process left it; others may have written since. No request."""
    left = _known.get(run_id)
    if left is None or left.experiment.workspace != workspace:
        return None
    return runs.of_item(left.item, left.experiment)


def know(experiment: Experiment, item: Raw) -> None:
    """Remembers a run as it was written just now, while it is worth it."""
    run, meta = RunItem.of(item), MetaItem.of(item)
    if run.status != RUNNING or meta.overflow or (meta.bytes or 0) > KNOWN_BYTES:
        _known.pop(run.run_id)
        return
    before = _known.get(run.run_id)
    if before is None or MetaItem.of(before.item).version < meta.version:
        _known.put(run.run_id, Left(experiment, item))


def forget(run_id: str) -> None:
    _known.pop(run_id)


def set_stage(run: StoredRun, target: str) -> None:
    """Deletes or restores one run, whatever its stage is now.

    The update requires that nobody deleted or restored the run since it was read. So an update that
    DynamoDB executes late or twice changes nothing. Raises ResourceDoesNotExist.
    """

    def send(current: StoredRun) -> None:
        # The stage may be there already: this call was repeated, or another did the same.
        if current is run or current.stage != target:
            table.update(current.document.key, _stage_change(current, target))

    forget(run.run_id)
    settlement.write("run", run, send, meanwhile)


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
    change.require_exists(RunItem.PK)
    # The version of the item would conflict with every metric that is logged meanwhile.
    if item.stage_changes is None:
        change.require_absent(RunItem.stage_changes)
    else:
        change.require_equal(RunItem.stage_changes, item.stage_changes)
    change.add(RunItem.stage_changes, 1)
    return change


Decision = Callable[[StoredRun], tuple[Mapping[str, Mapping[str, str]], Sequence[tuple[str, str]]]]
"""From a run as it is: texts to set by map, and (map, key) pairs to remove. Raises what forbids the
write."""


def write(
    run: StoredRun,
    decide: Decision,
    attributes: Values = (),
    *,
    exclusive: bool = False,
    any_stage: bool = False,
    shared: bool = False,
) -> StoredRun:
    """Changes maps and attributes of an active run; decides again whenever another writer came
    first.

    Args:
        decide: what to change, asked anew for each attempt.
        attributes: further attributes to set, or to remove where the value is None.
        exclusive: what is decided depends on the value that it replaces, so nobody may write in
            between.
        any_stage: completes what was begun while the run was active, whatever it is now.
        shared: others are known to write at the same time.

    Returns:
        The run as it was decided on last (not as it is after the write).

    Raises:
        InvalidParameterValue: the run is not active.
    """
    check = _any if any_stage else runs.check_active
    check(run)
    change = decided(run, decide, attributes)
    if change is None:
        return run

    def send(current: StoredRun) -> None:
        to_send: Change | None = change
        if current is not run:
            check(current)
            to_send = decided(current, decide, attributes)
        if to_send is not None:
            others = shared or current is not run
            send_change(current, to_send, exclusive=exclusive, shared=others)

    return settlement.write("run", run, send, meanwhile)


def _any(_: StoredRun) -> None:
    """Allows a write in any stage."""


class Change(NamedTuple):
    """What a write changes in a run."""

    sets: Mapping[str, Mapping[str, str]]
    removals: Sequence[tuple[str, str]]
    attributes: Values


def decided(run: StoredRun, decide: Decision, attributes: Values) -> Change | None:
    """What to change in a run as it is; None for nothing."""
    sets, removals = decide(run)
    extra = [*attributes, *run_keys.of_texts(run.item, sets)]
    if not any(sets.values()) and not removals and not extra:
        return None
    return Change(sets, removals, extra)


def send_change(
    run: StoredRun,
    change: Change,
    *,
    exclusive: bool,
    shared: bool = False,
    beside: Sequence[Operation] = (),
) -> Raw | None:
    """Answers the item as it is then, of a run that is remembered.

    Raises ConditionFailed, TooLarge and TransactionFailed as
    :func:`mlcore.repos.document_writes.write` does.

    Args:
        exclusive, shared: as for :func:`write`.
        beside: what the same transaction writes.
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
            untype(update, RunItem.property_types, types, change.sets, change.removals)
        update.require_equal(RunItem.epoch, item.epoch)
        update.require_equal(RunItem.stage, item.stage)

    worth_it = item.status == RUNNING and (item.bytes or 0) <= KNOWN_BYTES
    left = document_writes.write(
        run.document,
        change.sets,
        change.removals,
        complete,
        beside,
        exclusive=exclusive,
        shared=shared,
        settled=any(place is RunItem.status and to in ENDED for place, to in change.attributes),
        returning=worth_it,
    )
    if left is None:
        forget(run.run_id)
    else:
        know(run.experiment, left)
    return left


def meanwhile(run: StoredRun, item: Raw | None) -> StoredRun:
    """The run after another writer came first; a stage that moved is read again with its
    experiment."""
    moved = item is None or RunItem.of(item).epoch != run.item.epoch
    if item is None or moved or RunItem.run_id.attr_name not in item:
        return runs.load(run.run_id, run.experiment.workspace)
    return runs.of_item(item, run.experiment)
