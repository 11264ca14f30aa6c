"""The table on the engine.

Creates it from the template's properties, and refuses one that has other keys.
"""

from __future__ import annotations

import os
import time
from typing import Any, Final

from botocore.exceptions import ClientError

from local.definitions import TemplateError
from mlcore.db.local_socket import socket_path

MINIMUM_NAME_LENGTH = 11
"""The embedded engine makes shard ids from the name, and SDKs refuse shard ids of shorter names."""

_ENDPOINTS = {
    "dynamodb": "AWS_ENDPOINT_URL_DYNAMODB",
    "dynamodbstreams": "AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
}

_COMPARED = ("KeySchema", "LocalSecondaryIndexes", "GlobalSecondaryIndexes")


_CREATION_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05


def client(service: str) -> Any:
    """A botocore client for the engine that the environment names."""
    # 15 MB and a tenth of a second, for who has another engine.
    import botocore.session  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    from local.engine.client import URL, through_socket  # noqa: PLC0415

    path = socket_path(os.environ.get(_ENDPOINTS[service], ""))
    made = botocore.session.get_session().create_client(
        service,
        endpoint_url=URL if path else None,
        config=Config(
            parameter_validation=False,
            connect_timeout=2,
            read_timeout=30,
            retries={"mode": "standard", "total_max_attempts": 2},
        ),
    )
    return through_socket(made, path) if path else made


class OwnClient:
    """What is asked of a botocore client here, over the connections that the functions have to the
    engine that the environment names."""

    def __init__(self) -> None:
        # After the environment is complete.
        from mlcore.db.client import client as shared  # noqa: PLC0415

        self._call = shared().call

    def describe_table(self, **parameters: Any) -> dict[str, Any]:
        return self._call("DescribeTable", parameters)

    def create_table(self, **parameters: Any) -> dict[str, Any]:
        return self._call("CreateTable", parameters)

    def update_time_to_live(self, **parameters: Any) -> dict[str, Any]:
        return self._call("UpdateTimeToLive", parameters)

    def delete_item(self, **parameters: Any) -> dict[str, Any]:
        return self._call("DeleteItem", parameters)


def _definition(properties: dict[str, Any]) -> dict[str, Any]:
    """The parts of the template's properties that CreateTable needs here, in its spelling."""
    wanted: dict[str, Any] = {
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": properties["KeySchema"],
        "AttributeDefinitions": properties["AttributeDefinitions"],
    }
    for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        if properties.get(kind):
            wanted[kind] = [
                {part: index[part] for part in ("IndexName", "KeySchema", "Projection")}
                for index in properties[kind]
            ]
    stream = properties.get("StreamSpecification")
    if stream:
        wanted["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": stream["StreamViewType"],
        }
    return wanted


def _keys(description: dict[str, Any]) -> dict[str, Any]:
    """Keys and indexes, comparable."""
    comparable: dict[str, Any] = {}
    for kind in _COMPARED:
        value = description.get(kind) or []
        if kind == "KeySchema":
            comparable[kind] = [(part["AttributeName"], part["KeyType"]) for part in value]
        else:
            comparable[kind] = {index["IndexName"]: _keys(index)["KeySchema"] for index in value}
    return comparable


def ttl_attribute(properties: dict[str, Any]) -> str | None:
    """The attribute that expires items, if the template switches expiry on."""
    specification = properties.get("TimeToLiveSpecification") or {}
    if str(specification.get("Enabled", "false")).lower() != "true":
        return None
    return str(specification["AttributeName"])


def ensure(dynamodb: Any, name: str, properties: dict[str, Any]) -> str | None:
    """Creates the table unless it is there, and answers the ARN of its stream.

    None when it has none.

    Raises:
        TemplateError: the table that is there has other keys or indexes.
    """
    try:
        found = dynamodb.describe_table(TableName=name)["Table"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        found = _create(dynamodb, name, properties)
    wanted = _keys(properties)
    if _keys(found) != wanted:
        raise TemplateError(
            f"the table {name} was made by another version of template.yaml: "
            "its keys or indexes differ; use another data folder (--data) or another TABLE_NAME"
        )
    arn: str | None = found.get("LatestStreamArn")
    return arn


def _create(dynamodb: Any, name: str, properties: dict[str, Any]) -> dict[str, Any]:
    try:
        dynamodb.create_table(TableName=name, **_definition(properties))
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceInUseException":
            raise
    created = _active(dynamodb, name)
    attribute = ttl_attribute(properties)
    if attribute:
        dynamodb.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute},
        )
        created = _active(dynamodb, name)
    return created


def _active(dynamodb: Any, name: str) -> dict[str, Any]:
    """A table that is being created: once it may be used, or as it is after some seconds. Raises
    ClientError: it is not there then."""
    ends = time.monotonic() + _CREATION_SECONDS
    while True:
        is_last = time.monotonic() > ends
        try:
            found: dict[str, Any] = dynamodb.describe_table(TableName=name)["Table"]
        except ClientError as error:
            missing = error.response["Error"]["Code"] == "ResourceNotFoundException"
            if not missing or is_last:
                raise
        else:
            if is_last or found.get("TableStatus") == "ACTIVE":
                return found
        time.sleep(_LOOK_SECONDS)
