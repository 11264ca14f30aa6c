"""Archived models and versions, wherever they were archived: when they expire, and their end."""

from __future__ import annotations

import contextlib
from typing import Final, NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Condition
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Operation, table
from mlcore.ids import now_ms
from mlcore.kubeflow.kinds import REGISTERED_MODEL
from mlcore.models.registry import ModelEnd
from mlcore.prompts import is_prompt
from mlcore.repos.kubeflow import models, numbers, serving, tags
from mlcore.repos.registry import homes, model_versions, registered_models, stages
from mlcore.repos.registry.model_versions import ARCHIVED, StoredModelVersion
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.repos.users import grants
from mlcore.settle import Conflict, settle

MODELS: Final = "archived_models"
VERSIONS: Final = "archived_versions"


class Place(NamedTuple):
    """Where a model (version 0) or a version is, whatever the model is called."""

    home: str
    version: int


def kind(place: Place) -> str:
    """What ``ttl_policy`` calls it."""
    return VERSIONS if place.version else MODELS


def _archived(place: Place) -> StoredRegisteredModel | StoredModelVersion | None:
    owner = homes.owner_of(place.home)
    item = None if owner is None else homes.model_of(owner)
    model = None if item is None else registered_models.of_item(item)
    if model is None or is_prompt(model.model.tags):
        return None
    if not place.version:
        state = model.model.tags.get(f"{tags.PREFIX}state")
        return model if state == tags.ARCHIVED else None
    try:
        version = model_versions.of_model(model, place.version)
    except errors.ResourceDoesNotExist:
        return None
    return version if version.version.current_stage == ARCHIVED else None


def is_archived(place: Place) -> bool:
    """Whether it is there, and archived; up to three consistent GetItem."""
    return _archived(place) is not None


def end_at(place: Place, end: int) -> None:
    """Lets it expire then, in seconds since the epoch; a later end than that stays."""
    key = keys.model_end(place.home, place.version)
    item = ModelEnd(
        PK=key.pk,
        SK=key.sk,
        model_version=place.version,
        ttl=end,
        updated_at=now_ms(),
        version=1,
    )
    earlier = Condition()
    earlier.require_absent_or_less(ModelEnd.ttl, end)
    with contextlib.suppress(ConditionFailed):
        table.put(item.serialize(), earlier)


def forget(place: Place) -> None:
    """It does not expire."""
    table.delete(keys.model_end(place.home, place.version))


def expire(place: Place) -> bool:
    """Deletes it as MLflow does, if it is archived still; False if a deployed service names it."""

    def attempt() -> None:
        found = _archived(place)
        if isinstance(found, StoredRegisteredModel):
            model, number = found.model, found.item.number
            referred = None
            if number is not None:
                raw = numbers.raw(number)
                reference = numbers.of_kind(raw, REGISTERED_MODEL.name, model.workspace)
                if reference is None:
                    raise Conflict  # it was deleted meanwhile
                referred = serving.unserved(reference)
            moving = grants.moving_of_model(model.workspace, model.name, None)
            models.delete(found, moving, referred)
        elif found is not None:
            _expire_version(found, place)

    try:
        settle("model", attempt)
    except errors.ResourceConflict:
        return False
    return True


def _expire_version(found: StoredModelVersion, place: Place) -> None:
    """Raises Conflict: its model was renamed meanwhile."""
    model, number = found.model, found.item.number

    def allowed() -> list[Operation]:
        if model.item.number is None or number is None:
            return []
        return serving.unserved_version(model.item.number, model.model.workspace, number)

    try:
        stages.delete(found, allowed)
    except errors.ResourceDoesNotExist as error:
        if _archived(place) is not None:
            raise Conflict from error
        # else somebody else deleted it
