"""Lists the versions of all registered models for Kubeflow. It finds them through global secondary
indexes, which may lag."""

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
from mlcore.repos.kubeflow import models, numbers
from mlcore.repos.kubeflow.listing import ListEntry
from mlcore.repos.kubeflow.versions import VersionOfModel, numbered, of_model, record
from mlcore.repos.kubeflow_keys import list_keys
from mlcore.repos.registry import homes, registered_models


def of_entries(places: Sequence[ListEntry], workspace: str) -> list[VersionOfModel]:
    """Returns the model versions that these index entries name, in the order of the entries.
    Deleted versions are left out. Two BatchGetItem per fifty: the versions with their references
    (the items that map Kubeflow's numbers to MLflow's items), then the references of their
    models."""
    items = table.batch_get(
        [position.key for position in places]
        + [keys.context_ref(position.number) for position in places]
    )
    references = [numbers.of_kind(raw, KIND.name, workspace) for raw in items[len(places) :]]
    parents = list(
        dict.fromkeys(reference.parent or 0 for reference in references if reference is not None)
    )
    owners = dict(zip(parents, numbers.get_many(parents), strict=True))
    records = []
    for position, item, reference in zip(places, items, references, strict=False):
        owner = None if reference is None else owners[reference.parent or 0]
        read = None if owner is None else record(item, owner)
        if read is not None and read.number == position.number:
            records.append(read)
    return records


def number_and_read(version_keys: Sequence[Key], workspace: str) -> list[VersionOfModel]:
    """Assigns Kubeflow numbers to those of the versions, and of their models, that have none.
    Returns the versions that still exist.

    Args:
        version_keys: the keys of the versions' items.
    """
    return numbered(_read(version_keys, workspace))


def _read(places: Sequence[Key], workspace: str) -> list[VersionOfModel]:
    partitions = list(dict.fromkeys(key.pk for key in places))
    items = table.batch_get([*places, *map(keys.model_home, partitions)])
    owners = {
        owner.PK: owner
        for owner in (ModelHome.of(item) for item in items[len(places) :] if item is not None)
    }
    references, prompts = _models_of(owners, workspace)
    records = []
    for key, item in zip(places, items, strict=False):
        if key.pk in prompts:
            list_keys.hide_prompt(key)
        reference = references.get(key.pk)
        read = None if reference is None else record(item, reference)
        if read is not None:
            records.append(read)
    return records


def _models_of(
    owners: dict[str, ModelHome], workspace: str
) -> tuple[dict[str, ContextRef], set[str]]:
    """Returns the references of models by the partition of their versions, and the partitions that
    belong to prompts.

    Args:
        owners: the items that say which model owns a partition, by partition.
    """
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
    references = numbers.get_many([read.item.number or 0 for read in known])
    model_of = {
        read.home: reference
        for read, reference in zip(known, references, strict=True)
        if reference is not None and reference.kind == REGISTERED_MODEL.name
    }
    return model_of, prompts


def newest(model: ContextRef) -> VersionOfModel | None:
    """Returns the version of a model that was created last; None if it has none.

    Args:
        model: the model's reference (the item that maps its Kubeflow number to MLflow's item).
    """
    records = of_model(model)
    return max(records, key=lambda read: (read.item.creation_time, read.number), default=None)
