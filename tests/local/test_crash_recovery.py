"""What requests of a runner that was killed have left is completed when the next one starts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.events.checkpoints import Checkpoints
from local.store.store import endpoint_of
from mlcore.entities.metrics import Metric
from mlcore.repos.runs.history import metric_history
from tests.store_client import StoreClient

from .conftest import ROOT, TABLE, Local, OpenTable, eventually


def ask(runner: Local, method: str, path: str, **fields: Any) -> Any:
    body = json.dumps(fields) if fields else None
    status, answer, _ = runner.request(
        method, f"/api/2.0/mlflow/{path}", body, Content_Type="application/json"
    )
    assert status == 200, answer
    return json.loads(answer)


@contextlib.contextmanager
def client_of(data: Path) -> Iterator[Any]:
    """A client of the store in the folder of a runner that has ended."""
    with contextlib.closing(StoreClient(endpoint_of(data / "store"))) as client:
        yield client


def everything(dynamodb: Any) -> list[dict[str, Any]]:
    pages = dynamodb.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
    return [item for page in pages for item in page["Items"]]


def test_both_sides_are_whole_after_a_start(tmp_path: Path) -> None:
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
        with client_of(data) as dynamodb:
            items = everything(dynamodb)
            batches = {
                key: item
                for item in items
                if item["type"]["S"] == "run_metric_batch"
                for key in metric_history.batch_points(item)
            }
            lost = batches["pointless"]
            dynamodb.delete_item(TableName=TABLE, Key={name: lost[name] for name in ("PK", "SK")})
            (later,) = metric_history.items("0", run_id, [Metric("behind", 7.5, 7, 7)])
            dynamodb.put_item(TableName=TABLE, Item=later)

        runner = Local(tmp_path, *arguments)

        def latest() -> Any:
            run = ask(runner, "GET", f"runs/get?run_id={run_id}")["run"]
            return {metric["key"]: metric["value"] for metric in run["data"]["metrics"]}

        eventually(lambda: latest() == {"pointless": 1, "behind": 7.5})
        eventually(lambda: "unfinished writes completed in 1 runs" in runner.output)
        assert runner.end() == 0

        with client_of(data) as dynamodb:
            items = everything(dynamodb)
        logged = [item for item in items if item["type"]["S"] == "run_metric_batch"]
        assert [
            point
            for batch in logged
            for point in metric_history.points_of_batch(batch, "pointless")
        ] == [Metric("pointless", 1, 1, 1)]
    finally:
        if runner.process.poll() is None:
            runner.process.kill()
            runner.process.wait()


def test_what_the_stream_says_of_the_last_writes(opened: OpenTable, tmp_path: Path) -> None:
    file = opened.file
    assert (file.last_record(), file.unread_keys(0)) == (0, set())
    assert file.keys_written_before(0, 31) == set()
    for name in ("R#0", "R#1"):
        opened.put(name)
    end = file.last_record()
    opened.put("R#2")
    assert file.unread_keys(end) == {("P", "R#2")}
    assert file.unread_keys(file.last_record()) == set()
    assert ("P", "R#2") not in file.keys_written_before(end, 31)
    assert ("P", "R#1") in file.keys_written_before(end, 31)
    checkpoints = Checkpoints(tmp_path / "checkpoints.json")
    assert checkpoints.lowest("Indexer") == 0
    for shard, number in (("one", "12"), ("two", "9")):
        checkpoints.set("arn:stream", "Indexer", shard, number)
    checkpoints.set("arn:stream", "Other", "one", "3")
    assert checkpoints.lowest("Indexer") == 9
