"""The rules of artifacts: those of a version, those of a run, and those of nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from kubeflow import finds, lists, run_artifacts
from kubeflow.answers import Call, Made
from kubeflow.versions import check_stored_name
from mlcore import errors, ids
from mlcore.auth.permissions import EXPERIMENT, REGISTERED_MODEL
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.kubeflow import body, merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import bad, missing
from mlcore.kubeflow.kinds import (
    ARTIFACT_KINDS,
    ARTIFACTS,
    DOC_ARTIFACT,
    EXPERIMENT_RUN,
    KINDS,
    METRIC,
    MODEL_ARTIFACT,
    MODEL_VERSION,
    PARAMETER,
    Kind,
)
from mlcore.models.kubeflow import Artifact, ContextRef
from mlcore.repos.kubeflow import (
    artifacts,
    entities,
    numbers,
    run_values,
    steps,
    version_lists,
    versions,
)
from mlcore.settle import settle

_MADE_ONCE: Final = (MODEL_ARTIFACT.name, DOC_ARTIFACT.name)
"""Whose creation under a parent is answered with 201."""
_IN_PLACE: Final = (METRIC.name, PARAMETER.name)
"""What is written over by name."""


def create(call: Call) -> Made:
    """A standalone artifact of any type."""
    data = call.json()
    kind = body.artifact_kind(data)
    return _create(call, kind, body.values_of(kind, data, body.CREATE))


def create_model_artifact(call: Call) -> Made:
    values = body.values_of(MODEL_ARTIFACT, call.json(), body.CREATE)
    return _create(call, MODEL_ARTIFACT, {"state": "UNKNOWN", **values})


def _create(call: Call, kind: Kind, values: Values) -> Made:
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    artifacts.create(entity, call.workspace, call.username)
    return Made(call.shown(entity))


# ------------------------------------------------------------------ by id, by name


def get(call: Call) -> dict[str, Any]:
    return call.shown(_entity(_read(call)))


def get_model_artifact(call: Call) -> dict[str, Any]:
    return call.shown(_entity(_read(call, MODEL_ARTIFACT)))


def find(call: Call) -> dict[str, Any]:
    return _find(call, ARTIFACT_KINDS)


def find_model_artifact(call: Call) -> dict[str, Any]:
    return _find(call, (MODEL_ARTIFACT.name,))


def _find(call: Call, wanted: tuple[str, ...]) -> dict[str, Any]:
    def named(parent: int, name: str) -> list[Raw]:
        return _named(call, parent, name, wanted)

    def external(value: str) -> list[Raw]:
        given = (steps.find_external(call.workspace, KINDS[kind], value) for kind in wanted)
        raws = (artifacts.find(one, call.workspace) for one in given if one is not None)
        return [raw for raw in raws if raw is not None]

    words = artifacts.WORDS if len(wanted) > 1 else MODEL_ARTIFACT.words
    return call.shown(_entity(finds.find_only(call, words, named, external)))


def _named(call: Call, parent: int, name: str, wanted: tuple[str, ...]) -> list[Raw]:
    """Those of a version or run that have a name."""
    reference, raws = artifacts.named(parent, name, wanted)
    if reference is None or reference.workspace != call.workspace:
        return []
    if raws:
        return artifacts.alive(raws)
    if reference.kind == MODEL_VERSION.name and MODEL_ARTIFACT.name in wanted:
        raw = artifacts.see_source(reference)
        return [raw] if raw is not None and Artifact.of(raw).name == name else []
    if reference.kind == EXPERIMENT_RUN.name:
        seen = run_artifacts.see(reference)
        return [
            raw for raw in seen if Artifact.of(raw).name == name and Artifact.of(raw).kind in wanted
        ]
    return []


def _read(call: Call, kind: Kind | None = None) -> Raw:
    words = artifacts.WORDS if kind is None else kind.words
    return artifacts.get(call.number("id", words), call.workspace, kind)


def _entity(raw: Raw) -> Entity:
    found = run_values.entities_of([raw])
    if not found:
        raise missing(artifacts.WORDS, Artifact.of(raw).number)
    return found[0]


# ------------------------------------------------------------------ changes


def update(call: Call) -> dict[str, Any]:
    """Its type must be given, and never changes."""
    data = call.json()
    given = body.artifact_kind(data)
    raw = _read(call)
    return call.shown(_update(call, raw, given, data))


def update_model_artifact(call: Call) -> dict[str, Any]:
    """Whatever type is given."""
    values = body.values_of(MODEL_ARTIFACT, call.json(), body.UPDATE)
    raw = _read(call, MODEL_ARTIFACT)
    return call.shown(artifacts.change(raw, lambda entity: merge.merged(entity, values)))


def _update(call: Call, raw: Raw, given: Kind, data: dict[str, Any]) -> Entity:
    kind = KINDS[Artifact.of(raw).kind]
    if given.name != kind.name:
        raise bad(
            f"cannot change artifact type from '{kind.artifact_type}' to "
            f"'{given.artifact_type}': artifact type is immutable"
        )
    values = body.values_of(kind, data, body.UPDATE)
    if Artifact.of(raw).run_id is not None:
        return run_artifacts.update(raw, values)
    return artifacts.change(raw, lambda entity: merge.merged(entity, values))


def upsert_of_version(call: Call) -> dict[str, Any] | Made:
    """Three round trips for a new one: the version and the name, a number beside it; the version;
    one transaction."""
    parent = call.number("id", MODEL_VERSION.words)
    return _upsert(call, numbers.get(parent, MODEL_VERSION.name, call.workspace))


def upsert_of_run(call: Call) -> dict[str, Any] | Made:
    parent = call.number("id", EXPERIMENT_RUN.words)
    return _upsert(call, numbers.get(parent, EXPERIMENT_RUN.name, call.workspace))


def _upsert(call: Call, parent: ContextRef) -> dict[str, Any] | Made:
    data = call.json()
    kind = body.artifact_kind(data)
    values = body.values_of(kind, data, body.WHOLE)
    if values.get("id"):
        number = body.number(values["id"], artifacts.WORDS)
        raw = artifacts.get(number, call.workspace)
        entity = _update(call, raw, kind, data)
        settle(artifacts.WORDS, lambda: artifacts.attribute(entity, parent))
        return call.shown(entity)
    if values.get("name"):
        check_stored_name(parent.number, values["name"])
    if parent.kind == EXPERIMENT_RUN.name:
        entity = run_artifacts.upsert(parent, kind, values)
    elif kind.name in _IN_PLACE:
        entity = settle(artifacts.WORDS, partial(_in_place, parent, kind, values))
    else:
        entity = _create_of_version(parent, kind, values)
    return Made(call.shown(entity), 201 if kind.name in _MADE_ONCE else 200)


def _create_of_version(parent: ContextRef, kind: Kind, values: Values) -> Entity:
    """The version and a number side by side, then one transaction."""
    given: list[int] = []
    read: list[versions.Record | None] = []
    calls: list[Callable[[], None]] = [
        lambda: given.extend(numbers.take(numbers.ARTIFACTS)),
        lambda: read.append(versions.at(parent, parent.workspace)),
    ]
    table.parallel(calls)
    entity = merge.created(kind, given[0], values, ids.now_ms())

    def attempt() -> Entity:
        version = read.pop() if read else versions.at(parent, parent.workspace)
        if version is None:
            raise missing(MODEL_VERSION.words, parent.number)
        unseen = version.item.source and version.item.source_artifact is None
        if kind.name == MODEL_ARTIFACT.name and unseen:
            artifacts.see_source(parent)
            version = versions.at(parent, parent.workspace) or version
        artifacts.create_of_version(entity, version, parent)
        return entity

    return settle(artifacts.WORDS, attempt)


def _in_place(parent: ContextRef, kind: Kind, values: Values) -> Entity:
    name = values.get("name")
    known = steps.find_child(parent.number, kind, name) if name else None
    if known is not None:
        raw = artifacts.get(known.number, parent.workspace, kind)
        return artifacts.change(raw, lambda entity: merge.merged(entity, values))
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    try:
        artifacts.create_under(entity, parent)
    except errors.ResourceConflict:
        if name and steps.find_child(parent.number, kind, name) is not None:
            return _in_place(parent, kind, values)
        raise
    return entity


# ------------------------------------------------------------------ lists


def list_all(call: Call) -> Any:
    wanted = _wanted(call)
    kind = wanted[0] if len(wanted) == 1 else MODEL_ARTIFACT.name
    return lists.page_by_number(call, kind, partial(_listed, call, wanted))


def list_model_artifacts(call: Call) -> Any:
    wanted = (MODEL_ARTIFACT.name,)
    return lists.page_by_number(call, wanted[0], partial(_listed, call, wanted))


def _listed(call: Call, wanted: tuple[str, ...], above: int) -> Iterator[Entity]:
    """By number; then what Kubeflow sees for the first time: the sources of MLflow's versions."""
    seen: set[int] = set()
    chunk: list[Raw] = []
    for raw in entities.listed(call.workspace, MODEL_ARTIFACT.name, above):
        seen.add(Artifact.of(raw).number)
        if Artifact.of(raw).kind in wanted:
            chunk.append(raw)
        if len(chunk) == entities.LISTED_TOGETHER:
            yield from _readable(call, chunk)
            chunk = []
    yield from _readable(call, chunk)
    if MODEL_ARTIFACT.name not in wanted:
        return
    late = []
    for version in version_lists.listed(call.workspace):
        if version.item.source and version.item.source_artifact is None:
            source = artifacts.see_source(versions.reference_of(version))
            if source is not None and Artifact.of(source).number not in seen:
                late.append(source)
    found = [each for each in _readable(call, late) if each.id > above]
    yield from sorted(found, key=lambda entity: entity.id)


def _readable(call: Call, raws: list[Raw]) -> list[Entity]:
    """Those whose version or run is there, and may be read by the caller."""
    there = artifacts.alive(raws)
    if call.request.access is not None:
        models = call.request.may_read(REGISTERED_MODEL)
        experiments = call.request.may_read(EXPERIMENT)
        owners = artifacts.owners(there)
        there = [
            raw
            for raw, (model, experiment) in zip(there, owners, strict=True)
            if (model is None or models(model)) and (experiment is None or experiments(experiment))
        ]
    return run_values.entities_of(there)


def list_of_version(call: Call) -> Any:
    """Of a missing version there are none."""
    wanted = _wanted(call)
    number = call.number("id", MODEL_VERSION.words)
    reference = numbers.of_kind(numbers.raw(number), MODEL_VERSION.name, call.workspace)
    raws: list[Raw] = []
    if reference is not None:
        if MODEL_ARTIFACT.name in wanted:
            artifacts.see_source(reference)
        if artifacts.is_there(reference):
            raws = artifacts.children(number, wanted)
    return _page(call, wanted, raws, by_name=True)


def list_of_run(call: Call) -> Any:
    """Of a missing run there are none."""
    wanted = _wanted(call)
    number = call.number("id", EXPERIMENT_RUN.words)
    reference = numbers.of_kind(numbers.raw(number), EXPERIMENT_RUN.name, call.workspace)
    raws = [] if reference is None else run_artifacts.see(reference)
    raws = [raw for raw in raws if Artifact.of(raw).kind in wanted]
    return _page(call, wanted, raws, by_name=False)


def _page(call: Call, wanted: tuple[str, ...], raws: Iterable[Raw], *, by_name: bool) -> Any:
    arguments = call.arguments()
    found: Iterable[Entity] = run_values.entities_of(list(raws))
    if by_name:
        name, external = arguments.get("name"), arguments.get("externalId")
        found = (
            entity
            for entity in found
            if name in (None, entity.name) and external in (None, entity.external_id)
        )
    kind = wanted[0] if len(wanted) == 1 else MODEL_ARTIFACT.name
    return lists.page(call, kind, found)


def _wanted(call: Call) -> tuple[str, ...]:
    """The kinds that artifactType asks for. Raises InvalidParameterValue."""
    given = call.request.arguments().get("artifactType")
    if not given:
        return ARTIFACT_KINDS
    kind = ARTIFACTS.get(given)
    if kind is None:
        raise bad(f"invalid artifactType: {given[:50]}")
    return (kind.name,)


def delete(call: Call) -> None:
    words = artifacts.WORDS
    number = call.number("id", words)

    def attempt() -> None:
        artifacts.delete(artifacts.get(number, call.workspace))

    settle(words, attempt)
