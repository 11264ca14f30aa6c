"""The soft-deleted runs and logged models of one experiment: finds, restores and removes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.keys import prefix_range
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE, DELETED
from mlcore.models.logged_models import LoggedModel
from mlcore.models.runs import Run
from mlcore.repos.logged_models import logged_models
from mlcore.repos.removal import permanent_deletion
from mlcore.repos.runs.core import run_writes, runs

EXPERIMENT: Final = "experiment"
RUN: Final = "run"
LOGGED_MODEL: Final = "logged_model"
KINDS: Final = (RUN, LOGGED_MODEL)
"""The kinds of deleted parts of an experiment, in the order in which they are listed."""


class Trashed(NamedTuple):
    """A soft-deleted run or logged model, which can be restored."""

    kind: str
    item_id: str
    name: str
    deleted_time: int | None
    """Milliseconds since the epoch; None if it is not known."""
    position: str = ""
    """Its position in the order of the deleted parts of its kind; a list can continue after it."""


class Named(NamedTuple):
    """Those runs and logged models of an experiment that a request names and that exist."""

    deleted: list[Trashed]
    active: list[Trashed]


def parts(
    experiment: Experiment, after: tuple[str, str] | None = None, batch: int | None = None
) -> Iterator[Trashed]:
    """Yields the deleted runs and logged models of an active experiment, runs first, each kind in
    order of start or creation.

    Args:
        after: kind and position after which to begin; None for the first. A position that no page
            returned (a client made it up) may begin with the first one of the kind.
        batch: how many items a request to DynamoDB reads at most.
    """
    begin = KINDS.index(after[0]) if after else 0
    for kind in KINDS[begin:]:
        position = after[1] if after and after[0] == kind else None
        find = _runs if kind == RUN else _models
        yield from find(experiment, position, batch)


def named(experiment: Experiment, run_ids: Sequence[str], model_ids: Sequence[str]) -> Named:
    """Returns the runs and logged models of an experiment with these ids, without those that do not
    exist in it. One BatchGetItem for each hundred."""
    where = experiment.experiment_id
    items = table.batch_get(
        [
            *(keys.run(where, run_id) for run_id in run_ids),
            *(keys.logged_model(where, model_id) for model_id in model_ids),
        ]
    )
    trash = Named([], [])
    for item in items[: len(run_ids)]:
        if item is not None:
            run = Run.of(item)
            of_stage = trash.deleted if runs.stage(run, experiment) == DELETED else trash.active
            of_stage.append(Trashed(RUN, run.run_id, run.run_name, run.deleted_time))
    for item in items[len(run_ids) :]:
        if item is not None:
            model = LoggedModel.of(item)
            of_stage = trash.deleted if model.stage == DELETED else trash.active
            of_stage.append(_of_model(model, ""))
    return trash


def restore(entries: Sequence[Trashed], workspace: str) -> None:
    """Restores soft-deleted runs and logged models, in parallel. Raises ResourceDoesNotExist for an
    entity that was removed for good meanwhile."""
    table.parallel([partial(_restore, entry, workspace) for entry in entries])


def remove(entry: Trashed, experiment: Experiment) -> bool:
    """Removes a deleted run or logged model with its files. Returns False if files are kept because
    other items may name them. May be killed and repeated. Raises NoLongerDeleted if it was restored
    since ``entry`` was read."""
    remove_kind = permanent_deletion.run if entry.kind == RUN else permanent_deletion.logged_model
    return remove_kind(experiment.experiment_id, entry.item_id, experiment.workspace)


def _restore(entry: Trashed, workspace: str) -> None:
    if entry.kind == RUN:
        run_writes.set_stage(runs.load(entry.item_id, workspace), ACTIVE)
    else:
        logged_models.restore(logged_models.load(entry.item_id, workspace))


# The queries of LSI1 read whole items: the index holds keys only, so DynamoDB reads the item whole
# from the table for any other attribute, and bills it.


def _runs(experiment: Experiment, position: str | None, batch: int | None) -> Iterator[Trashed]:
    pk = keys.experiment(experiment.experiment_id).pk
    bounds = _from(position, keys.lsi1_run_prefix(DELETED))
    for item in table.query_all(pk, index="LSI1", between=bounds, limit=batch):
        run = Run.of(item)
        # A run that was deleted before its experiment was restored is active again.
        if run.lsi1sk != position and runs.stage(run, experiment) == DELETED:
            yield Trashed(RUN, run.run_id, run.run_name, run.deleted_time, run.lsi1sk or "")


def _models(experiment: Experiment, position: str | None, batch: int | None) -> Iterator[Trashed]:
    pk = keys.experiment(experiment.experiment_id).pk
    bounds = _from(position, keys.lsi1_logged_model_prefix(DELETED))
    for item in table.query_all(pk, index="LSI1", between=bounds, limit=batch):
        model = LoggedModel.of(item)
        if model.lsi1sk != position:
            yield _of_model(model, model.lsi1sk or "")


def _from(position: str | None, prefix: str) -> tuple[str, str]:
    """Returns the bounds of the keys with a prefix from a position on. A client may have made the
    position up, and must not leave the range."""
    first, last = prefix_range(prefix)
    return (position if position and first <= position <= last else first), last


def _of_model(model: LoggedModel, position: str) -> Trashed:
    return Trashed(LOGGED_MODEL, model.model_id, model.name, model.last_update_time, position)
