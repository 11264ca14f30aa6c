"""Converts stored registered models and model versions to rows of ``registered_models`` and
``model_versions``, without reading anything.

Times are milliseconds since 1970 here, and microseconds in the tables. Maps are sorted by key, so
that equal maps compare equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from mlcore.kubeflow import custom_properties
from mlcore.models.registry import ModelVersion
from mlcore.prompts import is_prompt
from mlcore.repos.document import Document
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.system_tables.run_rows import within


class ModelRow(NamedTuple):
    """A row of ``registered_models``, without the column of the AWS account.

    ``registered_model_id`` identifies the model for life, across renames. ``custom_properties``
    holds the values of Kubeflow's custom properties as JSON.
    """

    registered_model_id: str
    workspace_id: str
    name: str
    is_prompt: bool
    description: str | None
    create_time: int
    last_update_time: int
    update_time: int
    latest_versions: dict[str, int]
    aliases: dict[str, int]
    tags: dict[str, str]
    custom_properties: dict[str, str]
    kubeflow_id: int | None
    external_id: str | None


class VersionRow(NamedTuple):
    """A row of the system table ``model_versions``, without the column of the AWS account and those
    whose values are the same as in the row of the registered model."""

    registered_model_id: str
    version: int
    current_stage: str
    status: str
    status_message: str | None
    user_id: str | None
    description: str | None
    source: str
    storage_location: str | None
    run_id: str | None
    run_link: str | None
    model_id: str | None
    create_time: int
    last_update_time: int
    update_time: int
    tags: dict[str, str]
    custom_properties: dict[str, str]
    kubeflow_id: int | None
    external_id: str | None


def model_row(stored: StoredRegisteredModel) -> ModelRow:
    """Converts a registered model, or a prompt, to its row of the table ``registered_models``."""
    model, item = stored.model, stored.item
    return ModelRow(
        registered_model_id=item.incarnation,
        workspace_id=model.workspace,
        name=model.name,
        is_prompt=is_prompt(model.tags),
        description=model.description or None,
        create_time=within(model.creation_timestamp),
        last_update_time=within(model.last_updated_timestamp),
        update_time=within(item.updated_at or 0),
        latest_versions=dict(sorted(model.latest.items())),
        aliases=dict(sorted(model.aliases.items())),
        tags=dict(sorted(model.tags.items())),
        custom_properties=_custom_properties(model.tags, item.property_types or {}),
        kubeflow_id=item.number,
        external_id=item.external_id,
    )


def version_row(document: Document) -> VersionRow:
    """Converts a version of a registered model to its row of ``model_versions``.

    Args:
        document: the version's item, with its tags.
    """
    item, tags = ModelVersion.of(document.item), document.texts("tags")
    return VersionRow(
        registered_model_id=item.incarnation,
        version=item.model_version,
        current_stage=item.current_stage,
        status=item.status,
        status_message=item.status_message,
        user_id=item.user_id or None,
        description=item.description or None,
        source=item.source,
        storage_location=item.storage_location or None,
        run_id=item.run_id or None,
        run_link=item.run_link or None,
        model_id=item.model_id,
        create_time=within(item.creation_time),
        last_update_time=within(item.last_update_time),
        update_time=within(item.updated_at or 0),
        tags=dict(sorted(tags.items())),
        custom_properties=_custom_properties(tags, item.property_types or {}),
        kubeflow_id=item.number,
        external_id=item.external_id,
    )


def _custom_properties(tags: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    """Returns the custom properties that Kubeflow's API makes of these tags, each value as JSON.

    Args:
        types: the types of properties that are not strings (``property_types``), by key.
    """
    values = custom_properties.of_tags(tags, types)
    return {key: _json_text(value) for key, value in sorted(values.items())}


def _json_text(value: custom_properties.Property) -> str:
    """Returns the value of a property as JSON; the value of a structure is JSON already."""
    if value.type == custom_properties.STRUCT:
        return str(value.value)
    return json.dumps(value.value, ensure_ascii=False)
