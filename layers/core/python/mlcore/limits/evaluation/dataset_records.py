"""Rules about the records of evaluation datasets: their checks, their ids, and how new data is
merged into stored records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mlcore import reserved_tags
from mlcore.entities.evaluation.datasets import EvaluationRecord, Json
from mlcore.errors import InvalidParameterValue
from mlcore.wire.json_text import check_storable

USER_TAG: Final = reserved_tags.USER
UNSPECIFIED: Final = "UNSPECIFIED"
SOURCE_TYPES: Final = (UNSPECIFIED, "TRACE", "HUMAN", "DOCUMENT", "CODE")


def digest(name: str, last_update_time: int) -> str:
    """Returns the digest of an evaluation dataset, which changes when records are added or merged,
    but not when records are deleted."""
    return hashlib.sha256(f"{name}:{last_update_time}".encode()).hexdigest()[:8]


def record_id(dataset_id: str, fields: Mapping[str, Any]) -> str:
    """Returns the id of an evaluation dataset's record, which is a hash of its inputs. Records with
    the same inputs are the same record, so repeating a request has no further effect."""
    inputs = json.dumps(fields.get("inputs", {}), sort_keys=True)
    return "dr-" + hashlib.sha256(f"{dataset_id}:{inputs}".encode()).hexdigest()[:32]


def check_record(fields: Any) -> Json:
    """Checks a record that a request adds to an evaluation dataset, and returns it. Raises
    InvalidParameterValue."""
    if not isinstance(fields, dict):
        raise InvalidParameterValue("Each dataset record must be a JSON object.")
    for field in ("inputs", "expectations", "tags"):
        value = fields.get(field)
        if value is not None and not isinstance(value, dict):
            raise InvalidParameterValue(f"The '{field}' of a dataset record must be a JSON object.")
    if "inputs" in fields and fields["inputs"] is None:
        raise InvalidParameterValue("inputs must be provided")
    _source(fields.get("source"))
    # The dataset's item names the user, too, in an attribute of its own.
    user = (fields.get("tags") or {}).get(USER_TAG)
    if not isinstance(user, str | None):
        raise InvalidParameterValue(f"The tag '{USER_TAG}' of a dataset record must be a text.")
    try:
        check_storable(user)
    except ValueError:
        raise InvalidParameterValue(
            f"The tag '{USER_TAG}' of a dataset record must be valid Unicode."
        ) from None
    return fields


def new_record(
    dataset_id: str, fields: Mapping[str, Any], now_ms: int, number: int
) -> EvaluationRecord:
    tags = fields.get("tags")
    user = (tags or {}).get(USER_TAG)
    source = _source(fields.get("source"))
    content = {
        "inputs": fields.get("inputs", {}),
        "outputs": fields.get("outputs", {}),
        "expectations": fields.get("expectations"),
        "tags": tags or {},
        "source": source,
        "source_id": _source_id(source),
        "source_type": source["source_type"] if source else None,
        "last_update_time": now_ms,
        "created_by": user,
        "last_updated_by": user,
    }
    return EvaluationRecord(
        record_id(dataset_id, fields), dataset_id, now_ms, number, _without_none(content)
    )


def merge_record(
    record: EvaluationRecord, fields: Mapping[str, Any], now_ms: int
) -> EvaluationRecord:
    """Returns the stored record of an evaluation dataset, changed by the record in a request:
    outputs are replaced if given, expectations and tags are added, the source is kept."""
    content = dict(record.content)
    if "outputs" in fields:
        content["outputs"] = fields["outputs"]
    if fields.get("expectations"):
        content["expectations"] = {**content.get("expectations", {}), **fields["expectations"]}
    if fields.get("tags"):
        content["tags"] = {**content["tags"], **fields["tags"]}
        content["last_updated_by"] = fields["tags"].get(USER_TAG, content.get("last_updated_by"))
    content["last_update_time"] = now_ms
    return record._replace(content=_without_none(content))


def extend_schema(schema: str | None, records: Iterable[Mapping[str, Any]]) -> str:
    """Returns the JSON text of a dataset's schema extended by the fields of new records. The type
    of a field is that of its first value."""
    fields: Json = (
        json.loads(schema)
        if schema
        else {"inputs": {}, "outputs": {}, "expectations": {}, "version": "1.0"}
    )
    for record in records:
        for part in ("inputs", "expectations"):
            for key, value in (record.get(part) or {}).items():
                fields[part].setdefault(key, json_type_name(value))
        outputs = record.get("outputs")
        if isinstance(outputs, dict):
            if isinstance(fields["outputs"], dict):
                for key, value in outputs.items():
                    fields["outputs"].setdefault(key, json_type_name(value))
        elif outputs is not None and not fields["outputs"]:
            fields["outputs"] = json_type_name(outputs)
    return json.dumps(fields)


def profile_text(count: int, stored_profile: str | None) -> str | None:
    """Returns the JSON text that profiles a dataset with ``count`` records; None if the dataset
    never had records."""
    if count:
        return json.dumps({"num_records": count})
    return None if stored_profile is None else "null"


def json_type_name(value: Any) -> str:
    """Returns the name that the schema of an evaluation dataset has for a JSON value's type."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "float", str: "string", list: "array"}
    return names.get(type(value), "object")


def last_tagged_user(records: Iterable[Mapping[str, Any]]) -> str | None:
    """Returns the tag ``mlflow.user`` of the last of the given dataset records that has it; None if
    no record has it."""
    users = [tags[USER_TAG] for record in records if USER_TAG in (tags := record.get("tags") or {})]
    return users[-1] if users else None


def _source(fields: Any) -> Json | None:
    if not fields:
        return None
    if not isinstance(fields, dict):
        raise InvalidParameterValue("The 'source' of a dataset record must be a JSON object.")
    unknown = sorted(fields.keys() - {"source_type", "source_data"})
    if unknown:
        raise InvalidParameterValue(f"The source of a dataset record has no {unknown}.")
    kind, data = fields.get("source_type"), fields.get("source_data")
    if not isinstance(kind, str) or not isinstance(data, dict | None):
        raise InvalidParameterValue(
            "The source of a dataset record needs a 'source_type' and may have 'source_data', "
            "a JSON object."
        )
    if kind.upper() not in SOURCE_TYPES:
        raise InvalidParameterValue(
            f"Invalid dataset record source type: {kind.upper()}. "
            f"Valid source types: {list(SOURCE_TYPES)}"
        )
    return {"source_type": kind.upper(), "source_data": data or {}}


def _source_id(source: Json | None) -> str | None:
    if source is None:
        return None
    key = "trace_id" if source["source_type"] == "TRACE" else "source_id"
    value = source["source_data"].get(key)
    return None if value is None else str(value)


def _without_none(content: Json) -> Json:
    return {key: value for key, value in content.items() if value is not None}
