"""The routes of the model registry."""

from __future__ import annotations

from mlcore.http import delete, get, lambda_handler, patch, post, preview
from registry import messages as m
from registry import models, search, versions

_MODELS = "/mlflow/registered-models"
_VERSIONS = "/mlflow/model-versions"

_RPCS = (
    post(
        f"{_MODELS}/create",
        m.CreateRegisteredModel,
        models.create_registered_model,
        "registry.create",
        cost=1,
    ),
    get(
        f"{_MODELS}/get",
        m.GetRegisteredModel,
        models.get_registered_model,
        "registry.read_model",
        hides="registered_model",
        cost=2,
    ),
    patch(
        f"{_MODELS}/update",
        m.UpdateRegisteredModel,
        models.update_registered_model,
        "registry.update_model",
        hides="registered_model",
        cost=4,
    ),
    post(
        f"{_MODELS}/rename",
        m.RenameRegisteredModel,
        models.rename_registered_model,
        "registry.update_model",
        hides="registered_model",
        follow="remaining_grants.model_renamed",
        cost=4,
    ),
    delete(
        f"{_MODELS}/delete",
        m.DeleteRegisteredModel,
        models.delete_registered_model,
        "registry.delete",
        follow="remaining_grants.model_deleted",
        cost=8,
    ),
    get(
        f"{_MODELS}/search",
        m.SearchRegisteredModels,
        search.search_registered_models,
        "shared_rules.anybody",
        hides="registered_models",
        cost=2,
    ),
    get(
        f"{_MODELS}/list",
        m.ListRegisteredModels,
        search.list_registered_models,
        "shared_rules.anybody",
        hides="registered_models",
        until="1.30",
        cost=3,
    ),
    post(
        f"{_MODELS}/get-latest-versions",
        m.GetLatestVersions,
        versions.get_latest_versions,
        "registry.read_version",
        hides="versions",
        cost=2,
        reads=True,
    ),
    get(
        f"{_MODELS}/get-latest-versions",
        m.GetLatestVersions,
        versions.get_latest_versions,
        "registry.read_version",
        hides="versions",
        cost=2,
    ),
    post(
        f"{_MODELS}/set-tag",
        m.SetRegisteredModelTag,
        models.set_registered_model_tag,
        "registry.update_model",
        cost=2,
    ),
    delete(
        f"{_MODELS}/delete-tag",
        m.DeleteRegisteredModelTag,
        models.delete_registered_model_tag,
        "registry.update_model",
        cost=2,
        deviation="Deleting a tag that the model does not have is not announced to webhooks.",
    ),
    post(
        f"{_MODELS}/alias",
        m.SetRegisteredModelAlias,
        models.set_registered_model_alias,
        "registry.update_alias",
        cost=2,
    ),
    delete(
        f"{_MODELS}/alias",
        m.DeleteRegisteredModelAlias,
        models.delete_registered_model_alias,
        "registry.delete_alias",
        cost=2,
        deviation="Deleting a missing alias is not announced to webhooks.",
    ),
    get(
        f"{_MODELS}/alias",
        m.GetModelVersionByAlias,
        versions.get_model_version_by_alias,
        "registry.read_version",
        hides="version",
        cost=2,
    ),
    get(
        f"{_VERSIONS}/search",
        m.SearchModelVersions,
        search.search_model_versions,
        "registry.search_versions",
        hides="versions",
        cost=2,
    ),
    post(
        f"{_VERSIONS}/create",
        m.CreateModelVersion,
        versions.create_model_version,
        "registry.create_version",
        hides="version",
        cost=2,
    ),
    get(
        f"{_VERSIONS}/get",
        m.GetModelVersion,
        versions.get_model_version,
        "registry.read_version",
        hides="version",
        cost=1,
    ),
    patch(
        f"{_VERSIONS}/update",
        m.UpdateModelVersion,
        versions.update_model_version,
        "registry.update_version",
        hides="version",
        cost=2,
    ),
    delete(
        f"{_VERSIONS}/delete",
        m.DeleteModelVersion,
        versions.delete_model_version,
        "registry.delete_version",
        cost=3,
    ),
    post(
        f"{_VERSIONS}/transition-stage",
        m.TransitionModelVersionStage,
        versions.transition_stage,
        "registry.update_version",
        hides="version",
        cost=5,
    ),
    get(
        f"{_VERSIONS}/get-download-uri",
        m.GetModelVersionDownloadUri,
        versions.get_model_version_download_uri,
        "registry.read_version",
        cost=1,
    ),
    post(
        f"{_VERSIONS}/set-tag",
        m.SetModelVersionTag,
        versions.set_model_version_tag,
        "registry.update_version",
        cost=2,
    ),
    delete(
        f"{_VERSIONS}/delete-tag",
        m.DeleteModelVersionTag,
        versions.delete_model_version_tag,
        "registry.delete_version",
        cost=2,
        deviation="Deleting a missing tag is not announced to webhooks.",
    ),
)


RPCS = (*_RPCS, *map(preview, _RPCS))

handler = lambda_handler(RPCS)
