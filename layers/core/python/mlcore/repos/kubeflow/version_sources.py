"""Keeps MLflow's ``source`` of a model version equal to the URI of the version's first model
artifact in Kubeflow's registry."""

from __future__ import annotations

from mlcore.db.expression import Update
from mlcore.db.table import ItemUpdate
from mlcore.models.registry import ModelVersion as ModelVersionItem
from mlcore.repos import document
from mlcore.repos.files import location_list
from mlcore.repos.kubeflow.transaction_steps import TransactionStep
from mlcore.repos.kubeflow.versions import VersionOfModel


def source_change(
    read: VersionOfModel, uri: str | None, artifact: int | None, *, first: bool
) -> list[TransactionStep]:
    """Returns the transaction steps that set MLflow's ``source`` of a model version to the URI of
    its first model artifact.

    Args:
        read: the version.
        uri: the URI; None for none.
        artifact: the number of that artifact from now on; None if the version has none.
        first: whether the version had no model artifact before.
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
    steps = [TransactionStep(ItemUpdate(read.document.key, update))]
    if uri:
        steps += [
            TransactionStep(put)
            for put in location_list.of_version(
                read.model.home or "",
                item.incarnation,
                item.model_version,
                uri,
                read.model.workspace,
            )
        ]
    return steps
