"""Exports evaluation datasets and scorers to the SQL tables of MLflow's own store."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from mlcore import errors
from operate.export.stock_store import StockStore
from operate.transfer.mlflow_client import Json
from operate.transfer.transfer_item import Content

_WRAPPED: Final = "mlflow_wrapped"


def put_dataset(store: StockStore, dataset_id: str, content: Content) -> None:
    """Writes an evaluation dataset and its records as rows of MLflow's own tables. ``content`` has
    the fields that the items of :func:`operate.transfer.datasets.item` read."""
    key = {"dataset_id": dataset_id}
    used = {"destination_type": "experiment", "source_type": "evaluation_dataset"}
    with store.transaction() as rows:
        values = {
            name: content.get(name)
            for name in (
                *("name", "schema", "profile", "digest", "created_time", "last_update_time"),
                *("created_by", "last_updated_by"),
            )
        }
        rows.put("evaluation_datasets", key, {**values, "workspace": "default"})
        tags = [{"key": name, "value": text} for name, text in content["tags"].items()]
        rows.replace("evaluation_dataset_tags", key, tags)
        records = [_record(record_id, fields) for record_id, fields in content["records"].items()]
        rows.replace("evaluation_dataset_records", key, records)
        rows.replace(
            "entity_associations",
            {**used, "source_id": dataset_id},
            [
                {
                    "association_id": f"a-{uuid5(NAMESPACE_OID, f'{dataset_id} {number}').hex}",
                    "destination_id": number,
                    "created_time": content["created_time"],
                }
                for number in content["experiment_ids"]
            ],
        )


def _record(record_id: str, fields: Json) -> dict[str, Any]:
    from mlflow.store.tracking.dbmodels import models  # noqa: PLC0415 - installed

    content = fields["content"]
    inputs = json.dumps(content.get("inputs", {}), sort_keys=True)
    outputs = content.get("outputs")
    wrapped = getattr(models, "DATASET_RECORD_WRAPPED_OUTPUT_KEY", _WRAPPED)
    source = content.get("source")
    return {
        "dataset_record_id": record_id,
        "inputs": content.get("inputs", {}),
        "outputs": None if outputs is None else {wrapped: outputs},
        "expectations": content.get("expectations"),
        "tags": content.get("tags"),
        "source": source,
        "source_id": content.get("source_id"),
        "source_type": source.get("source_type") if source else None,
        "created_time": fields["created_time"],
        "last_update_time": content.get("last_update_time", fields["created_time"]),
        "created_by": content.get("created_by"),
        "last_updated_by": content.get("last_updated_by"),
        "input_hash": hashlib.sha256(inputs.encode()).hexdigest(),
    }


def put_scorer(store: StockStore, number: int, name: str, content: Content) -> None:
    """Writes a scorer and its versions as rows of MLflow's own tables. ``content`` has the fields
    that the items of :func:`operate.transfer.scorers.item` read.

    Raises:
        ResourceConflict: the target has a scorer of this name that was not exported.
    """
    key = {"experiment_id": number, "scorer_name": name}
    with store.transaction() as rows:
        known = rows.first("scorers", **key)
        if known is not None and known["scorer_id"] != content["scorer_id"]:
            raise errors.ResourceConflict("The target has another scorer of this name.")
        rows.put("scorers", key, {"scorer_id": content["scorer_id"]})
        versions = [
            {
                "scorer_version": int(version),
                "serialized_scorer": fields["serialized_scorer"],
                "creation_time": fields["creation_time"],
            }
            for version, fields in content["versions"].items()
        ]
        rows.replace("scorer_versions", {"scorer_id": content["scorer_id"]}, versions)
