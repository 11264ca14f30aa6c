"""Checks the source of a new model version: which run or logged model it must belong to. Finds the
location of its files."""

from __future__ import annotations

import json
from typing import NamedTuple

from mlcore import errors
from mlcore.entities.registry import ModelVersion
from mlcore.http import Request
from mlcore.limits import model_sources as limits
from mlcore.limits.model_sources import ParsedSource
from mlcore.limits.registry import LATEST, canonical_stage, version_number
from mlcore.limits.shared_checks import list_in_tag
from mlcore.models.logged_models import LoggedModel as LoggedModelItem
from mlcore.observability import logger
from mlcore.prompts import is_prompt
from mlcore.repos.logged_models import logged_models
from mlcore.repos.logged_models.logged_models import StoredLoggedModel
from mlcore.repos.registry import model_versions, registered_models
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.repos.runs.core import runs
from registry import prompt_tags
from registry.messages import CreateModelVersion

VERSIONS_TAG = "mlflow.modelVersions"
"""A logged model's tag with the versions it was registered as: JSON."""


class VersionOrigin(NamedTuple):
    """The checked source of a new model version, with the run and the logged model it came from."""

    source: ParsedSource
    storage_location: str
    run_id: str | None
    model_id: str | None
    model: StoredLoggedModel | None = None


def of_request(message: CreateModelVersion, request: Request) -> VersionOrigin:
    """Checks the source of the model version in a request, in the same order as MLflow, and finds
    the location of the source's files. Raises InvalidParameterValue for a source that is not
    allowed, ResourceDoesNotExist if the run or the model that it names is missing."""
    is_prompt = prompt_tags.are_prompt_tags(message.tags)
    source = limits.check_source(message.source, is_prompt=is_prompt)
    origin = VersionOrigin(source, source.uri, message.run_id, message.model_id)
    if is_prompt:
        return origin
    limits.check_registry(source)
    model_uri = limits.model_of(source)
    if model_uri is not None and model_uri.model_id is None:
        origin = _of_version(message, request, model_uri)
    if not origin.model_id:
        _check_run(origin.source, origin.run_id or "", request)
        return origin
    model = _logged_model(origin, request)
    _check_model(origin.source, model.item)
    location = origin.storage_location
    if origin.source.model is not None:
        location = model.item.artifact_location
    return origin._replace(
        storage_location=location, run_id=origin.run_id or model.item.source_run_id, model=model
    )


def link(origin: VersionOrigin, version: ModelVersion) -> None:
    """Adds the new model version to the list of versions in a tag of the logged model from which it
    was made. A failure is only logged: the version exists, and a client that got an error would
    retry and create another one."""
    if origin.model is None:
        return
    entry = {"name": version.name, "version": version.version}

    def decide(stored: StoredLoggedModel) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        entries = list_in_tag(stored.document.texts("tags"), VERSIONS_TAG)
        text = json.dumps([*entries, entry])
        return {"tags": {VERSIONS_TAG: text}}, ()

    try:
        logged_models.write(origin.model, decide, exclusive=True)
    except errors.MlflowError:
        logger.exception(
            "a new version was not added to its logged model's tag",
            extra={"registered_model": version.name, "version": version.version},
        )


def version_at(
    model: StoredRegisteredModel, version: str | None, stage: str | None, alias: str | None
) -> str:
    """Returns the number of the version that a ``models:/`` URI names; ``version`` itself is not
    checked. With the alias ``latest``, or without version, stage and alias, this is the newest;
    with a stage, the newest in the stage. Raises InvalidParameterValue if the model has no such
    alias, or no version (in the stage)."""
    if version is not None:
        return version
    if alias is not None and alias.lower() != LATEST:
        number = model.model.aliases.get(alias)
        if number is None:
            raise errors.InvalidParameterValue(f"Registered model alias {alias} not found.")
        return str(number)
    wanted_stage = None if stage is None else canonical_stage(stage)
    numbers = [
        number
        for stage_of_version, number in model.model.latest.items()
        if wanted_stage is None or stage_of_version == wanted_stage
    ]
    if not numbers:
        where = "" if stage is None else f" and stage '{stage}'"
        raise errors.InvalidParameterValue(
            f"No versions of model with name '{model.model.name}'{where} found"
        )
    return str(max(numbers))


def _of_version(
    message: CreateModelVersion, request: Request, uri: limits.ModelUri
) -> VersionOrigin:
    """Resolves a source that names another version: the new version shares its files and run.
    MLflow's server does not store which logged model a version came from, so the request may not
    name one."""
    model = registered_models.get(request.workspace, uri.name)
    if is_prompt(model.model.tags):
        raise errors.InvalidParameterValue(
            f"Invalid model version source: '{message.source}'. Prompt versions cannot be used as "
            "model version sources."
        )
    number = version_number(version_at(model, uri.version, uri.stage, uri.alias))
    copied_version: ModelVersion = model_versions.get(request.workspace, uri.name, number).version
    if (
        message.has("run_id") and message.run_id != (copied_version.run_id or "")
    ) or message.model_id:
        raise errors.InvalidParameterValue(
            f"Invalid model version source: '{message.source}'. The run_id and model_id request "
            "parameters must match the referenced model version."
        )
    source = limits.parse(f"models:/{uri.name}/{copied_version.version}")
    return VersionOrigin(source, copied_version.storage_location, copied_version.run_id, None)


def _check_run(source: ParsedSource, run_id: str, request: Request) -> None:
    if limits.is_local(source):
        if run_id and limits.is_inside_directory(source, _root_of_run(run_id, source, request)):
            return
        raise limits.local_refused(source, "run_id")
    limits.check_absolute(source)
    run_in_source = limits.run_of(source)
    if run_in_source is not None:
        if run_in_source == run_id:
            return
        raise limits.not_owned(source, "run_id")
    if source.model is not None and source.model.model_id is not None:
        raise limits.not_owned(source, "model_id")
    if limits.is_proxied(source):
        if run_id and limits.is_below(source, _root_of_run(run_id, source, request)):
            return
        raise limits.not_owned(source, "run_id")


def _logged_model(origin: VersionOrigin, request: Request) -> StoredLoggedModel:
    """Reads the logged model of the source. A model in another workspace counts as missing."""
    model_id = origin.model_id or ""
    try:
        return logged_models.load_active(model_id, request.workspace)
    except errors.ResourceDoesNotExist:
        if limits.is_local(origin.source) or limits.is_proxied(origin.source):
            raise limits.not_owned(origin.source, "model_id") from None
        limits.check_absolute(origin.source)
        if _is_of_another(origin.source, model_id):
            raise limits.not_owned(origin.source, "model_id") from None
        raise


def _is_of_another(source: ParsedSource, model_id: str) -> bool:
    """Whether a source names a run, or a logged model or version other than the logged model."""
    if source.model is not None:
        return source.model.model_id != model_id
    return limits.run_of(source) is not None


def _check_model(source: ParsedSource, model: LoggedModelItem) -> None:
    if limits.is_local(source):
        if limits.is_inside_directory(source, model.artifact_location):
            return
        raise limits.local_refused(source, "model_id")
    limits.check_absolute(source)
    is_outside = limits.is_proxied(source) and not limits.is_below(source, model.artifact_location)
    if is_outside or _is_of_another(source, model.model_id):
        raise limits.not_owned(source, "model_id")


def _root_of_run(run_id: str, source: ParsedSource, request: Request) -> str:
    """Returns the location of the run's artifacts. A run in another workspace counts as missing."""
    try:
        stored = runs.load(run_id, request.workspace)
    except errors.ResourceDoesNotExist:
        raise limits.not_owned(source, "run_id") from None
    return stored.item.artifact_uri
