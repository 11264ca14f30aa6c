"""How MLflow's source of a version follows its first model artifact."""

from __future__ import annotations

from mlcore.db.expression import Update
from mlcore.db.table import Change
from mlcore.models.registry import ModelVersion as ModelVersionItem
from mlcore.repos import document
from mlcore.repos.files import locations
from mlcore.repos.kubeflow.steps import Step
from mlcore.repos.kubeflow.versions import Record


def source_change(
    read: Record, uri: str | None, artifact: int | None, *, first: bool
) -> list[Step]:
    """What lets MLflow's ``source`` follow the uri of the version's first model artifact.

    Args:
        artifact: the number of that artifact from then on.
        first: the version has had none.
    """
    item = read.item
    update = Update()
    document.touch(update)
    update.set(ModelVersionItem.source, uri or "")
    update.set(ModelVersionItem.storage_location, uri or "")
    update.set_or_remove(ModelVersionItem.source_artifact, artifact)
    if first:
        update.require_absent(ModelVersionItem.source_artifact)
    update.require_exists(ModelVersionItem.lsi3sk)
    found = [Step(Change(read.document.key, update))]
    if uri:
        found += [
            Step(put)
            for put in locations.of_version(
                read.model.home or "",
                item.incarnation,
                item.model_version,
                uri,
                read.model.workspace,
            )
        ]
    return found
