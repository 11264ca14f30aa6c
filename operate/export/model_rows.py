"""Exports logged models, registered models and prompts: writes rows of MLflow's SQL tables."""

from __future__ import annotations

import math
from typing import Any, Final

from mlcore import errors
from mlcore.entities.logged_models import LoggedModel
from operate.export.stock_store import StockStore
from operate.transfer.transfer_item import Content

_DEFAULT: Final = {"workspace": "default"}


def put_logged_model(store: StockStore, model: LoggedModel) -> None:
    from mlflow.entities import LoggedModelStatus  # noqa: PLC0415 - installed if there is a store

    key = {"model_id": model.model_id}
    owner: dict[str, Any] = {"experiment_id": int(model.experiment_id)}
    values = {
        **owner,
        "name": model.name,
        "artifact_location": model.artifact_location,
        "creation_timestamp_ms": model.creation_time,
        "last_updated_timestamp_ms": model.last_update_time,
        "status": LoggedModelStatus(_status(model.status)).to_int(),
        "lifecycle_stage": model.lifecycle_stage,
        "model_type": model.model_type,
        "source_run_id": model.source_run_id or None,
    }
    tags = [{**owner, "tag_key": name, "tag_value": text} for name, text in model.tags.items()]
    params = [
        {**owner, "param_key": name, "param_value": text} for name, text in model.params.items()
    ]
    points = [
        {
            **owner,
            "metric_name": point.key,
            "metric_timestamp_ms": point.timestamp,
            "metric_step": point.step,
            "metric_value": 0.0 if math.isnan(point.value) else point.value,
            "run_id": point.run_id,
            "dataset_name": point.dataset_name,
            "dataset_digest": point.dataset_digest,
        }
        for point in model.metrics
    ]
    with store.transaction() as rows:
        rows.put("logged_models", key, values)
        rows.replace("logged_model_tags", key, tags)
        rows.replace("logged_model_params", key, params)
        for point in points:
            known = rows.first(
                "datasets",
                **owner,
                name=point["dataset_name"],
                digest=point["dataset_digest"],
            )
            point["dataset_uuid"] = known["dataset_uuid"] if known else None
        rows.replace("logged_model_metrics", key, points)


def _status(name: str) -> str:
    """Converts a model status of the REST API to the value in MLflow's database."""
    short = name.removeprefix("LOGGED_MODEL_")
    return "UNSPECIFIED" if short == "STATUS_UNSPECIFIED" else short.removeprefix("UPLOAD_")


def put_registered_model(store: StockStore, name: str, content: Content) -> None:
    """Writes a registered model or prompt and its versions as rows of MLflow's own tables.
    ``content`` has the fields that the items of :func:`operate.transfer.registry.item` read.

    Raises:
        ResourceConflict: the target has a model of this name that was not exported.
    """
    key = {"name": name, **_DEFAULT}
    tables = ("registered_model_aliases", "model_version_tags", "model_versions")
    with store.transaction() as rows:
        values = {
            "creation_time": content["creation_timestamp"],
            "last_updated_time": content["last_updated_timestamp"],
            "description": content["description"],
        }
        known = rows.first("registered_models", **key)
        if known is not None and known["creation_time"] != values["creation_time"]:
            raise errors.ResourceConflict("The target has another model of this name.")
        rows.put("registered_models", key, values)
        tags = [{"key": tag, "value": text} for tag, text in content["tags"].items()]
        rows.replace("registered_model_tags", key, tags)
        for table in tables:
            rows.delete(table, **key)
        for number, version in content["versions"].items():
            own = {**key, "version": int(number)}
            rows.insert("model_versions", [{**own, **_version(version)}])
            tags = [{"key": tag, "value": text} for tag, text in version["tags"].items()]
            rows.replace("model_version_tags", own, tags)
        aliases = [
            {**key, "alias": alias, "version": number}
            for alias, number in content["aliases"].items()
        ]
        rows.insert("registered_model_aliases", aliases)


def _version(version: Content) -> Content:
    return {
        "creation_time": version["creation_timestamp"],
        "last_updated_time": version["last_updated_timestamp"],
        "description": version.get("description"),
        "user_id": version.get("user_id"),
        "current_stage": version["current_stage"],
        "source": version["source"],
        "storage_location": version["storage_location"],
        "run_id": version.get("run_id"),
        "run_link": version.get("run_link"),
        "status": version["status"],
        "status_message": version.get("status_message"),
    }
