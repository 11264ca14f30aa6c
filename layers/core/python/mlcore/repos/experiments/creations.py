"""The transaction that creates an experiment: its item, and the lock item that makes its name
unique."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.table import Operation, Put, TransactionFailed, back_off, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.ids import new_ulid, now_ms
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.experiments import ExperimentNameLock
from mlcore.repos.workspaces import workspaces

ATTEMPTS: Final = 4
SECONDS: Final = 10.0
"""A creation is not retried after this time, because API Gateway waits at most 29 s."""


class ExperimentNameTaken(Exception):
    """Another experiment, active or deleted, holds the name."""


class IdTaken(Exception):
    """Another experiment has the id."""


class ExperimentOperationFailed(Exception):
    """The condition of another operation in the transaction that creates an experiment does not
    hold."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation)
        self.operation = operation


def put(experiment: Experiment, item: Raw, also: Sequence[Operation]) -> None:
    """Executes the transaction that creates an experiment. Raises the errors of
    :func:`mlcore.repos.experiments.experiments.create`.

    If the answer of the transaction is lost, or the table is busy, the transaction is sent again,
    at most ``ATTEMPTS`` times in all. Otherwise the client would get an error, retry, and find the
    name taken by its own first attempt.

    Args:
        item: the experiment's item.
        also: further operations of the transaction.
    """
    absent = ConditionExpression()
    absent.require_absent(ExperimentItem.PK)
    lock = lock_of(experiment.workspace, experiment.name, experiment.experiment_id)
    token = new_ulid()
    end = time.monotonic() + SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        try:
            table.transact([Put(lock, absent), Put(item, absent), *also], token)
        except TransactionFailed as failed:
            _check_own(experiment, failed, also)
        except (errors.TemporarilyUnavailable, errors.RequestLimitExceeded):
            if attempt == ATTEMPTS or time.monotonic() > end:
                raise
            back_off(attempt)
            continue
        return


def put_if_possible(experiment: Experiment, item: Raw) -> bool:
    """Creates an experiment as :func:`put` does, unless its id or name is taken, since another
    process has created it. Returns False if the disk is full, so that it was not stored; otherwise
    True."""
    try:
        put(experiment, item, ())
    except (ExperimentNameTaken, IdTaken):
        return True
    except errors.InsufficientStorage:
        return False
    return True


def _check_own(
    experiment: Experiment, failed: TransactionFailed, also: Sequence[Operation]
) -> None:
    """Returns without an error if the transaction failed because an earlier attempt of the same
    creation was executed; otherwise raises what prevented the creation."""
    lock, item = failed.items.get(0), failed.items.get(1)
    if lock is not None:
        mine = holder_in(lock) == experiment.experiment_id
        if mine and item is not None and is_of(experiment, item):
            return
        raise ExperimentNameTaken(experiment.name) from failed
    if item is not None:
        raise IdTaken(experiment.experiment_id) from failed
    if 2 in failed.items and experiment.workspace != DEFAULT_WORKSPACE:
        raise workspaces.missing(experiment.workspace) from failed
    raise ExperimentOperationFailed(also[min(failed.items) - 2]) from failed


def is_of(experiment: Experiment, item: Raw) -> bool:
    """Whether an experiment's item is that of ``experiment``, not of a later or earlier experiment
    with the same id: compares the creation times."""
    return ExperimentItem.of(item).creation_time == experiment.creation_time


def lock_of(workspace: str, name: str, experiment_id: str) -> Raw:
    key = keys.experiment_name_lock(workspace, name)
    lock = ExperimentNameLock(
        PK=key.pk, SK=key.sk, experiment_id=experiment_id, updated_at=now_ms(), version=1
    )
    return lock.serialize()


def holder_in(lock: Raw) -> str:
    return ExperimentNameLock.of(lock).experiment_id
