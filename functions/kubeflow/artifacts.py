"""Artifacts in Kubeflow's API: of a model version, of an experiment run, or standalone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from kubeflow import lists, lookups, run_artifacts
from kubeflow.calls import KubeflowCall
from kubeflow.versions import check_stored_name
from mlcore import errors, ids
from mlcore.auth.permissions import REGISTERED_MODEL_VERSION, RUN
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.http.kubeflow_responses import AnswerWithStatus
from mlcore.kubeflow import merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import invalid, missing_id
from mlcore.kubeflow.kinds import (
    DOC_ARTIFACT,
    EXPERIMENT_RUN,
    KINDS,
    METRIC,
    MODEL_ARTIFACT,
    MODEL_VERSION,
    PARAMETER,
    EntityKind,
)
from mlcore.models.kubeflow import Artifact, ContextRef
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.kubeflow import (
    artifacts,
    entities,
    file_uris,
    numbers,
    run_values,
    transaction_steps,
    version_lists,
    versions,
)

_CREATED_WITH_201: Final = (MODEL_ARTIFACT.name, DOC_ARTIFACT.name)
"""Kinds whose creation below a parent is answered with status 201; that of other kinds with 200."""
_OVERWRITTEN_BY_NAME: Final = (METRIC.name, PARAMETER.name)
"""Kinds whose stored artifact is overwritten by a new artifact of the same name."""


def create(call: KubeflowCall) -> AnswerWithStatus:
    """Creates a standalone Kubeflow artifact of any type."""
    return _create(call, call.parsed.of_kind(), call.parsed.values)


def create_model_artifact(call: KubeflowCall) -> AnswerWithStatus:
    return _create(call, MODEL_ARTIFACT, {"state": "UNKNOWN", **call.parsed.values})


def _create(call: KubeflowCall, kind: EntityKind, values: Values) -> AnswerWithStatus:
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    artifacts.create(entity, call.workspace, call.username)
    return AnswerWithStatus(call.shown(file_uris.shown(entity, None, call.workspace)))


# ------------------------------------------------------------------ by id, by name


def get(call: KubeflowCall) -> dict[str, Any]:
    return call.shown(_entity(_load(call)))


def get_model_artifact(call: KubeflowCall) -> dict[str, Any]:
    return call.shown(_entity(_load(call, MODEL_ARTIFACT)))


def find(call: KubeflowCall) -> dict[str, Any]:
    """Returns the Kubeflow artifact that the request names by name and parent or by external id, if
    the caller may read it. Raises ResourceDoesNotExist otherwise."""
    kinds = call.parsed.artifact_kinds

    def by_name(parent: int, name: str) -> list[Raw]:
        return _readable(call, _find_by_name(call, parent, name, kinds))

    def by_external_id(external_id: str) -> list[Raw]:
        return _readable(call, artifacts.external(external_id, kinds, call.workspace))

    words = artifacts.WORDS if len(kinds) > 1 else MODEL_ARTIFACT.words
    return call.shown(_entity(lookups.find_child_among(call, words, by_name, by_external_id)))


def _find_by_name(call: KubeflowCall, parent: int, name: str, kinds: tuple[str, ...]) -> list[Raw]:
    """Returns the artifacts of a version or run that have the name and one of the kinds."""
    reference, raws = artifacts.named(parent, name, kinds)
    if reference is None or reference.workspace != call.workspace:
        return []
    if raws:
        return artifacts.alive(raws)
    if reference.kind == EXPERIMENT_RUN.name:
        of_run = run_values.number_and_read(reference)
        return [
            raw
            for raw in of_run
            if Artifact.of(raw).name == name and Artifact.of(raw).kind in kinds
        ]
    return []


def _load(call: KubeflowCall, kind: EntityKind | None = None) -> Raw:
    return artifacts.get(call.parsed.id, call.workspace, kind)


def _entity(raw: Raw) -> Entity:
    entities_found = run_values.entities_of([raw])
    if not entities_found:
        raise missing_id(artifacts.WORDS, Artifact.of(raw).number)
    return entities_found[0]


# ------------------------------------------------------------------ changes


def update(call: KubeflowCall) -> dict[str, Any]:
    """Updates a Kubeflow artifact of any type. The body must name its type, which cannot change."""
    return call.shown(_update(_load(call), call.parsed.of_kind(), call.parsed.values))


def update_model_artifact(call: KubeflowCall) -> dict[str, Any]:
    """Updates a Kubeflow model artifact. The body's ``artifactType`` is ignored."""
    values = call.parsed.values
    raw = _load(call, MODEL_ARTIFACT)
    return call.shown(artifacts.change(raw, lambda entity: merge.merged(entity, values)))


def _update(raw: Raw, body_kind: EntityKind, values: Values) -> Entity:
    kind = KINDS[Artifact.of(raw).kind]
    if body_kind.name != kind.name:
        raise invalid(
            f"cannot change artifact type from '{kind.artifact_type}' to "
            f"'{body_kind.artifact_type}': artifact type is immutable"
        )
    if Artifact.of(raw).run_id is not None:
        return run_artifacts.update(raw, values)
    return artifacts.change(raw, lambda entity: merge.merged(entity, values))


def upsert_of_version(call: KubeflowCall) -> dict[str, Any] | AnswerWithStatus:
    """Creates, updates or overwrites an artifact of a model version. A new artifact takes three
    round trips: the version's reference; the version and, in parallel, a new number; one
    transaction. A metric or parameter takes one more, because an artifact with its name is looked
    up first."""
    return _upsert(call, numbers.get(call.parsed.id, MODEL_VERSION.name, call.workspace))


def upsert_of_run(call: KubeflowCall) -> dict[str, Any] | AnswerWithStatus:
    return _upsert(call, numbers.get(call.parsed.id, EXPERIMENT_RUN.name, call.workspace))


def _upsert(call: KubeflowCall, parent: ContextRef) -> dict[str, Any] | AnswerWithStatus:
    kind, values = call.parsed.of_kind(), call.parsed.values
    existing_id = call.parsed.reference("id")
    if existing_id is not None:
        entity = _update(artifacts.get(existing_id, call.workspace), kind, values)
        retry_on_conflict(artifacts.WORDS, lambda: artifacts.attribute(entity, parent))
        return call.shown(entity)
    if values.get("name"):
        check_stored_name(parent.number, values["name"])
    if parent.kind == EXPERIMENT_RUN.name:
        entity = run_artifacts.upsert(parent, kind, values)
    elif kind.name in _OVERWRITTEN_BY_NAME:
        entity = retry_on_conflict(artifacts.WORDS, partial(_overwrite, parent, kind, values))
    else:
        entity = _create_of_version(parent, kind, values)
    return AnswerWithStatus(call.shown(entity), 201 if kind.name in _CREATED_WITH_201 else 200)


def _create_of_version(parent: ContextRef, kind: EntityKind, values: Values) -> Entity:
    """Creates an artifact of a model version. Reads the version and takes a new number in parallel,
    then writes in one transaction; a retry reads the version again."""
    new_numbers: list[int] = []
    read_versions: list[versions.VersionOfModel | None] = []
    calls: list[Callable[[], None]] = [
        lambda: new_numbers.extend(numbers.take(numbers.ARTIFACTS)),
        lambda: read_versions.append(versions.at(parent, parent.workspace)),
    ]
    table.parallel(calls)
    entity = merge.created(kind, new_numbers[0], values, ids.now_ms())

    def attempt() -> Entity:
        version = read_versions.pop() if read_versions else versions.at(parent, parent.workspace)
        if version is None:
            raise missing_id(MODEL_VERSION.words, parent.number)
        artifacts.create_of_version(entity, version, parent)
        return file_uris.shown(entity, None, parent.workspace)

    return retry_on_conflict(artifacts.WORDS, attempt)


def _overwrite(parent: ContextRef, kind: EntityKind, values: Values) -> Entity:
    """Updates the artifact of this kind and name under the parent, or creates it. Starts over if
    another request creates it meanwhile."""
    name = values.get("name")
    existing = transaction_steps.find_child(parent.number, kind, name) if name else None
    if existing is not None:
        raw = artifacts.get(existing.number, parent.workspace, kind)
        return artifacts.change(raw, lambda entity: merge.merged(entity, values))
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    try:
        artifacts.create_under(entity, parent)
    except errors.ResourceConflict:
        if name and transaction_steps.find_child(parent.number, kind, name) is not None:
            return _overwrite(parent, kind, values)
        raise
    return entity


# ------------------------------------------------------------------ lists


def list_all(call: KubeflowCall) -> Any:
    return _list(call, call.parsed.artifact_kinds)


def list_model_artifacts(call: KubeflowCall) -> Any:
    return _list(call, (MODEL_ARTIFACT.name,))


def _list(call: KubeflowCall, kinds: tuple[str, ...]) -> Any:
    workspace = call.workspace

    def load(numbers: Sequence[int]) -> list[Entity]:
        """Reads the artifacts with these numbers, except those of other kinds or workspaces, and
        those that the caller may not read."""
        raws = entities.find_many(MODEL_ARTIFACT.name, numbers)
        return _entities(
            call,
            [
                raw
                for raw in raws
                if Artifact.of(raw).kind in kinds and Artifact.of(raw).workspace == workspace
            ],
        )

    def by_external_id(external_id: str) -> list[Entity]:
        numbers_found = [
            transaction_steps.find_external(workspace, KINDS[kind], external_id) for kind in kinds
        ]
        return load([number for number in numbers_found if number is not None])

    def assign_numbers(keys: Sequence[Key]) -> list[Entity]:
        """Gives a number to each model version that MLflow created and that has none, and returns
        their source artifacts, which get numbers together with the versions."""
        records = version_lists.number_and_read(keys, workspace)
        return load(
            [record.item.source_artifact for record in records if record.item.source_artifact]
        )

    source = lists.ListSource(
        entities.list_kind(MODEL_ARTIFACT.name),
        lambda places: load([position.number for position in places]),
        MODEL_VERSION.name if MODEL_ARTIFACT.name in kinds else "",
        assign_numbers,
        find_by_external_id=by_external_id,
    )
    return lists.page_from_indexes(call, _filter_kind(kinds), source)


def _entities(call: KubeflowCall, raws: list[Raw]) -> list[Entity]:
    """Converts items to entities. Omits those whose version or run is deleted or not readable by
    the caller. Takes one round trip: the owners and, in parallel, the values that runs hold."""
    owned: list[artifacts.Owned] = []
    all_entities: list[Entity] = []
    calls: list[Callable[[], None]] = [
        lambda: owned.extend(artifacts.owned(raws)),
        lambda: all_entities.extend(run_values.entities_of(raws)),
    ]
    table.parallel(calls)
    may_read_model = call.request.may_read(REGISTERED_MODEL_VERSION)
    may_read_experiment = call.request.may_read(RUN)
    readable = {
        Artifact.of(artifact.raw).number
        for artifact in owned
        if (artifact.model is None or may_read_model(artifact.model))
        and (artifact.experiment is None or may_read_experiment(artifact.experiment))
    }
    return [entity for entity in all_entities if entity.id in readable]


def _readable(call: KubeflowCall, raws: list[Raw]) -> list[Raw]:
    """Returns the artifacts that the caller may read. The version or run under which an artifact
    was created decides, even if it was added to others later."""
    if call.request.access is None or not raws:
        return raws
    may_read_model = call.request.may_read(REGISTERED_MODEL_VERSION)
    may_read_experiment = call.request.may_read(RUN)
    return [
        raw
        for raw, (model, experiment) in zip(raws, artifacts.owners(raws), strict=True)
        if (model is None or may_read_model(model))
        and (experiment is None or may_read_experiment(experiment))
    ]


def list_of_version(call: KubeflowCall) -> Any:
    """Lists the Kubeflow artifacts of a model version. The list of a missing version is empty."""
    number, kinds = call.parsed.id, call.parsed.artifact_kinds
    reference = numbers.of_kind(numbers.raw(number), MODEL_VERSION.name, call.workspace)
    raws: list[Raw] = []
    if reference is not None and artifacts.is_there(reference):
        raws = artifacts.children(number, kinds)
    readable = run_values.entities_of(_readable(call, raws))
    return lists.page(call, _filter_kind(kinds), lists.named_in_query(call, readable))


def list_of_run(call: KubeflowCall) -> Any:
    """Lists the artifacts of an experiment run. The list of a missing run is empty. Unlike for a
    model version, ``name`` and ``externalId`` in the query are ignored."""
    number, kinds = call.parsed.id, call.parsed.artifact_kinds
    reference = numbers.of_kind(numbers.raw(number), EXPERIMENT_RUN.name, call.workspace)
    raws = [] if reference is None else run_values.number_and_read(reference)
    raws = [raw for raw in raws if Artifact.of(raw).kind in kinds]
    readable = run_values.entities_of(_readable(call, raws))
    return lists.page(call, _filter_kind(kinds), readable)


def _filter_kind(kinds: tuple[str, ...]) -> str:
    """Returns the kind whose fields a filter may use in a list of artifacts of these kinds."""
    return kinds[0] if len(kinds) == 1 else MODEL_ARTIFACT.name


def delete(call: KubeflowCall) -> None:
    def attempt() -> None:
        artifacts.delete(artifacts.get(call.parsed.id, call.workspace))

    retry_on_conflict(artifacts.WORDS, attempt)
