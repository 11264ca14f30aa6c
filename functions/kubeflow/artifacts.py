"""The rules of artifacts: those of a version, those of a run, and those of nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from kubeflow import finds, lists, run_artifacts
from kubeflow.answers import Call, Made
from kubeflow.versions import check_stored_name
from mlcore import errors, ids
from mlcore.auth.permissions import REGISTERED_MODEL_VERSION, RUN
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.kubeflow import merge
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import bad, missing
from mlcore.kubeflow.kinds import (
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
    file_uris,
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
    return _create(call, call.asked.of_kind(), call.asked.values)


def create_model_artifact(call: Call) -> Made:
    return _create(call, MODEL_ARTIFACT, {"state": "UNKNOWN", **call.asked.values})


def _create(call: Call, kind: Kind, values: Values) -> Made:
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    artifacts.create(entity, call.workspace, call.username)
    return Made(call.shown(file_uris.shown(entity, None, call.workspace)))


# ------------------------------------------------------------------ by id, by name


def get(call: Call) -> dict[str, Any]:
    return call.shown(_entity(_read(call)))


def get_model_artifact(call: Call) -> dict[str, Any]:
    return call.shown(_entity(_read(call, MODEL_ARTIFACT)))


def find(call: Call) -> dict[str, Any]:
    """One of those that the caller may read."""
    wanted = call.asked.artifact_kinds

    def named(parent: int, name: str) -> list[Raw]:
        return _readable(call, _named(call, parent, name, wanted))

    def external(value: str) -> list[Raw]:
        return _readable(call, artifacts.external(value, wanted, call.workspace))

    words = artifacts.WORDS if len(wanted) > 1 else MODEL_ARTIFACT.words
    return call.shown(_entity(finds.find_only(call, words, named, external)))


def _named(call: Call, parent: int, name: str, wanted: tuple[str, ...]) -> list[Raw]:
    """Those of a version or run that have a name."""
    reference, raws = artifacts.named(parent, name, wanted)
    if reference is None or reference.workspace != call.workspace:
        return []
    if raws:
        return artifacts.alive(raws)
    if reference.kind == EXPERIMENT_RUN.name:
        seen = run_artifacts.see(reference)
        return [
            raw for raw in seen if Artifact.of(raw).name == name and Artifact.of(raw).kind in wanted
        ]
    return []


def _read(call: Call, kind: Kind | None = None) -> Raw:
    return artifacts.get(call.asked.id, call.workspace, kind)


def _entity(raw: Raw) -> Entity:
    found = run_values.entities_of([raw])
    if not found:
        raise missing(artifacts.WORDS, Artifact.of(raw).number)
    return found[0]


# ------------------------------------------------------------------ changes


def update(call: Call) -> dict[str, Any]:
    """Its type must be given, and never changes."""
    return call.shown(_update(_read(call), call.asked.of_kind(), call.asked.values))


def update_model_artifact(call: Call) -> dict[str, Any]:
    """Whatever type is given."""
    values = call.asked.values
    raw = _read(call, MODEL_ARTIFACT)
    return call.shown(artifacts.change(raw, lambda entity: merge.merged(entity, values)))


def _update(raw: Raw, given: Kind, values: Values) -> Entity:
    kind = KINDS[Artifact.of(raw).kind]
    if given.name != kind.name:
        raise bad(
            f"cannot change artifact type from '{kind.artifact_type}' to "
            f"'{given.artifact_type}': artifact type is immutable"
        )
    if Artifact.of(raw).run_id is not None:
        return run_artifacts.update(raw, values)
    return artifacts.change(raw, lambda entity: merge.merged(entity, values))


def upsert_of_version(call: Call) -> dict[str, Any] | Made:
    """Three round trips for a new one: the version and the name, a number beside it; the version;
    one transaction."""
    return _upsert(call, numbers.get(call.asked.id, MODEL_VERSION.name, call.workspace))


def upsert_of_run(call: Call) -> dict[str, Any] | Made:
    return _upsert(call, numbers.get(call.asked.id, EXPERIMENT_RUN.name, call.workspace))


def _upsert(call: Call, parent: ContextRef) -> dict[str, Any] | Made:
    kind, values = call.asked.of_kind(), call.asked.values
    changed = call.asked.reference("id")
    if changed is not None:
        entity = _update(artifacts.get(changed, call.workspace), kind, values)
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
        artifacts.create_of_version(entity, version, parent)
        return file_uris.shown(entity, None, parent.workspace)

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
    return _list(call, call.asked.artifact_kinds)


def list_model_artifacts(call: Call) -> Any:
    return _list(call, (MODEL_ARTIFACT.name,))


def _list(call: Call, wanted: tuple[str, ...]) -> Any:
    workspace = call.workspace

    def found(raws: Iterable[Raw | None]) -> list[Entity]:
        """Of those that were asked for; an item of another workspace is none of them."""
        return _entities(
            call,
            [
                raw
                for raw in raws
                if raw is not None
                and Artifact.of(raw).kind in wanted
                and Artifact.of(raw).workspace == workspace
            ],
        )

    def at(given: Sequence[int]) -> list[Entity]:
        return found(entities.find_many(MODEL_ARTIFACT.name, given))

    def external(value: str) -> list[Entity]:
        given = [steps.find_external(workspace, KINDS[kind], value) for kind in wanted]
        return at([number for number in given if number is not None])

    def see(places: Sequence[Key]) -> list[Entity]:
        """The sources of MLflow's versions: they get their numbers with the versions."""
        reads = version_lists.see(places, workspace)
        return at([read.item.source_artifact for read in reads if read.item.source_artifact])

    listed = lists.Listed(
        entities.list_kind(MODEL_ARTIFACT.name),
        lambda places: at([place.number for place in places]),
        MODEL_VERSION.name if MODEL_ARTIFACT.name in wanted else "",
        see,
        external=external,
    )
    return lists.page_of(call, _schema(wanted), listed)


def _entities(call: Call, raws: list[Raw]) -> list[Entity]:
    """Those whose version or run is there, and may be read by the caller. One round trip: whose
    they are, beside what runs say of them."""
    there: list[artifacts.Owned] = []
    shown: list[Entity] = []
    calls: list[Callable[[], None]] = [
        lambda: there.extend(artifacts.owned(raws)),
        lambda: shown.extend(run_values.entities_of(raws)),
    ]
    table.parallel(calls)
    models = call.request.may_read(REGISTERED_MODEL_VERSION)
    experiments = call.request.may_read(RUN)
    readable = {
        Artifact.of(one.raw).number
        for one in there
        if (one.model is None or models(one.model))
        and (one.experiment is None or experiments(one.experiment))
    }
    return [entity for entity in shown if entity.id in readable]


def _readable(call: Call, raws: list[Raw]) -> list[Raw]:
    """Those that the caller may read: an artifact belongs to the version or run that it was made
    under, wherever else it was put."""
    if call.request.access is None or not raws:
        return raws
    models = call.request.may_read(REGISTERED_MODEL_VERSION)
    experiments = call.request.may_read(RUN)
    return [
        raw
        for raw, (model, experiment) in zip(raws, artifacts.owners(raws), strict=True)
        if (model is None or models(model)) and (experiment is None or experiments(experiment))
    ]


def list_of_version(call: Call) -> Any:
    """Of a missing version there are none."""
    number, wanted = call.asked.id, call.asked.artifact_kinds
    reference = numbers.of_kind(numbers.raw(number), MODEL_VERSION.name, call.workspace)
    raws: list[Raw] = []
    if reference is not None and artifacts.is_there(reference):
        raws = artifacts.children(number, wanted)
    return _page(call, wanted, raws, by_name=True)


def list_of_run(call: Call) -> Any:
    """Of a missing run there are none."""
    number, wanted = call.asked.id, call.asked.artifact_kinds
    reference = numbers.of_kind(numbers.raw(number), EXPERIMENT_RUN.name, call.workspace)
    raws = [] if reference is None else run_artifacts.see(reference)
    raws = [raw for raw in raws if Artifact.of(raw).kind in wanted]
    return _page(call, wanted, raws, by_name=False)


def _page(call: Call, wanted: tuple[str, ...], raws: Iterable[Raw], *, by_name: bool) -> Any:
    arguments = call.asked.arguments
    found: Iterable[Entity] = run_values.entities_of(_readable(call, list(raws)))
    if by_name:
        name, external = arguments.get("name"), arguments.get("externalId")
        found = (
            entity
            for entity in found
            if name in (None, entity.name) and external in (None, entity.external_id)
        )
    return lists.page(call, _schema(wanted), found)


def _schema(wanted: tuple[str, ...]) -> str:
    """The kind whose fields a filter on artifacts of some kinds may name."""
    return wanted[0] if len(wanted) == 1 else MODEL_ARTIFACT.name


def delete(call: Call) -> None:
    def attempt() -> None:
        artifacts.delete(artifacts.get(call.asked.id, call.workspace))

    settle(artifacts.WORDS, attempt)
