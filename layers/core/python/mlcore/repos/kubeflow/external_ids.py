"""Deletes locks of external ids whose entity was deleted. An interrupted deletion of a model or
version leaves the locks of its artifacts, and a permanent deletion of a run or experiment leaves
its own lock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.kubeflow import kinds
from mlcore.kubeflow.kinds import KINDS
from mlcore.repos.kubeflow import (
    artifacts,
    entities,
    experiments,
    models,
    runs,
    transaction_steps,
    versions,
)
from mlcore.repos.kubeflow_keys import context_items

_FINDERS: Final[dict[str, Callable[[int, str], Any]]] = {
    kinds.REGISTERED_MODEL.name: models.find,
    kinds.MODEL_VERSION.name: versions.find,
    kinds.EXPERIMENT.name: experiments.find,
    kinds.EXPERIMENT_RUN.name: runs.find,
    **dict.fromkeys(kinds.ARTIFACT_KINDS, artifacts.find),
}
"""Kind to the function that returns the entity with a number in a workspace, or None. Entities of
all other kinds have an item of their own, which :func:`mlcore.repos.kubeflow.entities.find` reads.
"""


def free_abandoned(kind: str, external_id: str, workspace: str) -> bool:
    """Deletes the lock of an external id if the entity that holds it no longer exists. Returns
    whether the external id was free or is free now.

    Args:
        kind: the name of the kind of the entity.
    """
    number = transaction_steps.find_external(workspace, KINDS[kind], external_id)
    if number is None:
        return True
    find = _FINDERS.get(kind) or partial(entities.find, kind)
    if find(number, workspace) is not None:
        return False
    lock = context_items.deletion_of_external_id(
        keys.external_id(workspace, kind, external_id), number
    )
    with contextlib.suppress(ConditionFailed):  # another request has freed it
        table.delete(lock.key, lock.condition)
    return True
