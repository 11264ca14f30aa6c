"""Transfers models, versions, artifacts and serving entities of a Kubeflow registry to the
product's table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from threading import Lock
from typing import Any

from mlcore.db.expression import Raw
from mlcore.entities.workspaces import DEFAULT_WORKSPACE as SPACE
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import (
    ARTIFACT_KINDS,
    INFERENCE_SERVICE,
    MODEL_ARTIFACT,
    MODEL_VERSION,
    REGISTERED_MODEL,
    SERVE_MODEL,
    SERVING_ENVIRONMENT,
)
from mlcore.models.kubeflow import Artifact, ContextRef
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.kubeflow import (
    artifacts,
    entities,
    models,
    numbers,
    run_values,
    serving,
    transaction_steps,
    versions,
)
from operate.transfer.kubeflow_comparison import content, contents, labelled, within
from operate.transfer.kubeflow_merge import altering
from operate.transfer.kubeflow_reader import Registry
from operate.transfer.mlflow_client import SourceFailed
from operate.transfer.transfer_item import Content, TransferItem


class Models:
    """Transfers models of a Kubeflow registry, then serving environments, then artifacts without a
    parent. An entity is found in the table by its name: a model by its own, a child by its name
    within its parent; an artifact without a parent is searched by its external id first. Numbers
    (ids) are assigned by the table.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._numbers: dict[int, int] = {}
        """The table's numbers of models and versions, by the registry's numbers."""
        self._artifacts: dict[int, int] = {}
        """The table's numbers of artifacts, by the registry's numbers. Several versions may
        share an artifact."""
        self._seen: set[int] = set()
        self._locks: dict[int, Lock] = {}

    # -------------------------------------------------------------- models

    def models(self) -> Iterator[TransferItem]:
        for model in self._registry.entities(REGISTERED_MODEL, "registered_models"):
            yield self._model(model)

    def _model(self, model: Entity) -> TransferItem:
        made: list[tuple[Entity, dict[str, Entity]]] = []
        wanted: dict[str, Any] = {}

        def want() -> Content:
            path = f"registered_models/{model.id}/versions"
            made[:] = [
                (entity, self._of_version(entity))
                for entity in self._registry.entities(MODEL_VERSION, path)
            ]
            wanted.update(content(model))
            wanted["versions"] = {
                made_version.name: {**content(made_version), "artifacts": contents(existing)}
                for made_version, existing in made
            }
            return wanted

        def have() -> Content | None:
            read = models.find_by_name(SPACE, model.name)
            if read is None:
                return None
            number = read.item.number or 0
            self._numbers[model.id] = number
            contents_by_name = {
                made_version.name: self._version_content(number, made_version)
                for made_version, _ in made
            }
            there = {
                name: made_version
                for name, made_version in contents_by_name.items()
                if made_version is not None
            }
            return within(wanted, {**content(models.entity_of(read)), "versions": there})

        def write(_: Content, existing: Content | None) -> None:
            if existing is None:
                (number,) = numbers.take(numbers.CONTEXTS)
                models.create(model._replace(id=number), SPACE)
            read = models.find_by_name(SPACE, model.name)
            if read is None:
                raise SourceFailed(404, f"model {model.name!r} was deleted meanwhile")
            if existing is not None and _differs(model, models.entity_of(read)):
                models.change(read, altering(model))
            for version, sources in made:
                self._write_version(read.item.number or 0, version, sources)

        return TransferItem("registered model", model.name, want, have, write)

    def _of_version(self, version: Entity) -> dict[str, Entity]:
        artifacts = self._registry.artifacts(f"model_versions/{version.id}/artifacts")
        self._seen.update(artifact.id for artifact in artifacts)
        return labelled(artifacts)

    def _version_content(self, model: int, version: Entity) -> Content | None:
        read = versions.find_by_name(model, version.name, SPACE)
        if read is None:
            return None
        self._numbers[version.id] = read.number
        there = contents(_artifacts_of(versions.reference_of(read)))
        return {**content(versions.entity_of(read)), "artifacts": there}

    def _write_version(self, model: int, version: Entity, sources: dict[str, Entity]) -> None:
        """Creates a version, or changes all differing fields of the existing one at once; then
        writes its artifacts.

        Args:
            model: the target model's number.
            sources: the artifacts of the source's version, by the label that both servers have
                (:func:`labelled`).
        """
        read = versions.find_by_name(model, version.name, SPACE)
        if read is None:
            reference = numbers.get(model, REGISTERED_MODEL.name, SPACE)
            owner = models.at(reference)
            if owner is None:
                raise SourceFailed(404, f"version {version.name!r}: its model was deleted")
            (number,) = numbers.take(numbers.CONTEXTS)
            fields = {**version.fields, "registeredModelId": str(model)}
            versions.create(version._replace(id=number, fields=fields), owner, reference)
            read = versions.get(number, SPACE)
        elif _differs(version, versions.entity_of(read)):
            versions.change(read, altering(version))
        self._numbers[version.id] = read.number
        reference = versions.reference_of(read)
        there = _artifacts_of(reference)
        for label, artifact in sources.items():
            with self._locks.setdefault(artifact.id, Lock()):
                self._write_artifact(reference, artifact, there.get(label))

    def _write_artifact(self, parent: ContextRef, artifact: Entity, there: Entity | None) -> None:
        known = self._artifacts.get(artifact.id)
        if there is not None:
            self._artifacts[artifact.id] = there.id
            if _differs(artifact, there):
                artifacts.change(artifacts.get(there.id, SPACE), altering(artifact))
        elif known is not None:
            shared = entities.entity_of(artifacts.get(known, SPACE))
            retry_on_conflict(artifacts.WORDS, partial(artifacts.attribute, shared, parent))
        else:
            (number,) = numbers.take(numbers.ARTIFACTS)
            retry_on_conflict(
                artifacts.WORDS, partial(_create_artifact, artifact._replace(id=number), parent)
            )
            self._artifacts[artifact.id] = number

    # -------------------------------------------------------------- serving

    def environments(self) -> Iterator[TransferItem]:
        kind = SERVING_ENVIRONMENT
        for environment in self._registry.entities(kind, "serving_environments"):
            yield self._environment(environment)

    def _environment(self, environment: Entity) -> TransferItem:
        made: list[tuple[Entity, list[Entity]]] = []
        wanted: dict[str, Any] = {}

        def want() -> Content:
            path = f"serving_environments/{environment.id}/inference_services"
            services = self._registry.entities(INFERENCE_SERVICE, path)
            made[:] = [(self._translated(service), self._serves(service)) for service in services]
            wanted.update(content(environment))
            wanted["services"] = {
                entity.name: {
                    **_with_references(entity),
                    "serves": {serve.name: _with_references(serve) for serve in serves},
                }
                for entity, serves in made
            }
            return wanted

        def have() -> Content | None:
            raw = _environment_named(environment.name)
            if raw is None:
                return None
            entity = entities.entity_of(raw)
            existing = serving.children(entity.id, INFERENCE_SERVICE, SPACE)
            services = {each.name: each for each in map(entities.entity_of, existing)}
            contents_by_name = {name: _service_content(each) for name, each in services.items()}
            return within(wanted, {**content(entity), "services": contents_by_name})

        def write(_: Content, existing: Content | None) -> None:
            if existing is None:
                (number,) = numbers.take(numbers.CONTEXTS)
                serving.create_environment(environment._replace(id=number), SPACE, None)
            raw = _environment_named(environment.name)
            if raw is None:
                raise SourceFailed(404, f"environment {environment.name!r} was deleted meanwhile")
            entity = entities.entity_of(raw)
            if _differs(environment, entity):
                entities.change(raw, SPACE, altering(environment))
            for service, serves in made:
                _write_service(entity.id, service, serves)

        return TransferItem("serving environment", environment.name, want, have, write)

    def _serves(self, service: Entity) -> list[Entity]:
        path = f"inference_services/{service.id}/serves"
        return [self._translated(entity) for entity in self._registry.entities(SERVE_MODEL, path)]

    def _translated(self, entity: Entity) -> Entity:
        """Returns the entity with the ids of models and versions replaced: the source registry's by
        the table's. An id without a counterpart becomes 0."""
        fields = dict(entity.fields)
        for name in ("registeredModelId", "modelVersionId"):
            if fields.get(name):
                fields[name] = str(self._numbers.get(int(fields[name]), 0))
        return entity._replace(fields=fields)

    # -------------------------------------------------------------- artifacts of nothing

    def standalone(self) -> Iterator[TransferItem]:
        """Yields a transfer item for each artifact of a Kubeflow registry that belongs to no model
        version and no run. To be called after models and runs are transferred."""
        standalone_artifacts = [
            artifact
            for artifact in self._registry.artifacts("artifacts")
            if artifact.id not in self._seen
        ]
        alone = [each for each in standalone_artifacts if not each.fields.get("experimentRunId")]
        if not alone:
            return
        there = {
            (each.kind, each.name): each.id
            for raw in entities.listed(SPACE, MODEL_ARTIFACT.name)
            if Artifact.of(raw).parent is None
            for each in (entities.entity_of(raw),)
        }
        for each in alone:
            yield _standalone(each, there)


def _standalone(artifact: Entity, there: dict[tuple[str, str], int]) -> TransferItem:
    wanted = content(artifact)

    def find() -> Raw | None:
        number = None
        if artifact.external_id:
            number = transaction_steps.find_external(SPACE, artifact.of_kind, artifact.external_id)
        if number is None:
            number = there.get((artifact.kind, artifact.name))
        return None if number is None else artifacts.find(number, SPACE)

    def have() -> Content | None:
        raw = find()
        return None if raw is None else within(wanted, content(entities.entity_of(raw)))

    def write(_: Content, existing: Content | None) -> None:
        raw = find()
        if existing is None or raw is None:
            (number,) = numbers.take(numbers.ARTIFACTS)
            artifacts.create(artifact._replace(id=number), SPACE, None)
            there[artifact.kind, artifact.name] = number
        else:
            artifacts.change(raw, altering(artifact))

    return TransferItem("artifact", artifact.name, lambda: wanted, have, write)


def _differs(entity: Entity, there: Entity) -> bool:
    return within(content(entity), content(there)) != content(entity)


def _artifacts_of(reference: ContextRef) -> dict[str, Entity]:
    return labelled(run_values.entities_of(artifacts.children(reference.number, ARTIFACT_KINDS)))


def _create_artifact(entity: Entity, parent: ContextRef) -> None:
    version = versions.at(parent, SPACE)
    if version is None:
        raise SourceFailed(404, f"artifact {entity.name!r}: its version was deleted meanwhile")
    # In a registry a version may have several artifacts of one name.
    artifacts.create_of_version(entity, version, parent, name_is_shared=True)


def _environment_named(name: str) -> Raw | None:
    number = serving.environment_named(SPACE, name)
    return None if number is None else entities.find(SERVING_ENVIRONMENT.name, number, SPACE)


def _with_references(entity: Entity) -> Content:
    names = ("registeredModelId", "modelVersionId")
    return {
        **content(entity),
        **{name: entity.fields[name] for name in names if entity.fields.get(name)},
    }


def _service_content(service: Entity) -> Content:
    serves = map(entities.entity_of, serving.children(service.id, SERVE_MODEL, SPACE))
    contents_by_name = {serve.name: _with_references(serve) for serve in serves}
    return {**_with_references(service), "serves": contents_by_name}


def _write_service(environment: int, service: Entity, serves: list[Entity]) -> None:
    there = transaction_steps.find_child(environment, INFERENCE_SERVICE, service.name)
    fields = {**service.fields, "servingEnvironmentId": str(environment)}
    number = _write_served(service._replace(fields=fields), environment, there)
    for serve in serves:
        _write_served(serve, number, transaction_steps.find_child(number, SERVE_MODEL, serve.name))


def _write_served(entity: Entity, parent: int, there: Any) -> int:
    """Creates or updates one of two kinds of entities: an inference service of a serving
    environment, or a serve model of an inference service. Returns its number in the table."""
    missing = [
        name for name, value in entity.fields.items() if name.endswith("Id") and value == "0"
    ]
    if missing:
        raise SourceFailed(
            404, f"{entity.of_kind.words} {entity.name!r}: {missing[0]} was not imported"
        )
    serve = entity.kind == SERVE_MODEL.name
    if there is None:
        (number,) = numbers.take(numbers.EXECUTIONS if serve else numbers.CONTEXTS)
        made = entity._replace(id=number)
        if serve:
            serving.create_serve(made, parent, SPACE)
        else:
            model = serving.model_in(parent, int(entity.fields["registeredModelId"]), SPACE)
            serving.create_service(made, parent, SPACE, model)
        return number
    raw = entities.get(entity.kind, there.number, SPACE)
    now = entities.entity_of(raw)
    content_of_entity = _with_references(entity)
    if within(content_of_entity, _with_references(now)) != content_of_entity:
        version = {"modelVersionId": entity.fields.get("modelVersionId")}
        given = {} if serve or version["modelVersionId"] is None else version

        def alter(before: Entity) -> Entity:
            after = altering(entity)(before)
            return after._replace(fields={**after.fields, **given})

        entities.change(raw, SPACE, alter)
    return int(there.number)
