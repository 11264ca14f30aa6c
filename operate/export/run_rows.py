"""Exports experiments and runs to the SQL tables of MLflow's own store."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import DatasetInput, Run
from operate.export.stock_store import StockStore, Transaction

_GREATEST: Final = sys.float_info.max
_UNKNOWN: Final = {
    "source_type": "UNKNOWN",
    "source_name": "",
    "entry_point_name": "",
    "source_version": "",
}
"""Columns of a run that MLflow no longer fills."""


def put_experiment(store: StockStore, experiment: Experiment, number: int) -> None:
    """Writes an experiment as rows of MLflow's own tables, under the id ``number``. Its stage is
    active at first, because MLflow's store accepts traces in active experiments only;
    :func:`put_stage` writes the final stage."""
    with store.transaction() as rows:
        values = {
            "name": experiment.name,
            "workspace": "default",
            "artifact_location": experiment.artifact_location,
            "lifecycle_stage": ACTIVE,
            "creation_time": experiment.creation_time,
            "last_update_time": experiment.last_update_time,
        }
        rows.put("experiments", {"experiment_id": number}, values)
        rows.replace("experiment_tags", {"experiment_id": number}, _pairs(experiment.tags))


def put_stage(store: StockStore, experiment: Experiment, number: int) -> None:
    """Writes an experiment's stage and the time of its last update into the table ``experiments``
    of MLflow's own database, after everything else in the experiment has been written."""
    with store.transaction() as rows:
        rows.update(
            "experiments",
            {
                "lifecycle_stage": experiment.lifecycle_stage,
                "last_update_time": experiment.last_update_time,
            },
            experiment_id=number,
        )


def put_run(store: StockStore, run: Run, history: Mapping[str, Sequence[Metric]]) -> None:
    """Writes a run as rows of MLflow's own tables: values, tags, params, all metric points, dataset
    inputs and links to logged models, in one transaction."""
    own = {"run_uuid": run.run_id}
    with store.transaction() as rows:
        values = {
            "name": run.run_name,
            "user_id": run.user_id,
            "status": run.status,
            "start_time": run.start_time,
            "end_time": run.end_time,
            "deleted_time": None if run.lifecycle_stage == ACTIVE else run.end_time or 0,
            "lifecycle_stage": run.lifecycle_stage,
            "artifact_uri": run.artifact_uri,
            "experiment_id": int(run.experiment_id),
            **_UNKNOWN,
        }
        rows.put("runs", own, values)
        rows.replace("tags", own, _pairs(run.tags))
        rows.replace("params", own, _pairs(run.params))
        points = [point for series in history.values() for point in series]
        distinct = {tuple(row.values()): row for row in map(_metric, points)}
        rows.replace("metrics", own, distinct.values())
        rows.replace("latest_metrics", own, map(_metric, run.metrics.values()))
        _put_datasets(rows, run)
        _put_models(rows, run)


def _pairs(texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in texts.items()]


def _metric(point: Metric) -> dict[str, Any]:
    """Returns the row of a metric point. MLflow's store has a flag for NaN, and stores infinities
    as the greatest double."""
    is_nan = math.isnan(point.value)
    return {
        "key": point.key,
        "value": 0.0 if is_nan else max(-_GREATEST, min(_GREATEST, point.value)),
        "timestamp": point.timestamp,
        "step": point.step,
        "is_nan": is_nan,
    }


def _put_datasets(rows: Transaction, run: Run) -> None:
    """Writes the datasets that the experiment lacks, and the rows that connect the run with its
    datasets. Ids are derived from the content, so repeating the call adds no rows."""
    used = {"destination_type": "RUN", "destination_id": run.run_id, "source_type": "DATASET"}
    for known in rows.all("inputs", **used):
        rows.delete("input_tags", input_uuid=known["input_uuid"])
    rows.delete("inputs", **used)
    for entry in run.dataset_inputs:
        dataset_uuid = _dataset(rows, int(run.experiment_id), entry)
        input_uuid = uuid5(NAMESPACE_OID, f"{dataset_uuid} {run.run_id}").hex
        rows.insert("inputs", [{**used, "input_uuid": input_uuid, "source_id": dataset_uuid}])
        tags = [{"name": tag.key, "value": tag.value} for tag in entry.tags]
        rows.replace("input_tags", {"input_uuid": input_uuid}, tags)


def _dataset(rows: Transaction, number: int, entry: DatasetInput) -> str:
    dataset = entry.dataset
    key = {"experiment_id": number, "name": dataset.name, "digest": dataset.digest}
    known = rows.first("datasets", **key)
    if known is not None:
        return str(known["dataset_uuid"])
    made = uuid5(NAMESPACE_OID, f"{number} {dataset.name} {dataset.digest}").hex
    values = {
        "dataset_uuid": made,
        "dataset_source_type": dataset.source_type,
        "dataset_source": dataset.source,
        "dataset_schema": dataset.schema,
        "dataset_profile": dataset.profile,
    }
    rows.insert("datasets", [{**key, **values}])
    return made


def _put_models(rows: Transaction, run: Run) -> None:
    inputs = [(model_id, 0) for model_id in run.model_inputs]
    outputs = [(output.model_id, output.step) for output in run.model_outputs]
    _put_links(rows, run.run_id, "RUN_INPUT", "MODEL_INPUT", inputs)
    _put_links(rows, run.run_id, "RUN_OUTPUT", "MODEL_OUTPUT", outputs)


def _put_links(
    rows: Transaction, run_id: str, source: str, destination: str, models: Iterable[tuple[str, int]]
) -> None:
    key = {"source_type": source, "source_id": run_id, "destination_type": destination}
    links = [
        {
            "input_uuid": uuid5(NAMESPACE_OID, f"{source} {run_id} {model_id}").hex,
            "destination_id": model_id,
            "step": step,
        }
        for model_id, step in dict.fromkeys(models)
    ]
    rows.replace("inputs", key, links)
