"""Artifacts of an experiment run in Kubeflow's API: metrics with their history, parameters, data
sets and files. MLflow's run holds the values of metrics, parameters and data sets; the artifact's
item holds the remaining fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from kubeflow import lists
from kubeflow.calls import KubeflowCall
from mlcore import errors, ids
from mlcore.db.expression import Raw
from mlcore.entities.metrics import Metric, stored_value
from mlcore.entities.runs import Dataset
from mlcore.kubeflow import body, merge, not_a_number
from mlcore.kubeflow.body import Values
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import invalid, missing_id
from mlcore.kubeflow.kinds import DATA_SET, EXPERIMENT_RUN, METRIC, PARAMETER, EntityKind
from mlcore.limits.run_datasets import MAX_DIGEST_LENGTH
from mlcore.models.kubeflow import Artifact, ContextRef
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.kubeflow import artifacts, numbers, run_values, runs

_HELD_BY_MLFLOW = frozenset(("value", "timestamp", "step"))


def upsert(parent: ContextRef, kind: EntityKind, values: Values) -> Entity:
    """Creates an artifact of a run and returns it. In Kubeflow's API metrics and parameters are
    artifacts, too: one whose name exists is overwritten. Other artifacts are new; except for data
    sets, a name that exists raises ResourceConflict."""
    run = runs.at(parent)
    if run is None:
        raise missing_id(EXPERIMENT_RUN.words, parent.number)
    if kind.name == METRIC.name:
        values = not_a_number.unmark_nan(values)
    if kind.name in (METRIC.name, PARAMETER.name):
        return _upsert_value(parent, run, kind, values)
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    key = run_values.log_dataset(run, _dataset(entity)) if kind.name == DATA_SET.name else None
    run_values.create(entity, parent, run, key)
    return _shown(artifacts.get(number, parent.workspace))


def _dataset(entity: Entity) -> Dataset:
    """Converts a data set artifact to MLflow's dataset. A missing or too long digest is replaced by
    a digest of all fields."""
    fields = entity.fields
    digest = fields.get("digest") or ""
    if not digest or len(digest) > MAX_DIGEST_LENGTH:
        text = "\0".join(f"{name}={fields[name]}" for name in sorted(fields))
        digest = blake2b(text.encode(), digest_size=4).hexdigest()
    return Dataset(
        entity.name,
        digest,
        fields.get("sourceType", ""),
        fields.get("source") or fields.get("uri") or "",
        fields.get("schema"),
        fields.get("profile"),
    )


def _upsert_value(
    parent: ContextRef, run: runs.NumberedRun, kind: EntityKind, values: Values
) -> Entity:
    """Creates or overwrites a metric or parameter. Writes the value to the run first, then the
    other fields to the artifact."""
    name = values.get("name") or ""
    if not name:
        (number,) = numbers.take(numbers.ARTIFACTS)
        name = merge.created(kind, number, values, 0).name
        values = {**values, "name": name}
    _log(run, kind, name, values)

    def attempt() -> Raw:
        raw = run_values.find(parent, kind.name, name)
        if raw is None:
            _create_artifact(parent, run, kind, values)
            raw = run_values.find(parent, kind.name, name)
        elif _has_other_fields(values):
            others = {key: value for key, value in values.items() if key not in _HELD_BY_MLFLOW}
            artifacts.change(raw, lambda entity: merge.merged(entity, others))
            raw = run_values.find(parent, kind.name, name)
        if raw is None:
            raise missing_id(EXPERIMENT_RUN.words, parent.number)
        return raw

    return _shown(retry_on_conflict(kind.words, attempt))


def _has_other_fields(values: Values) -> bool:
    """Returns whether a request sets fields of a metric or parameter that MLflow's run cannot
    store, apart from name and type."""
    return not _HELD_BY_MLFLOW.union(("name", "artifactType")).issuperset(values)


def _create_artifact(
    parent: ContextRef, run: runs.NumberedRun, kind: EntityKind, values: Values
) -> None:
    """Creates the artifact item of a metric or parameter whose value MLflow's run stores. Does
    nothing if another request has created it meanwhile."""
    (number,) = numbers.take(numbers.ARTIFACTS)
    entity = merge.created(kind, number, values, ids.now_ms())
    fields = {key: value for key, value in entity.fields.items() if key not in _HELD_BY_MLFLOW}
    try:
        run_values.create(entity._replace(fields=fields), parent, run, entity.name)
    except errors.ResourceConflict:
        if run_values.find(parent, kind.name, entity.name) is None:
            raise


def _log(run: runs.NumberedRun, kind: EntityKind, name: str, values: Values) -> None:
    """Writes the value of a metric or parameter to MLflow's run."""
    if kind.name == PARAMETER.name:
        if "value" in values or name not in run.run.document.texts("params"):
            run_values.set_param(run, name, values.get("value", ""))
        return
    time = int(values.get("timestamp") or ids.now_ms())
    value = stored_value(values["value"])
    run_values.log_metric(run, Metric(name, value, time, values.get("step", 0)))


def update(raw: Raw, values: Values) -> Entity:
    """Updates an artifact of an experiment run. The value, timestamp and step of a metric, and the
    value of a parameter, are written to MLflow's run, all other fields to the artifact's item."""
    item = Artifact.of(raw)
    run = runs.get(item.parent or 0, item.workspace)
    entity = _shown(raw)
    if item.kind == METRIC.name:
        values = not_a_number.unmark_nan(values)
    if not _HELD_BY_MLFLOW.isdisjoint(values) and item.kind != DATA_SET.name:
        fields = {**entity.fields, **values}
        if item.kind == METRIC.name and "value" not in fields:
            raise invalid("required field 'value' is zero value.")
        _log(run, entity.of_kind, item.key or "", fields)
    held_by_run = () if item.kind == DATA_SET.name else _HELD_BY_MLFLOW
    others = {key: value for key, value in values.items() if key not in held_by_run}
    artifacts.change(raw, lambda before: merge.merged(before, others))
    return _shown(artifacts.get(item.number, item.workspace))


def _shown(raw: Raw) -> Entity:
    entities = run_values.entities_of([raw])
    if not entities:
        raise missing_id(artifacts.WORDS, Artifact.of(raw).number)
    return entities[0]


# ------------------------------------------------------------------ history


def history_of_run(call: KubeflowCall) -> Any:
    number = call.parsed.id
    return _history(call, [runs.get(number, call.workspace)])


def history_of_all(call: KubeflowCall) -> Any:
    return _history(call, runs.listed(call.workspace))


def _history(call: KubeflowCall, records: Iterable[runs.NumberedRun]) -> Any:
    """Returns a page of the metric points of the runs. The query's ``name`` and ``stepIds`` select
    points. A point has no id; its position in the list takes that role in page tokens."""
    arguments = call.parsed.arguments
    steps = _steps(arguments.get("stepIds", ""))
    name = arguments.get("name", "")

    def points() -> Iterator[Entity]:
        position = 0
        for run in records:
            for point in run_values.history_of(run, name, steps):
                position += 1
                yield point._replace(id=position)

    page = lists.page(call, METRIC.name, points())
    for item in page["items"]:
        del item["id"]
    return page


def _steps(text: str) -> list[int]:
    """Parses a comma-separated list of steps. Empty text means all steps."""
    if not text:
        return []
    return [int(body.number(step.strip(), "step")) for step in text.split(",")]
