"""Versions of all models, which only global indexes know together: they may lag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlcore.db.table import table
from mlcore.kubeflow.kinds import MODEL_VERSION as KIND
from mlcore.kubeflow.kinds import REGISTERED_MODEL
from mlcore.models.kubeflow import ContextRef
from mlcore.repos.kubeflow import entities, models, numbers
from mlcore.repos.kubeflow.versions import Record, of_model, record
from mlcore.repos.registry.registered_models import StoredRegisteredModel as ModelRecord


def listed(workspace: str, above: int = 0) -> Iterator[Record]:
    """All versions by number; indexes may lag."""

    def unseen() -> Iterator[Record]:
        found = map(_model_reference, models.discovered(workspace))
        return entities.side_by_side(of_model, found)

    return entities.by_number(workspace, KIND, above, at_numbers, unseen)


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
    references = numbers.find_many(wanted, KIND.name, workspace)
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
