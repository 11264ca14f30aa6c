"""Reads experiments from the DynamoDB table, strongly consistently, and converts them to rows of
the system tables; lists the experiments of all workspaces for the backfill and the verification.
Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.table import BATCH_GET_KEYS, table
from mlcore.entities.experiments import Experiment
from mlcore.models.base import Item
from mlcore.repos.experiments import experiments
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables.run_rows import ExperimentRow, experiment_row


class Stored(NamedTuple):
    experiment: Experiment
    row: ExperimentRow


def find_experiments(experiment_ids: Sequence[str]) -> dict[str, Stored]:
    """Returns by id those of the experiments that exist, each with its row of the system table
    ``experiments``. Sends one BatchGetItem per hundred ids."""
    experiments_by_id: dict[str, Stored] = {}
    for at in range(0, len(experiment_ids), BATCH_GET_KEYS):
        wanted = experiment_ids[at : at + BATCH_GET_KEYS]
        for item in table.batch_get([keys.experiment(experiment_id) for experiment_id in wanted]):
            if item is not None:
                experiment = experiments.of_item(item).experiment
                row = experiment_row(experiment, Item.of(item).updated_at or 0)
                experiments_by_id[experiment.experiment_id] = Stored(experiment, row)
    return experiments_by_id


def experiment_ids() -> Iterator[str]:
    """Yields the ids of all workspaces' experiments; the list may lag by seconds."""
    for name in workspaces.names():
        yield from experiments.ids_of_workspace(name)
