"""Versions of all models, which only global indexes know together: they may lag."""

from __future__ import annotations

from collections.abc import Sequence

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.kubeflow.kinds import MODEL_VERSION as KIND
from mlcore.kubeflow.kinds import REGISTERED_MODEL
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import ModelHome
from mlcore.prompts import is_prompt
from mlcore.repos.kubeflow import listing, models, numbers
from mlcore.repos.kubeflow.listing import Place
from mlcore.repos.kubeflow.versions import Record, numbered, of_model, record
from mlcore.repos.registry import homes, registered_models


def at_places(places: Sequence[Place], workspace: str) -> list[Record]:
    """The versions at places that an index names, in order: the versions with their references,
    then the references of their models; two BatchGetItem for each fifty."""
    items = table.batch_get(
        [place.key for place in places] + [keys.context_ref(place.number) for place in places]
    )
    references = [numbers.of_kind(raw, KIND.name, workspace) for raw in items[len(places) :]]
    parents = list(dict.fromkeys(one.parent or 0 for one in references if one is not None))
    owners = dict(zip(parents, numbers.get_many(parents), strict=True))
    found = []
    for place, item, reference in zip(places, items, references, strict=False):
        owner = None if reference is None else owners[reference.parent or 0]
        read = None if owner is None else record(item, owner)
        if read is not None and read.number == place.number:
            found.append(read)
    return found


def see(places: Sequence[Key], workspace: str) -> list[Record]:
    """Versions that no list has shown yet, each with a number now, and its model too; without those
    that are gone."""
    return numbered(_read(places, workspace))


def _read(places: Sequence[Key], workspace: str) -> list[Record]:
    partitions = list(dict.fromkeys(place.pk for place in places))
    items = table.batch_get([*places, *map(keys.model_home, partitions)])
    owners = {
        owner.PK: owner
        for owner in (ModelHome.of(item) for item in items[len(places) :] if item is not None)
    }
    references, prompts = _models_of(owners, workspace)
    found = []
    for place, item in zip(places, items, strict=False):
        if place.pk in prompts:
            listing.hide(place)
        reference = references.get(place.pk)
        read = None if reference is None else record(item, reference)
        if read is not None:
            found.append(read)
    return found


def _models_of(
    owners: dict[str, ModelHome], workspace: str
) -> tuple[dict[str, ContextRef], set[str]]:
    """The references of models by their partitions, and which partitions are those of prompts."""
    items = dict(
        zip(
            owners,
            table.batch_get([keys.model_at(owner.model_pk) for owner in owners.values()]),
            strict=True,
        )
    )
    reads, prompts = [], set()
    for home, owner in owners.items():
        raw: Raw | None = items[home]
        read = None if raw is None else registered_models.of_item(raw)
        if read is None or read.incarnation != owner.incarnation:
            raw = homes.model_of(owner)  # it was renamed since
            read = None if raw is None else registered_models.of_item(raw)
        if read is not None and is_prompt(read.model.tags):
            prompts.add(home)
        elif read is not None and read.model.workspace == workspace:
            reads.append(read)
    known = models.numbered(reads)
    told = numbers.get_many([read.item.number or 0 for read in known])
    found = {
        read.home: reference
        for read, reference in zip(known, told, strict=True)
        if reference is not None and reference.kind == REGISTERED_MODEL.name
    }
    return found, prompts


def newest(model: ContextRef) -> Record | None:
    """The version that was made last."""
    found = of_model(model)
    return max(found, key=lambda read: (read.item.creation_time, read.number), default=None)
