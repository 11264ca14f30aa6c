"""Creates, reads, updates and deletes model versions, moves them between stages, sets their tags,
and finds them by alias or stage."""

from __future__ import annotations

from typing import Any

from mlcore import errors, ids
from mlcore.entities.registry import ModelVersion
from mlcore.http import Request
from mlcore.limits import registry as limits
from mlcore.limits.shared_checks import check_key
from mlcore.repos.registry import latest_versions, model_versions, registered_models
from mlcore.repos.registry import stages as model_stages
from mlcore.repos.registry.model_versions import NO_STAGE, READY, StoredModelVersion
from mlcore.responses import registry as responses
from registry import messages as m
from registry import sources


def create_model_version(message: m.CreateModelVersion, request: Request) -> dict[str, Any]:
    """Creates a model version in one transaction, which also takes the model's next number."""
    origin = sources.of_request(message, request)
    limits.check_name(message.name)
    tags = limits.check_version_tags(message.tags)
    now = ids.now_ms()
    draft = ModelVersion(
        name=message.name,
        version=0,
        creation_timestamp=now,
        last_updated_timestamp=now,
        description=message.description,
        user_id=None,
        current_stage=NO_STAGE,
        source=origin.source.uri,
        storage_location=origin.storage_location,
        run_id=origin.run_id,
        run_link=message.run_link,
        status=READY,
        status_message=None,
        tags=tags,
        model_id=origin.model_id or None,
    )
    created = model_versions.create(registered_models.get(request.workspace, message.name), draft)
    sources.link(origin, created)
    return {"model_version": responses.model_version(created)}


def get_model_version(message: m.GetModelVersion, request: Request) -> dict[str, Any]:
    return _answer(_get(message.name, message.version, request))


def update_model_version(message: m.UpdateModelVersion, request: Request) -> dict[str, Any]:
    """Sets the description of a model version. A request without one clears it."""
    stored = _get(message.name, message.version, request)
    description = message.description if message.has("description") else None
    return _answer(stored, model_versions.set_description(stored, description))


def delete_model_version(message: m.DeleteModelVersion, request: Request) -> dict[str, Any]:
    """Deletes a model version. Its number is never used again."""
    limits.version_number(message.version)
    model_stages.delete(_get(message.name, message.version, request))
    return {}


def transition_stage(message: m.TransitionModelVersionStage, request: Request) -> dict[str, Any]:
    stage = limits.canonical_stage(message.stage)
    archive = message.archive_existing_versions
    if archive:
        limits.check_archiving(message.stage)
    stored = _get(message.name, message.version, request)
    return _answer(model_stages.transition(stored, stage, archive_existing=archive))


def set_model_version_tag(message: m.SetModelVersionTag, request: Request) -> dict[str, Any]:
    limits.check_name(message.name)
    limits.version_number(message.version)
    tag = limits.check_version_tag(message.key, message.value)
    model_versions.set_tag(_get(message.name, message.version, request), tag.key, tag.value)
    return {}


def delete_model_version_tag(message: m.DeleteModelVersionTag, request: Request) -> dict[str, Any]:
    """Deletes a tag of a model version. Deleting a missing tag succeeds."""
    limits.check_name(message.name)
    limits.version_number(message.version)
    check_key(message.key, "key")
    stored = _get(message.name, message.version, request)
    if message.key in stored.version.tags:
        model_versions.delete_tag(stored, message.key)
    return {}


def get_model_version_download_uri(
    message: m.GetModelVersionDownloadUri, request: Request
) -> dict[str, Any]:
    version = _get(message.name, message.version, request).version
    return {"artifact_uri": version.storage_location or version.source}


def get_model_version_by_alias(
    message: m.GetModelVersionByAlias, request: Request
) -> dict[str, Any]:
    """Finds a model version by alias; the alias ``latest`` is the newest version. Takes two round
    trips: the model, which holds the aliases, then the version. Raises InvalidParameterValue if the
    model has no such alias, ResourceDoesNotExist if there is no such model, or ``latest`` finds no
    version."""
    limits.check_name(message.name)
    limits.check_alias(message.alias)
    model = registered_models.get(request.workspace, message.name)
    if message.alias.lower() == limits.LATEST:
        if not model.model.latest:
            raise errors.ResourceDoesNotExist(f"Latest version not found for model {message.name}.")
        number = max(model.model.latest.values())
    elif message.alias in model.model.aliases:
        number = model.model.aliases[message.alias]
    else:
        raise errors.InvalidParameterValue(f"Registered model alias {message.alias} not found.")
    return _answer(model_versions.of_model(model, number))


def get_latest_versions(message: m.GetLatestVersions, request: Request) -> dict[str, Any]:
    """Returns a registered model's newest version of each stage, or of the requested stages."""
    limits.check_name(message.name)
    model = registered_models.get(request.workspace, message.name)
    stages = {limits.canonical_stage(stage) for stage in message.stages or limits.STAGES}
    latest = latest_versions.of_one(model)
    versions = [version for version in latest if version.current_stage in stages]
    if not versions:
        return {}
    return {
        "model_versions": [
            responses.model_version(version, model_versions.aliases(model.model, version.version))
            for version in versions
        ]
    }


def _get(name: str, version: str, request: Request) -> StoredModelVersion:
    limits.check_name(name)
    return model_versions.get(request.workspace, name, limits.version_number(version))


def _answer(stored: StoredModelVersion, version: ModelVersion | None = None) -> dict[str, Any]:
    answered = version or stored.version
    aliases = model_versions.aliases(stored.model.model, answered.version)
    return {"model_version": responses.model_version(answered, aliases)}
