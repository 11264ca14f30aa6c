"""Requests of the registry RPCs, in the field order of MLflow's model_registry.proto."""

from __future__ import annotations

from mlcore.wire import (
    Message,
    array,
    at_most,
    boolean,
    intlike,
    item_type_string,
    required,
    string,
)

_NAME = {"name": (string, required)}
_VERSION = {"name": (string, required), "version": (string, required)}


class Tag(Message):
    key: str
    value: str


class CreateRegisteredModel(Message):
    name: str
    tags: list[Tag]
    description: str
    deployment_job_id: str
    checks = {**_NAME, "tags": (array,), "description": (string,)}


class RenameRegisteredModel(Message):
    name: str
    new_name: str
    checks = {**_NAME, "new_name": (string, required)}


class UpdateRegisteredModel(Message):
    name: str
    description: str
    deployment_job_id: str
    checks = {**_NAME, "description": (string,)}


class DeleteRegisteredModel(Message):
    name: str
    checks = _NAME


class GetRegisteredModel(Message):
    name: str
    checks = _NAME


class SearchRegisteredModels(Message):
    filter: str
    max_results: int = 100
    order_by: list[str]
    page_token: str
    checks = {
        "filter": (string,),
        "max_results": (intlike, at_most(1000)),
        "order_by": (array, item_type_string),
        "page_token": (string,),
    }


class ListRegisteredModels(Message):
    """The request that MLflow clients before 2.0 send to list registered models."""

    max_results: int = 100
    page_token: str
    checks = {"max_results": (intlike, at_most(1000)), "page_token": (string,)}


class GetLatestVersions(Message):
    name: str
    stages: list[str]
    checks = {**_NAME, "stages": (array, item_type_string)}


class CreateModelVersion(Message):
    name: str
    source: str
    run_id: str
    tags: list[Tag]
    run_link: str
    description: str
    model_id: str
    checks = {
        **_NAME,
        "source": (string, required),
        "run_id": (string,),
        "tags": (array,),
        "run_link": (string,),
        "description": (string,),
        "model_id": (string,),
    }


class UpdateModelVersion(Message):
    name: str
    version: str
    description: str
    checks = {**_VERSION, "description": (string,)}


class TransitionModelVersionStage(Message):
    name: str
    version: str
    stage: str
    archive_existing_versions: bool
    checks = {**_VERSION, "stage": (string, required), "archive_existing_versions": (boolean,)}


class DeleteModelVersion(Message):
    name: str
    version: str
    checks = _VERSION


class GetModelVersion(Message):
    name: str
    version: str
    checks = _VERSION


class SearchModelVersions(Message):
    filter: str
    max_results: int = 200_000
    order_by: list[str]
    page_token: str
    checks = {
        "filter": (string,),
        "max_results": (intlike, at_most(200_000)),
        "order_by": (array, item_type_string),
        "page_token": (string,),
    }


class GetModelVersionDownloadUri(Message):
    name: str
    version: str


class SetRegisteredModelTag(Message):
    name: str
    key: str
    value: str
    checks = {**_NAME, "key": (string, required), "value": (string,)}


class DeleteRegisteredModelTag(Message):
    name: str
    key: str
    checks = {**_NAME, "key": (string, required)}


class SetModelVersionTag(Message):
    name: str
    version: str
    key: str
    value: str
    checks = {**_VERSION, "key": (string, required), "value": (string,)}


class DeleteModelVersionTag(Message):
    name: str
    version: str
    key: str
    checks = {**_VERSION, "key": (string, required)}


class SetRegisteredModelAlias(Message):
    name: str
    alias: str
    version: str
    checks = {**_NAME, "alias": (string, required), "version": (string, required)}


class DeleteRegisteredModelAlias(Message):
    name: str
    alias: str
    checks = {**_NAME, "alias": (string, required)}


class GetModelVersionByAlias(Message):
    name: str
    alias: str
    checks = {**_NAME, "alias": (string, required)}
