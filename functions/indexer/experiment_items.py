"""Keeps the ``E#TAG`` and ``E#NAME_REV`` items of experiments equal to ``E#META``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indexer import projections, writes
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.experiments import ExperimentNameRev
from mlcore.repos import experiments


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """One BatchGetItem for the experiments of the records, then the writes for all of them."""
    changed: dict[str, projections.Changes] = {}
    renamed: set[str] = set()
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        experiment_id = (new or old or {})["experiment_id"]["S"]
        differing = projections.changes(old, new, experiments.MAPS)
        changed.setdefault(experiment_id, set()).update(differing)
        if old is None or new is None or old["name"] != new["name"]:
            renamed.add(experiment_id)
    wanted = [one for one, differing in changed.items() if differing or one in renamed]
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in wanted])
    made = []
    for experiment_id, item in zip(wanted, items, strict=True):
        owner = (experiment_id,)
        made.append(projections.children(item, owner, experiments.MAPS, changed[experiment_id]))
        if experiment_id in renamed:
            made.append(name_reversed(experiment_id, item))
    writes.apply(made)


def name_reversed(experiment_id: str, item: Raw | None) -> projections.Writes:
    """The ``E#NAME_REV`` item of an experiment as it is now."""
    place = keys.experiment_name_rev(experiment_id)
    if item is None:
        return projections.Writes([], [], [], [place])
    name: str = item["name"]["S"]
    model = ExperimentNameRev(
        PK=place.pk,
        SK=place.sk,
        name=name,
        name_rev=name[::-1],
        version=int(item["version"]["N"]),
    )
    return projections.Writes([dict(model.serialize())], [], [])
