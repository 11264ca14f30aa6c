"""Executes DynamoDB's operations on the SQLite files of a folder, one file for each table.

Its endpoint is a URL such as ``sqlite:///home/me/data``; :func:`register` makes
:func:`mlcore.db.client.client` know such endpoints.
"""

from __future__ import annotations

import datetime
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from local.store import batch_writes, database, queries, reads, writes
from local.store.attribute_values import Raw
from local.store.database import Unusable
from local.store.errors import error, invalid
from local.store.schema import Schema
from local.store.table_store import TableStore, encode, not_found
from mlcore.db import embedded_stores

SCHEME: Final = "sqlite"
_PREFIX: Final = f"{SCHEME}://"
_ENDING: Final = ".sqlite"
_TABLE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")

_OPERATIONS: Final[dict[str, Callable[[TableStore, Raw], Raw]]] = {
    "GetItem": reads.get_item,
    "BatchGetItem": reads.batch_get_item,
    "TransactGetItems": reads.transact_get_items,
    "Query": queries.query,
    "Scan": queries.scan,
    "PutItem": writes.put_item,
    "UpdateItem": writes.update_item,
    "DeleteItem": writes.delete_item,
    "BatchWriteItem": batch_writes.batch_write_item,
    "TransactWriteItems": batch_writes.transact_write_items,
}


_REQUIRED: Final = {
    "GetItem": ("TableName", "Key"),
    "PutItem": ("TableName", "Item"),
    "UpdateItem": ("TableName", "Key"),
    "DeleteItem": ("TableName", "Key"),
    "BatchGetItem": ("RequestItems",),
    "BatchWriteItem": ("RequestItems",),
    "TransactGetItems": ("TransactItems",),
    "TransactWriteItems": ("TransactItems",),
    "ListTables": (),
}
"""The parameters whose absence :meth:`Store.call` refuses, by operation; for other operations only
``TableName``."""


def endpoint_of(folder: Path) -> str:
    """Returns the endpoint URL of the SQLite store, DynamoDB's stand-in, in a folder."""
    return _PREFIX + quote(str(folder.absolute()))


def folder_of(endpoint: str) -> Path | None:
    """Returns the folder that the endpoint of a local store (in DynamoDB's place) names; None if
    the endpoint is another."""
    if not endpoint.startswith(_PREFIX):
        return None
    return Path(unquote(endpoint.removeprefix(_PREFIX)))


def table_path(folder: Path, table: str) -> Path:
    """Returns the path of the SQLite file in which the store of a folder keeps a table."""
    return folder / f"{table}{_ENDING}"


def is_table_name(name: Any) -> bool:
    """Returns whether DynamoDB accepts the text as the name of a table."""
    return isinstance(name, str) and bool(_TABLE_NAME.fullmatch(name))


def register() -> None:
    """Registers this store at the core layer: :func:`mlcore.db.client.client` then opens endpoints
    that begin with ``sqlite:`` by :class:`Store`."""
    embedded_stores.register(SCHEME, Store)


class Store:
    """The tables that a folder holds in SQLite files, with the operations of a DynamoDB client.
    Callable from many threads and processes."""

    is_embedded: Final = True

    def __init__(self, endpoint: str) -> None:
        """Opens the store at an endpoint that :func:`endpoint_of` returned."""
        self._tables: dict[str, TableStore] = {}
        self._opening = threading.Lock()
        folder = folder_of(endpoint)
        if folder is None:
            raise ValueError(f"{endpoint} is no endpoint of a store")
        self.endpoint = endpoint
        self._folder = folder
        self._more: dict[str, Callable[[Raw], Raw]] = {
            "CreateTable": self._create_table,
            "DescribeTable": self._describe_table,
            "DeleteTable": self._delete_table,
            "ListTables": self._list_tables,
            "UpdateTimeToLive": self._update_time_to_live,
            "DescribeTimeToLive": self._describe_time_to_live,
        }

    def call(self, operation: str, parameters: Raw) -> Raw:
        """Executes an operation such as ``GetItem`` and returns its answer in DynamoDB's JSON.

        Binary values may be bytes in ``parameters``; in the answer they are Base64.

        Raises:
            ClientError: the request fails, or this store does not support it.
            Unusable: SQLite cannot read or write the file.
        """
        execute = _OPERATIONS.get(operation)
        for name in _REQUIRED.get(operation, ("TableName",)):
            if parameters.get(name) is None:
                raise invalid(
                    f"1 validation error detected: Value null at '{name[0].lower()}{name[1:]}' "
                    "failed to satisfy constraint: Member must not be null"
                )
        try:
            if execute is not None:
                return execute(self._table(_table_name(operation, parameters)), parameters)
            more = self._more.get(operation)
            if more is None:
                raise error("UnknownOperationException", f"this store has no {operation}")
            return more(parameters)
        except UnicodeEncodeError as failure:
            raise error("SerializationException", "a text is no valid Unicode") from failure

    _make_api_call = call
    """The method that PynamoDB calls."""

    def close(self) -> None:
        """Closes the SQLite files of all tables. A later call of an operation opens them again."""
        with self._opening:
            tables, self._tables = self._tables, {}
        for table in tables.values():
            table.database.close()

    __del__ = close

    def _table(self, name: str) -> TableStore:
        table = self._tables.get(name)
        if table is not None:
            return table
        with self._opening:
            table = self._tables.get(name)
            if table is None:
                path = self._path(name)
                try:
                    is_made = path.exists()
                except OSError as failure:  # such as a folder of another user
                    raise Unusable(path, failure) from failure
                if not is_made:
                    raise not_found()
                table = self._tables[name] = TableStore(path)
            return table

    def _path(self, name: str) -> Path:
        if not is_table_name(name):
            raise invalid(
                f"1 validation error detected: Value '{name}' at 'tableName' failed to satisfy "
                "constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
            )
        return table_path(self._folder, name)

    def _create_table(self, parameters: Raw) -> Raw:
        name = parameters["TableName"]
        path = self._path(name)
        description = _description(parameters)
        schema = Schema(description)
        with self._opening:
            try:
                database.create(
                    path,
                    schema.statements,
                    [("INSERT INTO description VALUES (1, ?)", (encode(description),))],
                )
            except FileExistsError as failure:
                raise error("ResourceInUseException", f"Table already exists: {name}") from failure
            except (OSError, sqlite3.Error) as failure:
                raise Unusable(path, failure) from failure
        return {"TableDescription": description}

    def _describe_table(self, parameters: Raw) -> Raw:
        return {"Table": self._table(parameters["TableName"]).description}

    def _delete_table(self, parameters: Raw) -> Raw:
        table = self._table(parameters["TableName"])
        with self._opening:
            self._tables.pop(parameters["TableName"], None)
        table.database.close()
        database.remove(table.database.path)
        return {"TableDescription": {**table.description, "TableStatus": "DELETING"}}

    def _list_tables(self, _: Raw) -> Raw:
        return {"TableNames": sorted(self._names())}

    def _names(self) -> Iterator[str]:
        for path in self._folder.glob(f"*{_ENDING}"):
            yield path.name.removesuffix(_ENDING)

    def _update_time_to_live(self, parameters: Raw) -> Raw:
        table = self._table(parameters["TableName"])
        specification = parameters["TimeToLiveSpecification"]
        table.describe({**table.description, "TimeToLiveSpecification": specification})
        return {"TimeToLiveSpecification": specification}

    def _describe_time_to_live(self, parameters: Raw) -> Raw:
        description = self._table(parameters["TableName"]).description
        specification = description.get("TimeToLiveSpecification") or {}
        if not specification.get("Enabled"):
            return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
        return {
            "TimeToLiveDescription": {
                "TimeToLiveStatus": "ENABLED",
                "AttributeName": specification["AttributeName"],
            }
        }


def _table_name(operation: str, parameters: Raw) -> str:
    """Returns the name of the table in a request. Raises ClientError unless the request names
    exactly one table.
    """
    if operation.startswith("Batch"):
        names = list(parameters["RequestItems"])
    elif operation.startswith("Transact"):
        names = [
            content["TableName"]
            for each in parameters["TransactItems"]
            for content in each.values()
        ]
    else:
        names = [parameters["TableName"]]
    if len(set(names)) != 1:
        raise invalid("this store takes requests about one table")
    name: str = names[0]
    return name


def _description(parameters: Raw) -> Raw:
    """Returns the table's description, as DescribeTable answers it, for the parameters of
    CreateTable.
    """
    name = parameters["TableName"]
    arn = f"arn:aws:dynamodb:ddblocal:000000000000:table/{name}"
    now = datetime.datetime.now(datetime.UTC)
    description: dict[str, Any] = {
        "TableName": name,
        "TableArn": arn,
        "TableStatus": "ACTIVE",
        "CreationDateTime": now.timestamp(),
        "AttributeDefinitions": parameters["AttributeDefinitions"],
        "KeySchema": parameters["KeySchema"],
        "BillingModeSummary": {"BillingMode": parameters.get("BillingMode", "PROVISIONED")},
    }
    for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        if parameters.get(kind):
            description[kind] = [
                {**index, "IndexStatus": "ACTIVE"} if kind.startswith("Global") else {**index}
                for index in parameters[kind]
            ]
    stream = parameters.get("StreamSpecification") or {}
    if stream.get("StreamEnabled"):
        label = now.strftime("%Y-%m-%dT%H:%M:%S.000")
        description["StreamSpecification"] = stream
        description["LatestStreamLabel"] = label
        description["LatestStreamArn"] = f"{arn}/stream/{label}"
    return description
