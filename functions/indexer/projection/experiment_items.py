"""Keeps the ``E#TAG``, ``E#NAME_REV`` and FTS items of experiments equal to ``E#META``. The only
text of an experiment that is indexed is its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indexer.full_text import text_items
from indexer.projection import child_items, item_writes
from indexer.projection.child_items import Posting, SourceEntity
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.experiments import Experiment, ExperimentNameRev
from mlcore.repos.experiments import experiments
from mlcore.search import text_fields


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of experiments: reads the experiments, with one BatchGetItem per
    hundred, and writes the items that are derived from their names and maps (such as tags)."""
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
    wanted = [
        experiment_id
        for experiment_id, differing in changed.items()
        if differing or experiment_id in renamed
    ]
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in wanted])
    made = []
    for experiment_id, item in zip(wanted, items, strict=True):
        owner = (experiment_id,)
        made.append(child_items.children(item, owner, experiments.MAPS, changed[experiment_id]))
        if experiment_id in renamed:
            made.append(name_reversed(experiment_id, item))
            made.append(_derive_name_items(experiment_id, item, names[experiment_id]))
    item_writes.apply(made)


def name_postings(experiment: Raw | None) -> set[Posting]:
    """Returns the full-text postings of an experiment's name; none if the experiment does not
    exist."""
    return text_items.name_postings(text_items.name_of_experiment(experiment))


def _derive_name_items(
    experiment_id: str, item: Raw | None, changes: Sequence[tuple[str, str, str]]
) -> child_items.Writes:
    entity = SourceEntity(experiment_id, text_items.EXPERIMENT, experiment_id)
    version = None if item is None else Experiment.of(item).version
    texts = [{text_fields.NAME: name} for _, *both in changes for name in both]
    touched = set().union(*map(text_items.name_postings, texts))
    return text_items.writes(entity, touched, name_postings(item), version)


def name_reversed(experiment_id: str, item: Raw | None) -> child_items.Writes:
    """Returns the writes that put an experiment's item ``E#NAME_REV`` (its name reversed, to search
    by suffix), or remove it if the experiment does not exist (``item`` None)."""
    key = keys.experiment_name_rev(experiment_id)
    if item is None:
        return child_items.Writes([], [], [], [key])
    experiment = Experiment.of(item)
    model = ExperimentNameRev(
        PK=key.pk,
        SK=key.sk,
        name=experiment.name,
        name_rev=experiment.name[::-1],
        version=experiment.version,
    )
    return child_items.Writes([model.serialize()], [], [])
