"""Metrics, parameters and data sets of runs, which Kubeflow shows as artifacts. MLflow's run has
the values; an artifact adds Kubeflow's number (integer id) and the fields that MLflow lacks.

Values that MLflow logged get their numbers when the run's artifacts are first listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from mlcore import errors, reserved_tags
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import TransactionFailed, table
from mlcore.entities.metrics import Metric, recency
from mlcore.entities.runs import Dataset
from mlcore.ids import new_ulid
from mlcore.kubeflow import kinds
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import DATA_SET, KINDS, METRIC, PARAMETER
from mlcore.models.kubeflow import Artifact, ContextRef
from mlcore.models.runs import Run as RunItem
from mlcore.repos import document
from mlcore.repos.kubeflow import artifacts, entities, numbers, runs, tags, transaction_steps
from mlcore.repos.kubeflow.transaction_steps import TransactionStep
from mlcore.repos.runs.core import datasets, run_writes
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.core import runs as mlflow_runs
from mlcore.repos.runs.core.runs import StoredRun as RunRecord
from mlcore.repos.runs.history import metric_history, rewinds
from mlcore.repos.runs.history.latest_point_text import newer_texts, parse_latest
from mlcore.repos.runs.history.rewinds import RewoundMeanwhile

TOGETHER: Final = 40
"""Artifacts numbered in one transaction; each takes two items."""


class RunValue(NamedTuple):
    """A metric, parameter or data set of a run that MLflow logged, as Kubeflow shows it."""

    kind: str
    key: str
    name: str
    time: int
    fields: Mapping[str, Any]

    @property
    def child(self) -> str:
        """The name under which this value (a metric, param or data set of a run) is listed among
        the run's Kubeflow artifacts; for a data set a unique key, because several data sets may
        have the same name."""
        return f"{artifacts.UNNAMED}{self.key}" if self.kind == DATA_SET.name else self.name


def number_and_read(reference: ContextRef) -> list[Raw]:
    """Returns the items of all artifacts of a run; none if the run does not exist. Values that
    MLflow logged and that have no artifact item yet get one, with a number, first. A few more
    requests if there are such values.

    Args:
        reference: the item that maps the run's Kubeflow number to MLflow's item.
    """
    read = runs.at(reference)
    if read is None:
        return []
    known = artifacts.children(reference.number, kinds.ARTIFACT_KINDS)
    there = {(Artifact.of(raw).kind, Artifact.of(raw).key) for raw in known}
    new = [each for each in _logged(read.run) if (each.kind, each.key) not in there]
    if not new:
        return known
    _number(new, reference, read)
    return artifacts.children(reference.number, kinds.ARTIFACT_KINDS)


def _logged(run: RunRecord) -> Iterator[RunValue]:
    for key, metric in mlflow_runs.metrics(run.document).items():
        yield RunValue(METRIC.name, key, key, metric.timestamp, {})
    for key in run.document.texts("params"):
        yield RunValue(PARAMETER.name, key, key, run.item.start_time, {})
    inputs = run_children.dataset_inputs(run.document.texts("inputs"))
    experiment_id = run.experiment.experiment_id
    known = datasets.of_runs([mlflow_runs.outline(run)])
    for input in inputs:
        dataset = known.get(datasets.Identity(experiment_id, input.name, input.digest))
        fields = {} if dataset is None else _fields_of(dataset)
        key = run_children.input_key(input.name, input.digest)
        yield RunValue(DATA_SET.name, key, input.name, run.item.start_time, fields)


def _fields_of(dataset: Dataset) -> dict[str, str]:
    fields = {
        "digest": dataset.digest,
        "sourceType": dataset.source_type,
        "source": dataset.source,
        "schema": dataset.schema,
        "profile": dataset.profile,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _number(new: Sequence[RunValue], reference: ContextRef, read: runs.NumberedRun) -> None:
    given = iter(numbers.take(numbers.ARTIFACTS, len(new)))
    waiting = iter(zip(new, given, strict=True))
    while chunk := list(islice(waiting, TOGETHER)):
        try:
            table.transact(
                [step.operation for pair in chunk for step in _numbering(*pair, reference, read)],
                token=new_ulid(),
            )
        except TransactionFailed:
            # Another request assigns numbers at the same time: write them one by one.
            for pair in chunk:
                operations = [step.operation for step in _numbering(*pair, reference, read)]
                try:
                    table.transact(operations, token=new_ulid())
                except TransactionFailed:
                    continue


def _numbering(
    logged_value: RunValue, number: int, reference: ContextRef, read: runs.NumberedRun
) -> list[TransactionStep]:
    entity = Entity(
        kind=logged_value.kind,
        id=number,
        name=logged_value.name,
        create_time=logged_value.time,
        update_time=logged_value.time,
        description=None,
        external_id=None,
        properties={},
        fields={**logged_value.fields, "state": tags.LIVE, **_of_run(reference)},
    )
    return [
        *entities.creation(
            entity, reference.workspace, **_places(reference, read, logged_value.key)
        ),
        artifacts.link(entity, reference, logged_value.child),
    ]


def _of_run(reference: ContextRef) -> dict[str, str]:
    return {"experimentId": str(reference.parent), "experimentRunId": str(reference.number)}


def _places(reference: ContextRef, read: runs.NumberedRun, key: str) -> dict[str, Any]:
    return {
        "parent": reference.number,
        "run_id": read.run.run_id,
        "experiment_id": read.run.experiment.experiment_id,
        "key": key,
    }


# ------------------------------------------------------------------ values


def entities_of(raws: Sequence[Raw]) -> list[Entity]:
    """Returns Kubeflow artifacts with their values from MLflow's runs, omitting those whose value
    MLflow no longer has; one BatchGetItem per hundred runs."""
    wanted = {
        keys.run(item.experiment_id or "", item.run_id): None
        for item in map(Artifact.of, raws)
        if item.run_id is not None and item.kind != DATA_SET.name
    }
    texts = {RunItem.of(raw).run_id: _texts(raw) for raw in table.batch_get(list(wanted)) if raw}
    listed: list[Entity] = []
    for raw in raws:
        item = Artifact.of(raw)
        entity: Entity | None = entities.entity_of(raw)
        if entity is not None and item.run_id is not None and item.kind != DATA_SET.name:
            entity = _valued(entity, item.key or "", texts.get(item.run_id, {}))
        if entity is not None:
            listed.append(entity)
    return listed


def _texts(raw: Raw) -> dict[str, dict[str, str]]:
    item = RunItem.of(raw)
    loaded = document.load(raw, (item.experiment_id, item.run_id), run_children.MAPS)
    return {METRIC.name: loaded.texts("metrics"), PARAMETER.name: loaded.texts("params")}


def _valued(entity: Entity, key: str, texts: Mapping[str, Mapping[str, str]]) -> Entity | None:
    text = texts.get(entity.kind, {}).get(key)
    if text is None:
        return None
    if entity.kind == PARAMETER.name:
        # Clients demand a type; MLflow has none but texts.
        return entity._replace(fields={"parameterType": "string", **entity.fields, "value": text})
    metric = parse_latest(key, text)
    return entity._replace(fields={**entity.fields, **point_fields(metric)})


def point_fields(metric: Metric) -> dict[str, Any]:
    return {
        "value": metric.value,
        "timestamp": str(metric.timestamp),
        "step": metric.step,
    }


# ------------------------------------------------------------------ writing


def log_metric(read: runs.NumberedRun, metric: Metric) -> None:
    """Logs a point of a metric, as MLflow does: the latest one by step and time counts.
    Idempotent.

    Raises:
        RequestLimitExceeded: points of the run after a step are being deleted (a rewind), or were
            while the point was logged; the client repeats the request.
    """
    run = mlflow_runs.load(read.run.run_id, read.run.experiment.workspace)

    def decide(current: RunRecord) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        try:
            rewinds.check_unchanged(current.item, run.item)
        except RewoundMeanwhile as rewound:
            raise errors.RequestLimitExceeded("The run is being rewound. Try again.") from rewound
        newer = newer_texts(current.document.texts("metrics"), {metric.key: metric})
        return {"metrics": newer}, ()

    run_writes.write(run, decide, any_stage=True)
    metric_history.write(
        run.experiment.experiment_id, run.run_id, [metric], rewinds.time_after(run.item)
    )


def set_param(read: runs.NumberedRun, key: str, value: str) -> None:
    """Sets a parameter of a run for Kubeflow's API, also one that has another value already. Raises
    InvalidParameterValue for another value of a parameter that is stored in a child item, because
    the run's item has no room for it."""
    run = mlflow_runs.load(read.run.run_id, read.run.experiment.workspace)

    def decide(current: RunRecord) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        if current.document.texts("params").get(key) == value:
            return {}, ()
        if key in current.document.outside.get("params", {}):
            raise errors.InvalidParameterValue(
                f"the run {read.number} has more parameters than can be changed: {key}"
            )
        return {"params": {key: value}}, ()

    run_writes.write(run, decide, any_stage=True)


def log_dataset(read: runs.NumberedRun, dataset: Dataset) -> str:
    """Adds a data set to the run's inputs, as MLflow does, without a context. Returns its key in
    the map of inputs of the run's item."""
    experiment_id = read.run.experiment.experiment_id
    datasets.ensure(experiment_id, [dataset])
    key = run_children.input_key(dataset.name, dataset.digest)
    reference = run_children.DatasetReference(dataset.name, dataset.digest, ())

    def link(current: RunRecord) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        linked = current.document.texts("inputs")
        if key in linked:
            return {}, ()
        return {"inputs": {key: run_children.input_text(reference, len(linked))}}, ()

    run = mlflow_runs.load(read.run.run_id, read.run.experiment.workspace)
    before = run_writes.write(run, link, any_stage=True).document.texts("inputs")
    # An existing link keeps its context.
    for used in run_children.dataset_inputs({key: before[key]}) if key in before else [reference]:
        context = dict(used.tags).get(reserved_tags.DATASET_CONTEXT)
        datasets.add_contexts(experiment_id, [(dataset.name, dataset.digest, context)])
    return key


def create(entity: Entity, reference: ContextRef, read: runs.NumberedRun, key: str | None) -> None:
    """Creates an artifact of a run for Kubeflow's API.

    Args:
        reference: the item that maps the run's Kubeflow number to MLflow's item.
        read: the run.
        key: the key under which MLflow's run has the value; None if only Kubeflow has it.

    Raises:
        ResourceConflict: its name or external id is taken.
        ResourceDoesNotExist: the run is gone.
    """
    entity = entity._replace(fields={**entity.fields, **_of_run(reference)})
    if key is None:
        artifacts.create_under(entity, reference)
        return
    places = _places(reference, read, key)
    del places["parent"]
    artifacts.create_under(entity, reference, **places)


def find(reference: ContextRef, kind: str, name: str) -> Raw | None:
    """Returns the item of the artifact of a metric or parameter; None if there is none. Two
    consistent GetItem, one if there is none.

    Args:
        reference: the item that maps the run's Kubeflow number to MLflow's item.
        name: the name of the metric or parameter.
    """
    child = transaction_steps.find_child(reference.number, KINDS[kind], name)
    return None if child is None else table.get(keys.artifact(child.number))


# ------------------------------------------------------------------ history


def history_of(read: runs.NumberedRun, name: str, wanted: Sequence[int]) -> Iterator[Entity]:
    """Yields points of a run's metrics, oldest first, without points later than the latest value of
    their metric. The id of a point is its position in this result, from 1.

    Args:
        name: only metrics whose name contains this text.
        wanted: only points of these steps; all if it is empty.
    """
    run = read.run
    latest = mlflow_runs.metrics(run.document)
    series: dict[str, list[Metric]] = {}
    points = metric_history.of_run(run.experiment.experiment_id, run.run_id)
    for point in [*latest.values(), *points]:
        if point.key not in latest or recency(point) > recency(latest[point.key]):
            continue  # its request died before it wrote the run
        if name in point.key and (not wanted or point.step in wanted):
            series.setdefault(point.key, []).append(point)
    distinct_points = [point for each in series.values() for point in metric_history.distinct(each)]
    distinct_points.sort(key=lambda point: (point.timestamp, point.step, point.key))
    for number, point in enumerate(distinct_points, start=1):
        yield Entity(
            kind=METRIC.name,
            id=number,
            name=point.key,
            create_time=point.timestamp,
            update_time=point.timestamp,
            description=None,
            external_id=None,
            properties={},
            fields={
                **point_fields(point),
                "state": tags.LIVE,
                "experimentId": str(read.experiment),
                "experimentRunId": str(read.number),
            },
        )
