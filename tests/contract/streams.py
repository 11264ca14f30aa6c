"""Reads the stream of a table as Lambda's event source does; hands out each record once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import boto3

from local.store.store import folder_of, table_path
from local.store.stream import StreamReader
from tests.contract.conftest import Store
from tests.engines import REGION

Record = dict[str, Any]


class Stream:
    """``fresh`` gives the records written since it was asked last, at first all that were, or
    with ``latest`` those from now on."""

    def __init__(self, store: Store, *, latest: bool = False) -> None:
        folder = folder_of(store.endpoint)
        self._client: Any = (
            StreamReader(table_path(folder, store.table), store.table)
            if folder
            else boto3.client("dynamodbstreams", endpoint_url=store.endpoint, region_name=REGION)
        )
        arn = store.direct.describe_table(TableName=store.table)["Table"]["LatestStreamArn"]
        shards = self._client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        self._iterators = [
            self._client.get_shard_iterator(
                StreamArn=arn,
                ShardId=shard["ShardId"],
                ShardIteratorType="LATEST" if latest else "TRIM_HORIZON",
            )["ShardIterator"]
            for shard in shards
        ]

    def fresh(self) -> list[Record]:
        results: list[Record] = []
        for position, iterator in enumerate(self._iterators):
            current = iterator
            while True:
                answer = self._client.get_records(ShardIterator=current, Limit=1000)
                results += answer["Records"]
                current = answer["NextShardIterator"]
                if not answer["Records"]:
                    break
            self._iterators[position] = current
        return results

    def close(self) -> None:
        self._client.close()


@contextlib.contextmanager
def following(store: Store, *, latest: bool = False) -> Iterator[Stream]:
    stream = Stream(store, latest=latest)
    try:
        yield stream
    finally:
        stream.close()
