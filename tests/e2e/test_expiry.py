"""A deleted run on a running product: its items get an end, lose it, and go with its files."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local import environment
from tests.engines import client
from tests.servers import Server, announced_table, followed, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

WAIT_SECONDS = 60
API = "/api/2.0/mlflow/"
CONFIG = "/api/3.0/mlflow-serverless/config"


class Client:
    def __init__(self, server: Server) -> None:
        self._host = server.url.removeprefix("http://")
        self.table = client(announced_table(server))

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body)
            connection.request(method, path, data, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def must(self, method: str, path: str, body: Any = None) -> Any:
        status, text = self.ask(method, path, body)
        assert status == 200, (path, status, text)
        return json.loads(text) if text else {}

    def ends(self, experiment_id: str, run_id: str) -> list[int | None]:
        """When the items of a run expire, that of the run itself first."""
        items = self.table.query(
            TableName=environment.table_name(),
            KeyConditionExpression="PK = :pk AND begins_with(SK, :sk)",
            ExpressionAttributeValues={
                ":pk": {"S": f"EXP#{experiment_id}"},
                ":sk": {"S": f"R#{run_id}"},
            },
            ConsistentRead=True,
        )["Items"]
        return [int(item["ttl"]["N"]) if "ttl" in item else None for item in items]


def wait(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def furnished(client: Client, experiment_id: str) -> str:
    run_id = client.must("POST", API + "runs/create", {"experiment_id": experiment_id})["run"][
        "info"
    ]["run_id"]
    batch = {
        "run_id": run_id,
        "metrics": [{"key": k, "value": 1, "timestamp": 1, "step": 0} for k in "ab"],
        "params": [{"key": "p", "value": "v"}],
        "tags": [{"key": "t", "value": "v"}],
    }
    client.must("POST", API + "runs/log-batch", batch)
    client.must("POST", API + "runs/update", {"run_id": run_id, "status": "FINISHED"})
    assert client.ask("PUT", _file(experiment_id, run_id), b"content")[0] == 200
    return str(run_id)


def _file(experiment_id: str, run_id: str) -> str:
    return f"/api/2.0/mlflow-artifacts/artifacts/{experiment_id}/{run_id}/artifacts/f"


def test_a_deleted_run_goes_with_its_files(tmp_path: Path) -> None:
    with stopped(start_product(tmp_path)) as server:
        client = Client(server)
        refused = client.ask("PUT", f"{CONFIG}/ttl_policy", {"value": {"deleted_runs": "x"}})
        assert refused[0] == 400
        client.must("PUT", f"{CONFIG}/ttl_policy", {"value": {"deleted_runs": "7d"}})
        made = client.must("POST", API + "experiments/create", {"name": "e"})
        experiment_id = str(made["experiment_id"])
        run_id, other = furnished(client, experiment_id), furnished(client, experiment_id)
        followed(server)

        def ends() -> list[int | None]:
            return client.ends(experiment_id, run_id)

        everything = len(ends())
        assert everything > 5  # the run, its params and tags, its points
        for call, expires in (("delete", True), ("restore", False), ("delete", True)):
            client.must("POST", f"{API}runs/{call}", {"run_id": run_id})
            wait(lambda: all((end is not None) is expires for end in ends()), ends)  # noqa: B023
            assert len(ends()) == everything
        assert client.ask("GET", _file(experiment_id, run_id))[0] == 200
        # As DynamoDB does when the time has come.
        client.table.delete_item(
            TableName=environment.table_name(),
            Key={"PK": {"S": f"EXP#{experiment_id}"}, "SK": {"S": f"R#{run_id}"}},
        )
        wait(lambda: client.ask("GET", _file(experiment_id, run_id))[0] == 404, ends)
        wait(lambda: ends() == [], ends)
        assert client.ask("GET", f"{API}runs/get?run_id={run_id}")[0] == 404
        assert client.ask("GET", _file(experiment_id, other))[0] == 200
        assert all(end is None for end in client.ends(experiment_id, other))
        followed(server)
