"""The RPCs of the model registry."""

from __future__ import annotations

from mlcore.http import Rpc, delete, get, lambda_handler, patch, post
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
    ),
    get(
        f"{_MODELS}/get",
        m.GetRegisteredModel,
        models.get_registered_model,
        "registry.read_model",
        hides="registered_model",
    ),
    patch(
        f"{_MODELS}/update",
        m.UpdateRegisteredModel,
        models.update_registered_model,
        "registry.update_model",
        hides="registered_model",
    ),
    post(
        f"{_MODELS}/rename",
        m.RenameRegisteredModel,
        models.rename_registered_model,
        "registry.update_model",
        hides="registered_model",
        follow="registry.renamed",
    ),
    delete(
        f"{_MODELS}/delete",
        m.DeleteRegisteredModel,
        models.delete_registered_model,
        "registry.delete",
        follow="registry.deleted",
    ),
    get(
        f"{_MODELS}/search",
        m.SearchRegisteredModels,
        search.search_registered_models,
        "requests.anybody",
        hides="registered_models",
    ),
    get(
        f"{_MODELS}/list",
        m.ListRegisteredModels,
        search.list_registered_models,
        "requests.anybody",
        hides="registered_models",
    ),
    post(
        f"{_MODELS}/get-latest-versions",
        m.GetLatestVersions,
        versions.get_latest_versions,
        "registry.read_version",
        hides="versions",
    ),
    get(
        f"{_MODELS}/get-latest-versions",
        m.GetLatestVersions,
        versions.get_latest_versions,
        "registry.read_version",
        hides="versions",
    ),
    post(
        f"{_MODELS}/set-tag",
        m.SetRegisteredModelTag,
        models.set_registered_model_tag,
        "registry.update_model",
    ),
    delete(
        f"{_MODELS}/delete-tag",
        m.DeleteRegisteredModelTag,
        models.delete_registered_model_tag,
        "registry.update_model",
    ),
    post(
        f"{_MODELS}/alias",
        m.SetRegisteredModelAlias,
        models.set_registered_model_alias,
        "registry.update_alias",
    ),
    delete(
        f"{_MODELS}/alias",
        m.DeleteRegisteredModelAlias,
        models.delete_registered_model_alias,
        "registry.delete_alias",
    ),
    get(
        f"{_MODELS}/alias",
        m.GetModelVersionByAlias,
        versions.get_model_version_by_alias,
        "registry.read_version",
        hides="version",
    ),
    get(
        f"{_VERSIONS}/search",
        m.SearchModelVersions,
        search.search_model_versions,
        "registry.search_versions",
        hides="versions",
    ),
    post(
        f"{_VERSIONS}/create",
        m.CreateModelVersion,
        versions.create_model_version,
        "registry.create_version",
        hides="version",
    ),
    get(
        f"{_VERSIONS}/get",
        m.GetModelVersion,
        versions.get_model_version,
        "registry.read_version",
        hides="version",
    ),
    patch(
        f"{_VERSIONS}/update",
        m.UpdateModelVersion,
        versions.update_model_version,
        "registry.update_version",
        hides="version",
    ),
    delete(
        f"{_VERSIONS}/delete",
        m.DeleteModelVersion,
        versions.delete_model_version,
        "registry.delete_version",
    ),
    post(
        f"{_VERSIONS}/transition-stage",
        m.TransitionModelVersionStage,
        versions.transition_stage,
        "registry.update_version",
        hides="version",
    ),
    get(
        f"{_VERSIONS}/get-download-uri",
        m.GetModelVersionDownloadUri,
        versions.get_model_version_download_uri,
        "registry.read_version",
    ),
    post(
        f"{_VERSIONS}/set-tag",
        m.SetModelVersionTag,
        versions.set_model_version_tag,
        "registry.update_version",
    ),
    delete(
        f"{_VERSIONS}/delete-tag",
        m.DeleteModelVersionTag,
        versions.delete_model_version_tag,
        "registry.delete_version",
    ),
)


def _preview(rpc: Rpc) -> Rpc:
    """The same RPC for clients before 2.0."""
    version, path = rpc.path[1:].split("/", 1)
    return rpc._replace(path=f"/{version}/preview/{path}")


RPCS = (*_RPCS, *map(_preview, _RPCS))

handler = lambda_handler(RPCS)
