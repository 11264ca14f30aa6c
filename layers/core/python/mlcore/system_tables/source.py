"""Reads experiments, runs and points from the table, strongly consistently, as rows; writes
nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.entities.stages import ACTIVE, DELETED
from mlcore.models.base import Item
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import history, runs
from mlcore.repos.runs.pages import newest_first
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables.rows import (
    ExperimentRow,
    PointRow,
    RunRow,
    experiment_row,
    point_row,
    run_row,
)

TOGETHER: Final = 100


class Stored(NamedTuple):
    experiment: Experiment
    row: ExperimentRow


def find_experiments(experiment_ids: Sequence[str]) -> dict[str, Stored]:
    """Those that exist; one BatchGetItem for each hundred."""
    found: dict[str, Stored] = {}
    for at in range(0, len(experiment_ids), TOGETHER):
        wanted = experiment_ids[at : at + TOGETHER]
        for item in table.batch_get([keys.experiment(one) for one in wanted]):
            if item is not None:
                experiment = experiments.of_item(item).experiment
                row = experiment_row(experiment, Item.of(item).updated_at or 0)
                found[experiment.experiment_id] = Stored(experiment, row)
    return found


def find_runs(places: Sequence[tuple[str, str]], known: dict[str, Stored]) -> Iterator[RunRow]:
    """The runs that exist, of experiments that do; one BatchGetItem for each hundred.

    Args:
        places: (experiment id, run id).
        known: the experiments.
    """
    wanted = [(one, run) for one, run in places if one in known]
    for at in range(0, len(wanted), TOGETHER):
        part = wanted[at : at + TOGETHER]
        for (one, _), item in zip(
            part, table.batch_get([keys.run(*place) for place in part]), strict=True
        ):
            if item is not None:
                yield run_row(runs.of_item(item, known[one].experiment))


def run_ids(experiment: Experiment) -> Iterator[str]:
    """Every run of an experiment, page by page."""
    for stored in newest_first([experiment.experiment_id], experiment.workspace, (ACTIVE, DELETED)):
        yield stored.run_id


def points_of(experiment_id: str, run_id: str) -> Iterator[PointRow]:
    """Every point of a run's history, some of them twice, page by page. They count as inserted when
    the items that have them now were written."""
    for point, inserted_ms in history.with_times(experiment_id, run_id):
        yield point_row(experiment_id, run_id, point, inserted_ms)


def experiment_ids() -> Iterator[str]:
    """Every experiment; the list may lag behind by seconds."""
    for name in workspaces.names():
        yield from experiments.ids_of_workspace(name)


def distinct(points: Iterable[PointRow]) -> list[PointRow]:
    """Each point once, as it was inserted first."""
    found: dict[str, PointRow] = {}
    for point in points:
        known = found.get(point.record_id)
        if known is None or point.insert_time < known.insert_time:
            found[point.record_id] = point
    return list(found.values())
