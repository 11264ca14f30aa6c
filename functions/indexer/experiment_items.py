"""Keeps the ``E#TAG``, ``E#NAME_REV`` and FTS items of experiments equal to ``E#META``; of an
experiment itself, full text is the name alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indexer import child_items, text_items, writes
from indexer.child_items import Entity, Posting
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.experiments import Experiment, ExperimentNameRev
from mlcore.repos.experiments import experiments
from mlcore.search import text_fields


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """One BatchGetItem for the experiments of the records, then the writes for all of them."""
    changed: dict[str, child_items.Changes] = {}
    renamed: set[str] = set()
    names: dict[str, list[tuple[str, str, str]]] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        experiment_id = Experiment.of(new or old or {}).experiment_id
        differing = child_items.changes(old, new, experiments.MAPS)
        changed.setdefault(experiment_id, set()).update(differing)
        if old is None or new is None or Experiment.of(old).name != Experiment.of(new).name:
            renamed.add(experiment_id)
            before, after = text_items.name_of_experiment(old), text_items.name_of_experiment(new)
            names.setdefault(experiment_id, []).extend(text_items.changed(before, after))
    wanted = [one for one, differing in changed.items() if differing or one in renamed]
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in wanted])
    made = []
    for experiment_id, item in zip(wanted, items, strict=True):
        owner = (experiment_id,)
        made.append(child_items.children(item, owner, experiments.MAPS, changed[experiment_id]))
        if experiment_id in renamed:
            made.append(name_reversed(experiment_id, item))
            made.append(_named(experiment_id, item, names[experiment_id]))
    writes.apply(made)


def name_postings(experiment: Raw | None) -> set[Posting]:
    """What the index holds of an experiment itself: its name alone."""
    return text_items.name_postings(text_items.name_of_experiment(experiment))


def _named(
    experiment_id: str, item: Raw | None, changes: Sequence[tuple[str, str, str]]
) -> child_items.Writes:
    entity = Entity(experiment_id, text_items.EXPERIMENT, experiment_id)
    version = None if item is None else Experiment.of(item).version
    texts = [{text_fields.NAME: one} for _, *both in changes for one in both]
    touched = set().union(*map(text_items.name_postings, texts))
    return text_items.writes(entity, touched, name_postings(item), version)


def name_reversed(experiment_id: str, item: Raw | None) -> child_items.Writes:
    """The ``E#NAME_REV`` item of an experiment as it is now."""
    place = keys.experiment_name_rev(experiment_id)
    if item is None:
        return child_items.Writes([], [], [], [place])
    experiment = Experiment.of(item)
    model = ExperimentNameRev(
        PK=place.pk,
        SK=place.sk,
        name=experiment.name,
        name_rev=experiment.name[::-1],
        version=experiment.version,
    )
    return child_items.Writes([model.serialize()], [], [])
