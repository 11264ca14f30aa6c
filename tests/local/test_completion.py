"""What requests of a runner that was killed have left is completed when the next one starts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from local.engine.client import URL, through_socket
from local.engine.engine import Engine, EngineFailed, executable
from local.events.checkpoints import Checkpoints
from local.folder import DataFolder
from mlcore.db.local_socket import socket_path
from mlcore.entities.metrics import Metric
from mlcore.repos.runs import history

from .conftest import ROOT, TABLE, Local, RunningEngine, eventually

LOST = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
"""The id of a write that never came."""


def ask(runner: Local, method: str, path: str, **fields: Any) -> Any:
    body = json.dumps(fields) if fields else None
    status, answer, _ = runner.request(
        method, f"/api/2.0/mlflow/{path}", body, Content_Type="application/json"
    )
    assert status == 200, answer
    return json.loads(answer)


def item(**attributes: str | int) -> dict[str, Any]:
    return {
        name: {"S": value} if isinstance(value, str) else {"N": str(value)}
        for name, value in attributes.items()
    }


@contextlib.contextmanager
def opened(data: Path) -> Iterator[Any]:
    """A client of the engine on the folder of a runner that has ended."""
    folder = DataFolder(data)
    engine = Engine(folder)
    engine.start()
    path = socket_path(engine.endpoint)
    try:
        made = botocore.session.get_session().create_client(
            "dynamodb",
            region_name="us-east-1",
            endpoint_url=URL if path else engine.endpoint,
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
        yield through_socket(made, path) if path else made
    finally:
        engine.stop()
        folder.close()


def everything(dynamodb: Any) -> list[dict[str, Any]]:
    pages = dynamodb.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
    return [one for page in pages for one in page["Items"]]


def test_both_sides_are_whole_after_a_start(tmp_path: Path) -> None:
    try:
        executable()
    except EngineFailed as error:
        pytest.skip(str(error))
    data = tmp_path / "data"
    arguments = (f"--template={ROOT / 'template.yaml'}", f"--data={data}")
    runner = Local(tmp_path, *arguments)
    try:
        run_id = ask(runner, "POST", "runs/create", experiment_id="0")["run"]["info"]["run_id"]
        for key in ("pointless", "behind"):
            point = {"key": key, "value": 1, "timestamp": 1, "step": 1}
            ask(runner, "POST", "runs/log-metric", run_id=run_id, **point)
        assert runner.end() == 0

        # The point of the one was never written; of the other a later point was, and no more.
        with opened(data) as dynamodb:
            found = everything(dynamodb)
            batches = {
                key: one
                for one in found
                if one["type"]["S"] == "run_metric_batch"
                for key in history.batch_points(one)
            }
            lost, kept = batches["pointless"], batches["behind"]
            dynamodb.delete_item(TableName=TABLE, Key={name: lost[name] for name in ("PK", "SK")})
            (later,) = history.items("0", run_id, [Metric("behind", 7.5, 7, 7)])
            marker = {
                "PK": kept["PK"],
                **item(SK=f"PENDING#run#{run_id}#{LOST}", type="pending", entity_type="run"),
                **item(entity_id=run_id, write_id=LOST, updated_at=1, version=1),
            }
            for one in (later, marker):
                dynamodb.put_item(TableName=TABLE, Item=one)

        runner = Local(tmp_path, *arguments)

        def latest() -> Any:
            run = ask(runner, "GET", f"runs/get?run_id={run_id}")["run"]
            return {one["key"]: one["value"] for one in run["data"]["metrics"]}

        eventually(lambda: latest() == {"pointless": 1, "behind": 7.5})
        eventually(lambda: "unfinished writes completed in 1 runs" in runner.output)
        assert runner.end() == 0

        with opened(data) as dynamodb:
            found = everything(dynamodb)
        logged = [one for one in found if one["type"]["S"] == "run_metric_batch"]
        assert [point for one in logged for point in history.points_of_batch(one, "pointless")] == [
            Metric("pointless", 1, 1, 1)
        ]
        assert marker["SK"]["S"] not in {one["SK"]["S"] for one in found}
    finally:
        if runner.process.poll() is None:
            runner.process.kill()
            runner.process.wait()


def test_what_the_stream_says_of_the_last_writes(engine: RunningEngine, tmp_path: Path) -> None:
    file = engine.file
    assert (file.last_record(), file.unread(0), file.written_last(0, 31)) == (0, set(), set())
    for name in ("PENDING#run#a", "PENDING#run#b", "PENDINGS", "R#1"):
        engine.put(name)
    end = file.last_record()
    engine.put("R#2")
    assert file.unread(end) == {("P", "R#2")}
    assert file.unread(file.last_record()) == set()
    assert ("P", "R#2") not in file.written_last(end, 31)
    assert ("P", "R#1") in file.written_last(end, 31)
    assert sorted(file.keys_from("PENDING#run#")) == [
        ("P", "PENDING#run#a"),
        ("P", "PENDING#run#b"),
    ]
    checkpoints = Checkpoints(tmp_path / "checkpoints.json")
    assert checkpoints.lowest("Indexer") == 0
    for shard, number in (("one", "12"), ("two", "9")):
        checkpoints.set("arn:stream", "Indexer", shard, number)
    checkpoints.set("arn:stream", "Other", "one", "3")
    assert checkpoints.lowest("Indexer") == 9
