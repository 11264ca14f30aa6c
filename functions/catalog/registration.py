"""Registers a model of Kubeflow's model catalog in the model registry with one call: creates the
registered model, a version, and its model artifacts, which name the catalog's model as their
origin. Kubeflow has no such route; it is our extension.

A call creates only what does not exist yet, so repeating it completes one that was interrupted.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from catalog import models as catalog_models
from catalog.calls import CatalogCall, CatalogRequest, parse
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL
from mlcore.catalog.entry import CatalogEntry, id_of
from mlcore.errors import ResourceConflict
from mlcore.http import Sent
from mlcore.http.kubeflow_responses import AnswerWithStatus
from mlcore.kubeflow import body, custom_properties, merge
from mlcore.kubeflow.custom_properties import TYPE, Property
from mlcore.kubeflow.entity import V1, Entity, response
from mlcore.kubeflow.errors import invalid, name_taken
from mlcore.kubeflow.kinds import MODEL_ARTIFACT, MODEL_VERSION, EntityKind
from mlcore.kubeflow.kinds import REGISTERED_MODEL as MODEL
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.kubeflow import artifacts, entities, models, numbers, versions
from mlcore.repos.registry.registered_models import StoredRegisteredModel as ModelRecord

DEFAULT_VERSION_NAME: Final = "1"
"""Name of the version if the request has none."""

_FIELDS: Final = tuple(field.name for field in MODEL.fields if field.name not in ("owner", "state"))


def parse_registration(sent: Sent) -> CatalogRequest:
    """Parses a request to register a model of the catalog; its optional body may have a name for
    the registered model, and one for its version. Raises InvalidParameterValue."""
    parsed = parse(sent)
    content = sent.body()
    data = body.parse(content) if content.strip() else {}
    for field, value in data.items():
        if field not in ("name", "versionName"):
            raise invalid(f'json: unknown field "{field}"')
        if not isinstance(value, str) or len(value) > body.MAX_LENGTH - 20:
            raise invalid(f"{field}: must be a string of at most {body.MAX_LENGTH - 20} characters")
    name = data.get("name") or parsed.parameters["model_name"]
    if name.startswith(":"):
        raise invalid("the name of a registered model cannot begin with ':'")
    return parsed._replace(name=name, version_name=data.get("versionName") or DEFAULT_VERSION_NAME)


def register(call: CatalogCall) -> Any:
    """Registers a model of the catalog: creates the registered model, the version and the artifacts
    that do not exist yet. Returns all three, with 201 if one of them was created, else with 200.

    Raises:
        ResourceDoesNotExist: the catalog has no such model.
        ResourceConflict: the version exists, but was not registered from this model of the catalog;
            or the registered model or an artifact cannot be created, because its name is taken.
        RequestLimitExceeded: other writes came first in each attempt.
    """
    entry = catalog_models.find_model(call, with_artifacts=True)
    name, version_name = call.parsed.name, call.parsed.version_name
    model, made_model = retry_on_conflict(
        MODEL.words, lambda: _find_or_create_model(call, entry, name)
    )
    number = model.item.number or 0
    version, made_version = retry_on_conflict(
        MODEL_VERSION.words, lambda: _find_or_create_version(call, entry, number, version_name)
    )
    version_artifacts, made_artifacts = _find_or_create_artifacts(call, entry, version)
    result = {
        "registeredModel": response(models.entity_of(model), V1),
        "modelVersion": response(versions.entity_of(version), V1),
        "artifacts": [response(artifact, V1) for artifact in version_artifacts],
    }
    return AnswerWithStatus(result, 201 if made_model or made_version or made_artifacts else 200)


def _find_or_create_model(
    call: CatalogCall, entry: CatalogEntry, name: str
) -> tuple[ModelRecord, bool]:
    read = models.find_by_name(call.workspace, name)
    if read is not None:
        return read, False
    values = {field: entry.fields[field] for field in _FIELDS if field in entry.fields}
    entity = _new_entity(MODEL, numbers.CONTEXTS, entry, {"name": name, "state": "LIVE", **values})
    try:
        granted = call.request.granting(REGISTERED_MODEL, name)
        models.create(entity, call.workspace, granted)
    except ResourceConflict as conflict:
        if models.find_by_name(call.workspace, name) is None:
            raise
        raise WriteConflict from conflict
    read = models.find_by_name(call.workspace, name)
    if read is None:
        raise WriteConflict
    return read, True


def _find_or_create_version(
    call: CatalogCall, entry: CatalogEntry, model: int, name: str
) -> tuple[versions.VersionOfModel, bool]:
    read = versions.find_by_name(model, name, call.workspace)
    origin = _origin(entry)
    if read is not None:
        if versions.entity_of(read).properties.get(_ORIGIN) != origin:
            raise name_taken(MODEL_VERSION.title, name)
        return read, False
    reference = numbers.get(model, MODEL.name, call.workspace)
    record = models.at(reference)
    if record is None:
        raise WriteConflict
    values = {"name": name, "registeredModelId": str(model), "state": "LIVE"}
    entity = _new_entity(MODEL_VERSION, numbers.CONTEXTS, entry, values, {_ORIGIN: origin})
    try:
        versions.create(entity, record, reference)
    except ResourceConflict as conflict:
        raise WriteConflict from conflict
    return versions.get(entity.id, call.workspace), True


_ORIGIN: Final = "catalog_model"
"""The custom property of a version that names its model of the catalog: ``<source>/<name>``."""


def _origin(entry: CatalogEntry) -> Property:
    return Property(custom_properties.STRING, f"{id_of(entry.source)}/{entry.name}")


def _find_or_create_artifacts(
    call: CatalogCall, entry: CatalogEntry, version: versions.VersionOfModel
) -> tuple[list[Entity], bool]:
    """Returns the model artifacts of the version, and whether one of them was created. Metrics
    artifacts are not copied: the registry has no such artifacts."""
    made = False
    known = {
        artifact.name: artifact
        for raw in artifacts.children(version.number, (MODEL_ARTIFACT.name,))
        if (artifact := entities.entity_of(raw))
    }
    listed = []
    for name, child in _with_distinct_names(entry):
        if name not in known:
            make = partial(_create_artifact, call, entry, child, name, version.number)
            known[name] = retry_on_conflict(MODEL_ARTIFACT.words, make)
            made = True
        listed.append(known[name])
    return listed, made


def _with_distinct_names(entry: CatalogEntry) -> list[tuple[str, CatalogEntry]]:
    """Returns the entry's model artifacts with distinct names: a repeated name gets the id
    appended."""
    by_name: dict[str, CatalogEntry] = {}
    for child in entry.children:
        if child.fields.get("artifactType") == "model-artifact":
            name = child.name if child.name not in by_name else f"{child.name} {child.id}"
            by_name[name] = child
    return list(by_name.items())


def _create_artifact(
    call: CatalogCall, entry: CatalogEntry, child: CatalogEntry, name: str, version: int
) -> Entity:
    source = id_of(entry.source)
    values = {
        "name": name,
        "uri": child.fields["uri"],
        "state": "LIVE",
        "modelSourceKind": "catalog",
        "modelSourceClass": source,
        "modelSourceGroup": entry.fields.get("provider") or source,
        "modelSourceId": str(entry.id),
        "modelSourceName": entry.name,
    }
    entity = _new_entity(MODEL_ARTIFACT, numbers.ARTIFACTS, child, values)
    read = versions.get(version, call.workspace)
    artifacts.create_of_version(entity, read, versions.reference_of(read))
    return entity


def _new_entity(
    kind: EntityKind,
    counter: str,
    entry: CatalogEntry,
    values: dict[str, Any],
    more: dict[str, Property] | None = None,
) -> Entity:
    (number,) = numbers.take(counter)
    custom = {
        name: Property(TYPE[member], entry.properties[name])
        for name, member in entry.types.items()
        if not custom_properties.is_reserved(name)
    }
    given = {**values, "customProperties": {**custom, **(more or {})}}
    if entry.fields.get("description") is not None:
        given["description"] = entry.fields["description"]
    return merge.created(kind, number, given, ids.now_ms())
