"""Versions of all models, which only global indexes know together: they may lag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from mlcore.db.table import table
from mlcore.kubeflow.kinds import MODEL_VERSION as KIND
from mlcore.kubeflow.kinds import REGISTERED_MODEL
from mlcore.models.kubeflow import ContextRef
from mlcore.repos.kubeflow import entities, models, numbers
from mlcore.repos.kubeflow.versions import Record, of_model, record
from mlcore.repos.registry.registered_models import StoredRegisteredModel as ModelRecord


def listed(workspace: str, above: int = 0) -> Iterator[Record]:
    """All versions by number, which GSI2 has; then those that Kubeflow sees for the first time.
    Indexes may lag."""
    seen = set()
    found = entities.numbers_of(workspace, KIND.name, above=above)
    while chunk := list(islice(found, entities.LISTED_TOGETHER)):
        for read in at_numbers(chunk, workspace):
            seen.add(read.number)
            yield read
    late = [
        read
        for model in models.discovered(workspace)
        for read in of_model(_model_reference(model))
        if read.number > above and read.number not in seen
    ]
    yield from sorted(late, key=lambda read: read.number)


def _model_reference(model: ModelRecord) -> ContextRef:
    put = numbers.reference(
        model.item.number or 0,
        REGISTERED_MODEL.name,
        model.model.workspace,
        model.document.key,
        incarnation=model.incarnation,
        home=model.home,
        name=model.model.name,
    )
    return ContextRef.of(put.item)


def at_numbers(wanted: Sequence[int], workspace: str) -> list[Record]:
    """Those that there are, in order; three BatchGetItem for each hundred."""
    references = [
        found
        for found in numbers.get_many(wanted)
        if found is not None and found.kind == KIND.name and found.workspace == workspace
    ]
    parents = list(dict.fromkeys(found.parent or 0 for found in references))
    owners = dict(zip(parents, numbers.get_many(parents), strict=True))
    items = table.batch_get([numbers.place_of(found) for found in references])
    records = []
    for found, item in zip(references, items, strict=True):
        owner = owners[found.parent or 0]
        read = None if owner is None else record(item, owner)
        if read is not None:
            records.append(read)
    return records


def newest(model: ContextRef) -> Record | None:
    """The version that was made last."""
    found = of_model(model)
    return max(found, key=lambda read: (read.item.creation_time, read.number), default=None)
