"""MLflow's JSON of registered models and their versions. Empty lists are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcore.entities.registry import ModelVersion, RegisteredModel


def registered_model(entity: RegisteredModel, latest: Sequence[ModelVersion]) -> dict[str, Any]:
    """Returns the JSON of ``mlflow.RegisteredModel``, with the latest version of each stage."""
    fields: dict[str, Any] = {
        "name": entity.name,
        "creation_timestamp": entity.creation_timestamp,
        "last_updated_timestamp": entity.last_updated_timestamp,
    }
    if entity.description:
        fields["description"] = entity.description
    if latest:
        fields["latest_versions"] = [model_version(version) for version in latest]
    if entity.tags:
        fields["tags"] = _tags(entity.tags)
    if entity.aliases:
        fields["aliases"] = [
            {"alias": alias, "version": str(version)}
            for alias, version in sorted(entity.aliases.items())
        ]
    return fields


def model_version(entity: ModelVersion, aliases: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the JSON of ``mlflow.ModelVersion``. As on MLflow's server, aliases are given only
    when a single version is requested, and the model id is never included; clients read it from the
    source."""
    fields: dict[str, Any] = {
        "name": entity.name,
        "version": str(entity.version),
        "creation_timestamp": entity.creation_timestamp,
        "last_updated_timestamp": entity.last_updated_timestamp,
        "user_id": entity.user_id,
        "current_stage": entity.current_stage,
        "description": entity.description,
        "source": entity.source,
        "run_id": entity.run_id,
        "status": entity.status,
        "status_message": entity.status_message,
        "tags": _tags(entity.tags),
        "run_link": entity.run_link,
        "aliases": list(aliases),
    }
    return {name: value for name, value in fields.items() if value is not None and value != []}


def _tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in sorted(tags.items())]
