"""Creates the DynamoDB table from the template's properties, in the local store or in a DynamoDB
engine that the user runs, and refuses an existing table with other keys."""

from __future__ import annotations

import os
import time
from typing import Any, Final

from botocore.exceptions import ClientError

from local.template_definitions import TemplateError

_ENDPOINTS = {
    "dynamodb": "AWS_ENDPOINT_URL_DYNAMODB",
    "dynamodbstreams": "AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
}

_COMPARED = ("KeySchema", "LocalSecondaryIndexes", "GlobalSecondaryIndexes")


_CREATION_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05


def client(service: str) -> Any:
    """Returns a botocore client of the service (DynamoDB or its streams) on the endpoint that the
    environment names.
    """
    # The import takes 15 MB and a tenth of a second; only a table in a DynamoDB engine needs it.
    import botocore.session  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    return botocore.session.get_session().create_client(
        service,
        endpoint_url=os.environ.get(_ENDPOINTS[service]),
        config=Config(
            parameter_validation=False,
            connect_timeout=2,
            read_timeout=30,
            retries={"mode": "standard", "total_max_attempts": 2},
        ),
    )


class SharedClient:
    """Offers those operations of a botocore client that the local server needs, but calls the
    DynamoDB client that the functions use. So the local server does not import botocore's client.
    """

    def __init__(self) -> None:
        # After the environment is complete.
        from mlcore.db.client import client as shared  # noqa: PLC0415

        self._call = shared().call
        self.close = shared().close

    def describe_table(self, **parameters: Any) -> dict[str, Any]:
        return self._call("DescribeTable", parameters)

    def create_table(self, **parameters: Any) -> dict[str, Any]:
        return self._call("CreateTable", parameters)

    def update_time_to_live(self, **parameters: Any) -> dict[str, Any]:
        return self._call("UpdateTimeToLive", parameters)

    def delete_item(self, **parameters: Any) -> dict[str, Any]:
        return self._call("DeleteItem", parameters)


def _definition(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns the parameters of CreateTable for the table properties of the template."""
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
    """Returns the keys and indexes of a table's description, or of the template's properties, in a
    form in which the two can be compared."""
    comparable: dict[str, Any] = {}
    for kind in _COMPARED:
        value = description.get(kind) or []
        if kind == "KeySchema":
            comparable[kind] = [(part["AttributeName"], part["KeyType"]) for part in value]
        else:
            comparable[kind] = {index["IndexName"]: _keys(index)["KeySchema"] for index in value}
    return comparable


def ttl_attribute(properties: dict[str, Any]) -> str | None:
    """Returns the name of the attribute that holds an item's expiry time; None if template.yaml
    does not enable expiry."""
    specification = properties.get("TimeToLiveSpecification") or {}
    if str(specification.get("Enabled", "false")).lower() != "true":
        return None
    return str(specification["AttributeName"])


def ensure(dynamodb: Any, name: str, properties: dict[str, Any]) -> str | None:
    """Creates the DynamoDB table if it is missing, and returns the ARN of its stream; None without
    a stream. Raises TemplateError if the table exists with other keys or indexes."""
    try:
        description = dynamodb.describe_table(TableName=name)["Table"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        description = _create(dynamodb, name, properties)
    wanted = _keys(properties)
    if _keys(description) != wanted:
        raise TemplateError(
            f"the table {name} was made by another version of template.yaml: "
            "its keys or indexes differ; use another data folder (--data) or another TABLE_NAME"
        )
    arn: str | None = description.get("LatestStreamArn")
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
    """Waits until a new table is active, ten seconds at most, and returns its description. Raises
    ClientError if the table does not exist after that time."""
    ends = time.monotonic() + _CREATION_SECONDS
    while True:
        is_last = time.monotonic() > ends
        try:
            description: dict[str, Any] = dynamodb.describe_table(TableName=name)["Table"]
        except ClientError as error:
            missing = error.response["Error"]["Code"] == "ResourceNotFoundException"
            if not missing or is_last:
                raise
        else:
            if is_last or description.get("TableStatus") == "ACTIVE":
                return description
        time.sleep(_LOOK_SECONDS)
