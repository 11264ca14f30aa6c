"""Expiry of archived registered models and model versions: an item with a time to live for each,
and what the indexer does when DynamoDB has removed it."""

from __future__ import annotations

import contextlib
from typing import Final, NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Operation, table
from mlcore.ids import now_ms
from mlcore.kubeflow.kinds import REGISTERED_MODEL
from mlcore.models.registry import ModelEnd
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.prompts import is_prompt
from mlcore.repos.kubeflow import models, numbers, serving, tags
from mlcore.repos.registry import homes, model_versions, registered_models, stages
from mlcore.repos.registry.model_versions import ARCHIVED, StoredModelVersion
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.repos.users import grants

MODELS: Final = "archived_models"
VERSIONS: Final = "archived_versions"


class ArchivedKey(NamedTuple):
    """Identifies a model (version 0) or a version: the partition of the model's versions, which
    does not change with the model's name, and the version's number in MLflow."""

    home: str
    version: int


def kind(key: ArchivedKey) -> str:
    """Returns the key in the setting ``ttl_policy`` for how long an archived registered model, or
    an archived model version, is kept."""
    return VERSIONS if key.version else MODELS


def _archived(key: ArchivedKey) -> StoredRegisteredModel | StoredModelVersion | None:
    owner = homes.owner_of(key.home)
    item = None if owner is None else homes.model_of(owner)
    model = None if item is None else registered_models.of_item(item)
    if model is None or is_prompt(model.model.tags):
        return None
    if not key.version:
        state = model.model.tags.get(f"{tags.PREFIX}state")
        return model if state == tags.ARCHIVED else None
    try:
        version = model_versions.of_model(model, key.version)
    except errors.ResourceDoesNotExist:
        return None
    return version if version.version.current_stage == ARCHIVED else None


def is_archived(key: ArchivedKey) -> bool:
    """Whether the registered model or model version exists and is archived; up to three
    consistent GetItem, and a Query for tags that an item does not hold."""
    return _archived(key) is not None


def end_at(owner: ArchivedKey, end: int) -> None:
    """Sets when an archived registered model or version expires, unless a later time is set.

    Args:
        end: seconds since the epoch.
    """
    key = keys.model_end(owner.home, owner.version)
    item = ModelEnd(
        PK=key.pk,
        SK=key.sk,
        model_version=owner.version,
        ttl=end,
        updated_at=now_ms(),
        version=1,
    )
    earlier = ConditionExpression()
    earlier.require_absent_or_less(ModelEnd.ttl, end)
    with contextlib.suppress(ConditionFailed):
        table.put(item.serialize(), earlier)


def forget(key: ArchivedKey) -> None:
    """Cancels the expiry of an archived registered model or version that was restored or deleted.
    Idempotent."""
    table.delete(keys.model_end(key.home, key.version))


def expire(key: ArchivedKey) -> bool:
    """Deletes a registered model or a model version as MLflow does, if it is still archived in
    Kubeflow's registry. Returns False, and deletes nothing, if a deployed inference service of
    Kubeflow's registry serves it; otherwise True, also if it was not archived any more."""

    def attempt() -> None:
        archived = _archived(key)
        if isinstance(archived, StoredRegisteredModel):
            model, number = archived.model, archived.item.number
            referred = None
            if number is not None:
                raw = numbers.raw(number)
                reference = numbers.of_kind(raw, REGISTERED_MODEL.name, model.workspace)
                if reference is None:
                    raise WriteConflict  # it was deleted meanwhile
                referred = serving.unserved(reference)
            leaving = grants.leaving_operations(model.workspace, grants.MODEL_TYPES, model.name)
            models.delete(archived, leaving, referred)
        elif archived is not None:
            _expire_version(archived, key)

    try:
        retry_on_conflict("model", attempt)
    except errors.ResourceConflict:
        return False
    return True


def _expire_version(stored: StoredModelVersion, key: ArchivedKey) -> None:
    """Deletes a version. Raises WriteConflict if its model was renamed meanwhile."""
    model, number = stored.model, stored.item.number

    def allowed() -> list[Operation]:
        if model.item.number is None or number is None:
            return []
        return serving.unserved_version(model.item.number, model.model.workspace, number)

    try:
        stages.delete(stored, allowed)
    except errors.ResourceDoesNotExist as error:
        if _archived(key) is not None:
            raise WriteConflict from error
        # else another process deleted it
