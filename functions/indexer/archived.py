"""Lets archived models and versions expire: keeps the item that tells when, and deletes what it was
about when it is gone.

What is written follows from the model or version, read again: a record that comes twice, late or
after the restoration leads to the same. The item expires and not the version itself, because what
goes with a version is more than its items: its aliases, the greatest version of its stage. It is
deleted as its owner would delete it, and kept while a deployed service names it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore.db.expression import Raw
from mlcore.db.table import key_in
from mlcore.models.base import Item, MetaItem
from mlcore.models.registry import ModelEnd, ModelVersion, RegisteredModel
from mlcore.repos.kubeflow import archive, tags
from mlcore.repos.kubeflow.archive import Place
from mlcore.repos.registry import registered_models
from mlcore.repos.registry.model_versions import ARCHIVED
from mlcore.repos.settings import ttl_policy

_STATE: Final = f"{tags.PREFIX}state"


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Of models and versions those that were archived or restored; of ends those that came."""
    moved: dict[Place, int] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        if new is None:
            if old is not None and Item.of(old).type == ModelEnd.pattern.name:
                _end(old)
        elif Item.of(new).type != ModelEnd.pattern.name and _moved(old, new):
            moved[_place(new)] = _written_at(new)
    for place, since in moved.items():
        _follow(place, since)


def _place(image: Raw) -> Place:
    if Item.of(image).type == RegisteredModel.pattern.name:
        return Place(registered_models.home_of(image), 0)
    return Place(key_in(image).pk, ModelVersion.of(image).model_version)


def _moved(old: Raw | None, new: Raw) -> bool:
    """Whether a write may have archived or restored something. The tags of a model that has no room
    for them all are not in its image."""
    before = old is not None and _state(old)
    return MetaItem.of(new).overflow is not None or before != _state(new)


def _state(image: Raw) -> bool:
    if Item.of(image).type == ModelVersion.pattern.name:
        return ModelVersion.of(image).current_stage == ARCHIVED
    return (RegisteredModel.of(image).tags or {}).get(_STATE) == tags.ARCHIVED


def _written_at(image: Raw) -> int:
    """In seconds since the epoch."""
    if Item.of(image).type == RegisteredModel.pattern.name:
        return RegisteredModel.of(image).last_update_time // 1000
    return ModelVersion.of(image).last_update_time // 1000


def _follow(place: Place, since: int) -> None:
    """
    Args:
        since: when it was written so, in seconds since the epoch.
    """
    kept = ttl_policy.kept(archive.kind(place))
    if not archive.is_archived(place):
        archive.forget(place)
    elif kept is not None:
        archive.end_at(place, since + kept)


def _end(image: Raw) -> None:
    """An end is gone: because its time has come, or because it was taken back."""
    end = ModelEnd.of(image)
    if end.ttl is None or end.ttl > time.time():
        return
    place = Place(key_in(image).pk, end.model_version)
    kept = ttl_policy.kept(archive.kind(place))
    if kept is not None and not archive.expire(place):
        archive.end_at(place, int(time.time()) + kept)
