"""Moves a run to another experiment. Its id, its data and its files stay.

A run's items are in the partition of its experiment, so they are written again in the partition of
the target:

1. The run's ``RUN#REF`` gets ``moving_to`` and ``move_id``, the id of this attempt.
2. The history, and values outside the run item, are copied, in transactions that require the
   ``move_id`` of 1. Nobody reads them there, because the target has no item of the run.
3. One transaction switches: it deletes the run item in the source, puts it in the target, changes
   the experiment in ``RUN#REF``, and enters the run's folder into the list of locations. It
   requires the version of the run that was read before 2, the ``move_id`` of 1, and that neither
   experiment was deleted or restored.
4. The indexer deletes the remaining items in the source (:func:`remove_remains`).

So a run is always in exactly one experiment. A process may die anywhere before 3: the copies are
garbage, which the next attempt replaces. Of two attempts at the same time, the earlier one writes
nothing any more once the later one has begun: the later one may have switched, and the run in the
target may have changed since. A request that writes the run item at the same time makes
3 fail, or fails itself, because the item is gone; then it is executed again in the target
(:class:`mlcore.errors.RunMoved`). A batch of points is written beside the item, without a
condition, and could reach the source after 2: so a run that was written in the last
:data:`QUIET_SECONDS` is not moved. See ``docs/adr/0089``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from mlcore import errors, optimistic_retry, reserved_tags
from mlcore.artifacts.storage_keys import root_of
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import (
    Check,
    Delete,
    ItemUpdate,
    Operation,
    Put,
    TransactionFailed,
    key_of_item,
    table,
)
from mlcore.entities.experiments import Experiment
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import KEY, ChildItem, Item
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.runs import Run as RunItem
from mlcore.models.runs import RunMetricFile, RunReference
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.files import default_folders, location_list
from mlcore.repos.runs.core import datasets, run_cache, runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import history_files, rewinds

QUIET_SECONDS: Final = 60
"""Longer than a request may take, so that no write of an earlier request is under way."""
TOGETHER: Final = 90
"""Items that one transaction copies or removes; DynamoDB allows 100 operations."""
TOGETHER_BYTES: Final = 3_000_000
"""Bytes that one transaction copies; DynamoDB allows 4 MB."""

_HISTORY: Final = frozenset(
    (keys.RUN_METRIC_BATCH.name, keys.RUN_METRIC_HISTORY.name, keys.RUN_METRIC_FILE.name)
)


def move(run_id: str, target: Experiment) -> None:
    """Moves a run to an experiment of the same workspace; does nothing if it is there already.

    Raises:
        ResourceDoesNotExist: the run does not exist in this workspace.
        InvalidParameterValue: the run is deleted.
        InvalidState: the run cannot be moved now (:func:`check_movable`).
        RunMoved: another request has moved the run.
        RequestLimitExceeded: every attempt conflicted with other writes to the run.
    """

    def attempt() -> None:
        run = runs.load(run_id, target.workspace)
        if run.experiment.experiment_id == target.experiment_id:
            return
        check_movable(run)
        move_id = new_ulid()
        _announce(run, target, move_id)
        _copy_datasets(run, target)
        _copy_children(run, target, move_id)
        _switch(run, target, move_id)

    run_cache.forget_run(run_id)
    optimistic_retry.retry_on_conflict("run", attempt)


def check_movable(run: StoredRun) -> None:
    """Checks that the state of a run allows a move of the run to another experiment. The caller
    checks that no other item refers to the run (:mod:`mlcore.repos.removal.run_references`).

    Raises:
        InvalidParameterValue: the run is deleted.
        InvalidState: the run was written to within the last :data:`QUIET_SECONDS`, is being
            rewound, has a number in the Kubeflow API, has logged models as inputs or outputs, or
            has files in a folder that is not named by its id or is another workspace's.
    """
    runs.check_active(run)
    item = run.item
    if now_ms() - (item.updated_at or 0) < QUIET_SECONDS * 1000 or rewinds.of(item).is_open:
        raise _refused(
            run, f"it was written to within the last {QUIET_SECONDS} seconds. Try again later"
        )
    if item.number is not None or item.external_id is not None:
        raise _refused(run, "the Kubeflow API lists it as a run of its experiment")
    if run.document.texts("model_inputs") or run.document.texts("model_outputs"):
        raise _refused(run, "it has logged models as inputs or outputs")
    key = default_folders.key_of(item.artifact_uri, run.experiment.workspace)
    if key is None and root_of(item.artifact_uri) is not None:
        raise _refused(run, "its files are in the folder of another workspace")
    if key is not None:
        segments = key.split("/")
        if segments[-1] != item.run_id and segments[-2:] != [item.run_id, "artifacts"]:
            raise _refused(run, "its files are in a folder that is not named by its id")


def _refused(run: StoredRun, why: str) -> errors.InvalidState:
    return errors.InvalidState(f"The run {run.run_id} cannot be moved: {why}.")


def _announce(run: StoredRun, target: Experiment, move_id: str) -> None:
    """Writes the target and the id of this attempt to the run's reference (step 1). From then on no
    other process deletes items of the run in the target, and no earlier attempt can execute step 3.
    """
    update = Update()
    update.set(RunReference.moving_to, target.experiment_id)
    update.set(RunReference.move_id, move_id)
    update.require_equal(RunReference.experiment_id, run.experiment.experiment_id)
    try:
        table.update(keys.run_ref(run.run_id), update)
    except ConditionFailed as failed:
        raise WriteConflict from failed


def _copy_datasets(run: StoredRun, target: Experiment) -> None:
    """Writes the datasets that the run used, and their contexts, to the target."""
    (outline,) = runs.with_datasets([runs.outline(run)])
    if not outline.dataset_inputs:
        return
    datasets.ensure(target.experiment_id, [entry.dataset for entry in outline.dataset_inputs])
    datasets.add_contexts(
        target.experiment_id,
        [
            (
                entry.dataset.name,
                entry.dataset.digest,
                dict(entry.tags).get(reserved_tags.DATASET_CONTEXT),
            )
            for entry in outline.dataset_inputs
        ],
    )


def _copy_children(run: StoredRun, target: Experiment, move_id: str) -> None:
    """Makes the child items in the target equal to those of the source.

    The source is read in the order of keys, batches before packs, as all readers do: the indexer
    may be packing batches meanwhile. Derived items are not copied; the indexer makes them.

    Raises WriteConflict if another attempt to move the run has begun, or the run was written.
    """
    mine = ConditionExpression()
    mine.require_equal(RunReference.move_id, move_id)
    still_mine = Check(keys.run_ref(run.run_id), mine)
    for together in _groups(_changes_of_children(run, target, move_id)):
        try:
            table.transact([still_mine, *together], new_ulid())
        except TransactionFailed as failed:
            raise WriteConflict from failed


def _changes_of_children(
    run: StoredRun, target: Experiment, move_id: str
) -> Iterator[Put | Delete]:
    """Yields the operations that make the child items in the target equal to those of the
    source."""
    owner = (target.experiment_id, run.run_id)
    present = {key_of_item(item): item for item in _children(owner)}
    for item in filter(_is_source, _children((run.experiment.experiment_id, run.run_id))):
        copy = _copy_of(item, owner, move_id)
        if present.pop(key_of_item(copy), None) != copy:
            yield Put(copy)
    yield from map(Delete, present)


def _groups(operations: Iterable[Put | Delete]) -> Iterator[list[Put | Delete]]:
    """Yields the operations in lists that each fit into one transaction."""
    together: list[Put | Delete] = []
    size = 0
    for operation in operations:
        added = len(json.dumps(operation.item)) if isinstance(operation, Put) else 0
        if together and (len(together) == TOGETHER or size + added > TOGETHER_BYTES):
            yield together
            together, size = [], 0
        together.append(operation)
        size += added
    if together:
        yield together


def _children(run: tuple[str, str]) -> Iterator[Raw]:
    return table.query_all(keys.run(*run).pk, prefix=keys.run_prefix(run[1]))


def _is_source(item: Raw) -> bool:
    """Whether a child item of a run has data that no other item has."""
    return Item.of(item).type in _HISTORY or ChildItem.of(item).outside is not None


def _copy_of(item: Raw, owner: tuple[str, str], move_id: str) -> Raw:
    """Returns a child item for the partition of the target. If the item describes a file of metric
    history, copies the file to a location that was never used: an older one may be about to be
    removed."""
    copy = {**item, Item.PK.attr_name: Item.PK.raw(keys.run(*owner).pk)}
    if Item.of(item).type != keys.RUN_METRIC_FILE.name:
        return copy
    location = history_files.copy(item, owner, move_id)
    copy[RunMetricFile.experiment_id.attr_name] = RunMetricFile.experiment_id.raw(owner[0])
    copy[RunMetricFile.location.attr_name] = RunMetricFile.location.raw(location)
    copy.pop(RunMetricFile.event.attr_name, None)
    return copy


def _switch(run: StoredRun, target: Experiment, move_id: str) -> None:
    """Executes the transaction after which the run is in the target. Raises WriteConflict."""
    absent, unchanged, mine = ConditionExpression(), ConditionExpression(), Update()
    absent.require_absent(RunItem.PK)
    unchanged.require_equal(RunItem.version, run.item.version)
    unchanged.require_absent(RunItem.number)  # which is written without a new version
    mine.set(RunReference.experiment_id, target.experiment_id)
    mine.set(RunReference.updated_at, now_ms())
    mine.add(RunReference.version, 1)
    mine.remove(RunReference.moving_to)
    mine.remove(RunReference.move_id)
    mine.require_equal(RunReference.move_id, move_id)
    workspace, uri = target.workspace, run.item.artifact_uri
    operations: list[Operation] = [
        Put(_moved(run, target), absent),
        Delete(run.document.key, unchanged),
        ItemUpdate(keys.run_ref(run.run_id), mine),
        _unchanged(run.experiment),
        _unchanged(target),
        *location_list.of_moved_run(run.run_id, uri, target.experiment_id, workspace),
    ]
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        raise WriteConflict from failed
    runs.remember(run.run_id, target.experiment_id)


def _moved(run: StoredRun, target: Experiment) -> Raw:
    """Returns the run's item in the target: with a mark, so that searches read the run itself until
    the indexer has processed it."""
    key = keys.run(target.experiment_id, run.run_id)
    _, gsi1sk = keys.gsi1_run(run.run_id, target.experiment_id)
    version = run.item.version + 1
    item = dict(run.document.item)
    for attribute, value in (
        (RunItem.PK, key.pk),
        (RunItem.gsi1sk, gsi1sk),
        (RunItem.lsi5sk, keys.lsi5_run_mark(run.run_id, version)),
        (RunItem.experiment_id, target.experiment_id),
        (RunItem.epoch, target.epoch),
        (RunItem.updated_at, now_ms()),
        (RunItem.version, version),
    ):
        item[attribute.attr_name] = attribute.raw(value)
    item.pop(RunItem.quiet.attr_name, None)
    item.pop(RunItem.primary_metric.attr_name, None)
    primary = target.tags.get(runs.PRIMARY_METRIC_TAG)
    if primary is not None:
        item[RunItem.primary_metric.attr_name] = RunItem.primary_metric.raw(primary)
    return item


def _unchanged(experiment: Experiment) -> Check:
    """Returns the condition that an experiment was neither deleted, restored nor moved to another
    workspace since it was read."""
    condition = ConditionExpression()
    condition.require_equal(ExperimentItem.epoch, experiment.epoch)
    condition.require_equal(ExperimentItem.stage, experiment.lifecycle_stage)
    condition.require_equal(ExperimentItem.workspace, experiment.workspace)
    return Check(keys.experiment(experiment.experiment_id), condition)


def remove_remains(experiment_id: str, run_id: str) -> None:
    """Deletes the items that a run has left in an experiment from which it was moved. May be killed
    anywhere and repeated. Stops if the run was moved back to the experiment, or is being moved
    back: then the items are needed. Each transaction checks that."""
    away = ConditionExpression()
    away.require_exists(RunReference.PK)
    away.require_absent_or_other(RunReference.experiment_id, experiment_id)
    away.require_absent_or_other(RunReference.moving_to, experiment_id)
    check = Check(keys.run_ref(run_id), away)
    pk = keys.run(experiment_id, run_id).pk
    remaining = table.query_all(pk, prefix=keys.run_prefix(run_id), attributes=KEY)
    while together := list(islice(remaining, TOGETHER)):
        try:
            table.transact([check, *_deletions(together)], new_ulid())
        except TransactionFailed:
            return


def _deletions(items: Sequence[Raw]) -> list[Delete]:
    return [Delete(key_of_item(item)) for item in items]
