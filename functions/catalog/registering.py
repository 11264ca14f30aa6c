"""From the catalog to the registry in one call: a model, a version of it, and its model artifacts,
which say where they came from. An extension of ours.

A call that was cut short is completed by its repetition, and one that comes again after that
changes nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from catalog import models as catalog_models
from catalog.answers import Asked, Call, parse
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL
from mlcore.catalog.entry import Entry, id_of
from mlcore.errors import ResourceConflict
from mlcore.http import Sent
from mlcore.http.kubeflow import Made
from mlcore.kubeflow import body, merge, properties
from mlcore.kubeflow.entity import V1, Entity, response
from mlcore.kubeflow.errors import bad, taken
from mlcore.kubeflow.kinds import MODEL_ARTIFACT, MODEL_VERSION, Kind
from mlcore.kubeflow.kinds import REGISTERED_MODEL as MODEL
from mlcore.kubeflow.properties import TYPE, Property
from mlcore.repos.kubeflow import artifacts, entities, models, numbers, versions
from mlcore.repos.registry.registered_models import StoredRegisteredModel as ModelRecord
from mlcore.settle import Conflict, settle

VERSION: Final = "1"
"""What the version is called where the request does not say it."""

_FIELDS: Final = tuple(field.name for field in MODEL.fields if field.name not in ("owner", "state"))


def parse_registration(sent: Sent) -> Asked:
    """A request that may say what the registered model and its version are to be called. Raises
    InvalidParameterValue."""
    asked = parse(sent)
    content = sent.body()
    data = body.parse(content) if content.strip() else {}
    for field, value in data.items():
        if field not in ("name", "versionName"):
            raise bad(f'json: unknown field "{field}"')
        if not isinstance(value, str) or len(value) > body.MAX_LENGTH - 20:
            raise bad(f"{field}: must be a string of at most {body.MAX_LENGTH - 20} characters")
    name = data.get("name") or asked.parameters["model_name"]
    if name.startswith(":"):
        raise bad("the name of a registered model cannot begin with ':'")
    return asked._replace(name=name, version_name=data.get("versionName") or VERSION)


def register(call: Call) -> Any:
    """The model, its version and its artifacts: 201 where something was made, else 200.

    Raises:
        ResourceDoesNotExist: the catalog has no such model.
        ResourceConflict: the version is there, and is not of this model of the catalog.
    """
    entry = catalog_models.find(call, whole=True)
    name, version_name = call.asked.name, call.asked.version_name
    model, made_model = settle(MODEL.words, lambda: _model(call, entry, name))
    number = model.item.number or 0
    version, made_version = settle(
        MODEL_VERSION.words, lambda: _version(call, entry, number, version_name)
    )
    found, made_artifacts = _artifacts(call, entry, version)
    answer = {
        "registeredModel": response(models.entity_of(model), V1),
        "modelVersion": response(versions.entity_of(version), V1),
        "artifacts": [response(each, V1) for each in found],
    }
    return Made(answer, 201 if made_model or made_version or made_artifacts else 200)


def _model(call: Call, entry: Entry, name: str) -> tuple[ModelRecord, bool]:
    read = models.find_by_name(call.workspace, name)
    if read is not None:
        return read, False
    values = {field: entry.fields[field] for field in _FIELDS if field in entry.fields}
    entity = _entity(MODEL, numbers.CONTEXTS, entry, {"name": name, "state": "LIVE", **values})
    try:
        granted = call.request.granting(REGISTERED_MODEL, name)
        models.create(entity, call.workspace, granted)
    except ResourceConflict as conflict:
        if models.find_by_name(call.workspace, name) is None:
            raise
        raise Conflict from conflict
    read = models.find_by_name(call.workspace, name)
    if read is None:
        raise Conflict
    return read, True


def _version(call: Call, entry: Entry, model: int, name: str) -> tuple[versions.Record, bool]:
    read = versions.find_by_name(model, name, call.workspace)
    origin = _origin(entry)
    if read is not None:
        if versions.entity_of(read).properties.get(_ORIGIN) != origin:
            raise taken(MODEL_VERSION.title, name)
        return read, False
    reference = numbers.get(model, MODEL.name, call.workspace)
    record = models.at(reference)
    if record is None:
        raise Conflict
    values = {"name": name, "registeredModelId": str(model), "state": "LIVE"}
    entity = _entity(MODEL_VERSION, numbers.CONTEXTS, entry, values, {_ORIGIN: origin})
    try:
        versions.create(entity, record, reference)
    except ResourceConflict as conflict:
        raise Conflict from conflict
    return versions.get(entity.id, call.workspace), True


_ORIGIN: Final = "catalog_model"
"""The custom property of a version that says of which model of the catalog it was made."""


def _origin(entry: Entry) -> Property:
    return Property(properties.STRING, f"{id_of(entry.source)}/{entry.name}")


def _artifacts(call: Call, entry: Entry, version: versions.Record) -> tuple[list[Entity], bool]:
    """The model artifacts of the version, and whether any had to be made. Metrics stay in the
    catalog: the registry has no artifact for them."""
    made = False
    known = {
        artifact.name: artifact
        for raw in artifacts.children(version.number, (MODEL_ARTIFACT.name,))
        if (artifact := entities.entity_of(raw))
    }
    found = []
    for name, child in _named(entry):
        if name not in known:
            make = partial(_artifact, call, entry, child, name, version.number)
            known[name] = settle(MODEL_ARTIFACT.words, make)
            made = True
        found.append(known[name])
    return found, made


def _named(entry: Entry) -> list[tuple[str, Entry]]:
    """The model artifacts, each with a name of its own."""
    found: dict[str, Entry] = {}
    for child in entry.children:
        if child.fields.get("artifactType") == "model-artifact":
            name = child.name if child.name not in found else f"{child.name} {child.id}"
            found[name] = child
    return list(found.items())


def _artifact(call: Call, entry: Entry, child: Entry, name: str, version: int) -> Entity:
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
    entity = _entity(MODEL_ARTIFACT, numbers.ARTIFACTS, child, values)
    read = versions.get(version, call.workspace)
    artifacts.create_of_version(entity, read, versions.reference_of(read))
    return entity


def _entity(
    kind: Kind,
    counter: str,
    entry: Entry,
    values: dict[str, Any],
    more: dict[str, Property] | None = None,
) -> Entity:
    (number,) = numbers.take(counter)
    custom = {
        name: Property(TYPE[member], entry.properties[name])
        for name, member in entry.types.items()
        if not properties.is_reserved(name)
    }
    given = {**values, "customProperties": {**custom, **(more or {})}}
    if entry.fields.get("description") is not None:
        given["description"] = entry.fields["description"]
    return merge.created(kind, number, given, ids.now_ms())
