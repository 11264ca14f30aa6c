"""Deletes and restores experiments, and thereby their runs."""

from __future__ import annotations

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.ids import now_ms
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos import document


def set_stage(experiment: Experiment, stage: str) -> None:
    """Deletes or restores an experiment and thereby all its runs.

    Raises:
        WriteConflict: another request deleted or restored it since it was read, and it has not the
            wanted stage.
        InvalidState: the experiment to restore is being permanently deleted.
    """
    change = Update()
    document.touch(change)
    change.set(ExperimentItem.stage, stage)
    change.set(ExperimentItem.last_update_time, now_ms())
    if stage == ACTIVE:
        change.remove(ExperimentItem.ttl)
        change.require_absent(ExperimentItem.is_purged)
    elif experiment.lifecycle_stage == ACTIVE:
        change.remove(ExperimentItem.is_purged)  # release 0.1.0 restores marked ones
    change.add(ExperimentItem.epoch, 1)
    change.require_equal(ExperimentItem.epoch, experiment.epoch)
    try:
        table.update(keys.experiment(experiment.experiment_id), change)
    except ConditionFailed as failed:
        # The stage may be set already: this call was repeated, or another request did the same.
        current = None if failed.item is None else ExperimentItem.of(failed.item)
        if current is None or current.stage != stage:
            if current is not None and current.is_purged and stage == ACTIVE:
                raise errors.InvalidState(
                    f"The experiment {experiment.experiment_id} is being permanently deleted."
                ) from failed
            raise WriteConflict(experiment.experiment_id) from failed
