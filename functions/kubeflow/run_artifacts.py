"""The rules of a run's artifacts: metrics with their history, parameters, data sets and files."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from kubeflow import lists
from kubeflow.answers import Call
from mlcore import errors, ids
from mlcore.db.expression import Raw
from mlcore.entities.metrics import Metric, stored_value
from mlcore.entities.runs import Dataset
from mlcore.kubeflow import body, merge, not_a_number
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import bad, missing
from mlcore.kubeflow.kinds import DATA_SET, EXPERIMENT_RUN, METRIC, PARAMETER, Kind
from mlcore.limits.datasets import MAX_DIGEST_LENGTH
from mlcore.models.kubeflow import Artifact, ContextRef
from mlcore.repos.kubeflow import artifacts, numbers, run_values, runs
from mlcore.settle import settle

_HELD_BY_MLFLOW = frozenset(("value", "timestamp", "step"))


def see(reference: ContextRef) -> list[Raw]:
    return run_values.see(reference)


def upsert(parent: ContextRef, kind: Kind, values: Values) -> Entity:
    """A metric or parameter is written over by its name; all else is new."""
    read = runs.at(parent)
    if read is None:
        raise missing(EXPERIMENT_RUN.words, parent.number)
    if kind.name == METRIC.name:
        values = not_a_number.understood(values)
    if kind.name in (METRIC.name, PARAMETER.name):
        return _value(parent, read, kind, values)
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    key = run_values.log_dataset(read, _dataset(entity)) if kind.name == DATA_SET.name else None
    run_values.create(entity, parent, read, key)
    return _shown(artifacts.get(number, parent.workspace))


def _dataset(entity: Entity) -> Dataset:
    """As MLflow knows it; without a digest, one of what it says."""
    told = entity.fields
    digest = told.get("digest") or ""
    if not digest or len(digest) > MAX_DIGEST_LENGTH:
        said = "\0".join(f"{name}={told[name]}" for name in sorted(told))
        digest = blake2b(said.encode(), digest_size=4).hexdigest()
    return Dataset(
        entity.name,
        digest,
        told.get("sourceType", ""),
        told.get("source") or told.get("uri") or "",
        told.get("schema"),
        told.get("profile"),
    )


def _value(parent: ContextRef, read: runs.Record, kind: Kind, values: Values) -> Entity:
    """The run first, which has the value; then the artifact, which has the rest."""
    name = values.get("name") or ""
    if not name:
        (number,) = numbers.take(numbers.ARTIFACTS)
        name = merge.created(kind, number, values, 0).name
        values = {**values, "name": name}
    _log(read, kind, name, values)

    def attempt() -> Raw:
        raw = run_values.find(parent, kind.name, name)
        if raw is None:
            _make(parent, read, kind, values)
            raw = run_values.find(parent, kind.name, name)
        elif _beyond_value(values):
            rest = {key: value for key, value in values.items() if key not in _HELD_BY_MLFLOW}
            artifacts.change(raw, lambda entity: merge.merged(entity, rest))
            raw = run_values.find(parent, kind.name, name)
        if raw is None:
            raise missing(EXPERIMENT_RUN.words, parent.number)
        return raw

    return _shown(settle(kind.words, attempt))


def _beyond_value(values: Values) -> bool:
    return not _HELD_BY_MLFLOW.union(("name", "artifactType")).issuperset(values)


def _make(parent: ContextRef, read: runs.Record, kind: Kind, values: Values) -> None:
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    fields = {key: value for key, value in entity.fields.items() if key not in _HELD_BY_MLFLOW}
    try:
        run_values.create(entity._replace(fields=fields), parent, read, entity.name)
    except errors.ResourceConflict:
        if run_values.find(parent, kind.name, entity.name) is None:
            raise


def _log(read: runs.Record, kind: Kind, name: str, values: Values) -> None:
    if kind.name == PARAMETER.name:
        if "value" in values or name not in read.run.document.texts("params"):
            run_values.set_param(read, name, values.get("value", ""))
        return
    time = int(values.get("timestamp") or ids.now_ms())
    value = stored_value(values["value"])
    run_values.log_metric(read, Metric(name, value, time, values.get("step", 0)))


def update(raw: Raw, values: Values) -> Entity:
    """A value of MLflow's is changed where it is."""
    item = Artifact.of(raw)
    read = runs.get(item.parent or 0, item.workspace)
    entity = _shown(raw)
    if item.kind == METRIC.name:
        values = not_a_number.understood(values)
    if not _HELD_BY_MLFLOW.isdisjoint(values) and item.kind != DATA_SET.name:
        told = {**entity.fields, **values}
        if item.kind == METRIC.name and "value" not in told:
            raise bad("required field 'value' is zero value.")
        _log(read, entity.of_kind, item.key or "", told)
    held = () if item.kind == DATA_SET.name else _HELD_BY_MLFLOW
    rest = {key: value for key, value in values.items() if key not in held}
    artifacts.change(raw, lambda before: merge.merged(before, rest))
    return _shown(artifacts.get(item.number, item.workspace))


def _shown(raw: Raw) -> Entity:
    found = run_values.entities_of([raw])
    if not found:
        raise missing(artifacts.WORDS, Artifact.of(raw).number)
    return found[0]


# ------------------------------------------------------------------ history


def history_of_run(call: Call) -> Any:
    number = call.asked.id
    return _history(call, [runs.get(number, call.workspace)])


def history_of_all(call: Call) -> Any:
    return _history(call, runs.listed(call.workspace))


def _history(call: Call, reads: Any) -> Any:
    arguments = call.asked.arguments
    wanted = _steps(arguments.get("stepIds", ""))
    name = arguments.get("name", "")

    def points() -> Iterator[Entity]:
        place = 0
        for read in reads:
            for point in run_values.history_of(read, name, wanted):
                place += 1
                yield point._replace(id=place)

    page = lists.page(call, METRIC.name, points())
    for item in page["items"]:
        del item["id"]
    return page


def _steps(text: str) -> list[int]:
    if not text:
        return []
    return [int(body.number(each.strip(), "step")) for each in text.split(",")]
