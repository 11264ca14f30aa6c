"""Lets archived registered models and versions expire: keeps a TTL item for each if the setting
``ttl_policy`` has a retention, and deletes the model or version when DynamoDB has removed that
item.

Before each write the model or version is read again, so a stream record that comes twice, late or
after a restoration has the same result. The version's own item has no TTL, because other items
depend on it: its aliases, the greatest version of its stage. The version is deleted by the same
steps as by a request, and kept while a deployed inference service names it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore.db.expression import Raw
from mlcore.db.table import key_of_item
from mlcore.models.base import Item, MetaItem
from mlcore.models.registry import ModelEnd, ModelVersion, RegisteredModel
from mlcore.repos.kubeflow import archive_expiry, tags
from mlcore.repos.kubeflow.archive_expiry import ArchivedKey
from mlcore.repos.registry import registered_models
from mlcore.repos.registry.model_versions import ARCHIVED
from mlcore.repos.settings import ttl_policy

_STATE: Final = f"{tags.PREFIX}state"


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of registered models and versions that were archived or restored, and
    of their TTL items that DynamoDB removed."""
    moved: dict[ArchivedKey, int] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        if new is None:
            if old is not None and Item.of(old).type == ModelEnd.pattern.name:
                _handle_ttl_removal(old)
        elif Item.of(new).type != ModelEnd.pattern.name and _may_have_moved(old, new):
            moved[_archived_key(new)] = _written_at(new)
    for key, since in moved.items():
        _update_end(key, since)


def _archived_key(image: Raw) -> ArchivedKey:
    if Item.of(image).type == RegisteredModel.pattern.name:
        return ArchivedKey(registered_models.home_of(image), 0)
    return ArchivedKey(key_of_item(image).pk, ModelVersion.of(image).model_version)


def _may_have_moved(old: Raw | None, new: Raw) -> bool:
    """Whether a write may have archived or restored a model or version.

    Args:
        old: the item before the write; None if there was none.
        new: the item after it. If some tags are outside the item, they are not visible, so it
            counts as moved.
    """
    before = old is not None and _is_archived(old)
    return MetaItem.of(new).overflow is not None or before != _is_archived(new)


def _is_archived(image: Raw) -> bool:
    """Whether a model's or version's item in a stream record is archived."""
    if Item.of(image).type == ModelVersion.pattern.name:
        return ModelVersion.of(image).current_stage == ARCHIVED
    return (RegisteredModel.of(image).tags or {}).get(_STATE) == tags.ARCHIVED


def _written_at(image: Raw) -> int:
    """Returns when an item in a stream record was written, in seconds since the epoch."""
    if Item.of(image).type == RegisteredModel.pattern.name:
        return RegisteredModel.of(image).last_update_time // 1000
    return ModelVersion.of(image).last_update_time // 1000


def _update_end(key: ArchivedKey, since: int) -> None:
    """Puts the TTL item of an archived model or version, or removes that of a restored one.

    Args:
        since: when it was archived, in seconds since the epoch.
    """
    retention_seconds = ttl_policy.kept_seconds(archive_expiry.kind(key))
    if not archive_expiry.is_archived(key):
        archive_expiry.forget(key)
    elif retention_seconds is not None:
        archive_expiry.end_at(key, since + retention_seconds)


def _handle_ttl_removal(image: Raw) -> None:
    """Handles the stream record of a TTL item's removal: deletes the model or version if it is
    still archived, or puts a new TTL item if a deployed inference service names it. Does nothing if
    a restoration removed the TTL item, or nothing expires any more."""
    end = ModelEnd.of(image)
    if end.ttl is None or end.ttl > time.time():
        return
    key = ArchivedKey(key_of_item(image).pk, end.model_version)
    retention_seconds = ttl_policy.kept_seconds(archive_expiry.kind(key))
    if retention_seconds is not None and not archive_expiry.expire(key):
        archive_expiry.end_at(key, int(time.time()) + retention_seconds)
