"""What a stock server holds is brought over whole, once, however often and however interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from local.store.store import endpoint_of
from tests.e2e import old_server
from tests.e2e.import_administrator import admin, clean, command
from tests.engines import ROOT, client
from tests.servers import (
    Server,
    announced_table,
    followed,
    start_product,
    start_stock,
    stopped,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TABLE = "mlflow-serverless"
RUNS = int(os.environ.get("IMPORT_RUNS", "12"))
MODELS = int(os.environ.get("IMPORT_MODELS", "1"))
TRACES = int(os.environ.get("IMPORT_TRACES", "12"))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with stopped(start_stock(tmp_path_factory.mktemp("old"))) as server:
        old_server.fill(server.url, runs=RUNS, models=MODELS, traces=TRACES)
        yield server


def written(output: str) -> int:
    return sum(map(int, re.findall(r"\((\d+) written\)", output)))


@contextlib.contextmanager
def client_of(data: Path) -> Iterator[Any]:
    with contextlib.closing(client(endpoint_of(data / "store"))) as dynamodb:
        yield dynamodb


def content(data: Path) -> set[str]:
    """Every item of the table."""
    with client_of(data) as dynamodb:
        pages = dynamodb.get_paginator("scan").paginate(TableName=TABLE)
        return {
            json.dumps(item, sort_keys=True, default=repr)
            for page in pages
            for item in page["Items"]
        }


def test_a_repeated_import_writes_nothing(old: Server, tmp_path: Path) -> None:
    data = tmp_path / "data"
    arguments = (f"--from={old.url}", f"--data={data}")
    assert written(admin("import", *arguments)) > RUNS + TRACES
    before = content(data)
    assert "0 differences" in admin("compare", *arguments)
    assert written(admin("import", *arguments)) == 0
    # Without what the journal remembers everything is read again.
    forgetful = admin("import", *arguments, f"--journal={tmp_path / 'new.jsonl'}")
    assert written(forgetful) == 0
    assert content(data) == before

    # Table and data of an import are those of a runner that is told nothing else.
    with stopped(start_product(tmp_path, "--data", str(data), TABLE_NAME=TABLE)) as product:
        followed(product, TABLE_NAME=TABLE)
        _is_served(product, old)


def _is_served(product: Server, old: Server) -> None:
    """The client reads from the product what it reads from the old server."""
    for path, entries, key in (
        ("experiments/search", "experiments", "experiment_id"),
        ("logged-models/search", "models", "info"),
    ):
        fields = {"view_type": "ALL"} if key == "experiment_id" else {"experiment_ids": ["1"]}
        listed = [
            old_server.call(server.url, path, max_results=50, **fields)[entries]
            for server in (product, old)
        ]
        assert sorted(repr(row[key]) for row in listed[0]) == sorted(
            repr(row[key]) for row in listed[1]
        )
    search = {
        "experiment_ids": ["1", "2"],
        "filter": "params.p1 LIKE '%.1' AND tags.note LIKE 'né%'",
        "run_view_type": "ALL",
        "order_by": ["metrics.loss DESC"],
    }
    runs = [
        old_server.call(server.url, "runs/search", **search)["runs"] for server in (product, old)
    ]
    assert [_sorted(run) for run in runs[0]] == [_sorted(run) for run in runs[1]]

    for path in (
        *("mcp-servers", "mcp-servers/com.example/weather/versions"),
        *("gateway/endpoints/list", "gateway/endpoints/bindings/list", "gateway/budgets/list"),
        "gateway/guardrails/list",
    ):
        own, its = (_read(server.url, f"api/3.0/mlflow/{path}") for server in (product, old))
        assert own == its


def _read(url: str, path: str) -> Any:
    answer = urllib3.request("GET", f"{url}/{path}", retries=False, timeout=60)
    assert answer.status == 200, answer.data
    return answer.json()


def _sorted(run: Any) -> Any:
    for field, entries in run["data"].items():
        run["data"][field] = sorted(map(repr, entries))
    return run


@pytest.mark.parametrize(
    "points", [(RUNS // 2,), (3, RUNS // 2, RUNS + 1)], ids=["once", "three times"]
)
def test_a_killed_import_goes_on(old: Server, tmp_path: Path, points: tuple[int, ...]) -> None:
    data, journal = tmp_path / "data", tmp_path / "journal.jsonl"
    arguments = (f"--from={old.url}", f"--data={data}", f"--journal={journal}")
    kills = 0
    for lines in points:
        process = subprocess.Popen(
            command("import", *arguments),
            cwd=ROOT,
            env=clean(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None:
            if journal.exists() and journal.read_text().count("item") >= lines:
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.005)
        process.wait()
    assert kills
    admin("import", *arguments)
    assert "0 differences, 0 failures" in admin("compare", *arguments)


def test_what_went_on_meanwhile_follows(old: Server, tmp_path: Path) -> None:
    with stopped(start_product(tmp_path, TABLE_NAME=TABLE)) as product:
        engine = announced_table(product)
        files = str(tmp_path / "files")
        reached: dict[str, Any] = {"AWS_ENDPOINT_URL_DYNAMODB": engine, "ARTIFACT_FOLDER": files}
        # Its own experiment under the same name takes the runs.
        mine = old_server.call(product.url, "experiments/create", name="first")["experiment_id"]
        # Its own dataset of the same name and digest stays as it is.
        used = old_server.call(product.url, "runs/create", experiment_id=mine)["run"]["info"]
        dataset = {"name": "rows", "digest": "d0", "source_type": "local", "source": "mine"}
        logged = {"run_id": used["run_id"], "datasets": [{"dataset": dataset}]}
        old_server.call(product.url, "runs/log-inputs", **logged)
        # A judge of it names an endpoint, which comes with all of the gateway's configuration.
        whole = (f"--from={old.url}", f"--journal={tmp_path / 'g'}", "--with=gateway")
        admin("import", *whole, **reached)
        arguments = (f"--from={old.url}", f"--journal={tmp_path / 'j'}", "--experiment=first")
        admin("import", *arguments, **reached)
        response = old_server.call(
            product.url, "runs/search", experiment_ids=[mine], run_view_type="ALL", max_results=1
        )
        assert response["runs"]
        run = old_server.call(old.url, "runs/create", experiment_id="1", start_time=7)["run"]
        run_id = run["info"]["run_id"]
        old_server.call(old.url, "runs/log-metric", run_id=run_id, key="k", value=1, timestamp=1)
        admin("import", *arguments, **reached)
        old_server.call(old.url, "runs/log-metric", run_id=run_id, key="k", value=2, timestamp=2)
        old_server.call(old.url, "runs/set-tag", run_id=run_id, key="t", value="v")
        old_server.call(old.url, "runs/update", run_id=run_id, status="FAILED", end_time=9)
        old_server.call(old.url, "runs/delete", run_id=run_id)
        output = admin("import", *arguments, **reached)
        assert written(output) == 1
        admin("compare", *arguments, **reached)
        old_server.call(old.url, "runs/restore", run_id=run_id)
        admin("import", *arguments, **reached)
        # What people make at the target is no difference, what is gone from the server is one.
        own = old_server.call(product.url, "runs/create", experiment_id=mine)["run"]["info"]
        assert "0 differences" in admin("compare", *arguments, **reached)
        trace = f"tr-{2:032x}"
        old_server.call(old.url, "traces/delete-traces", experiment_id="1", request_ids=[trace])
        output = admin("compare", *arguments, expected=1, **reached)
        assert f"trace {trace}: deleted on the server" in output
        assert "1 differences" in output
        assert own["run_id"] not in output
        assert followed(product, TABLE_NAME=TABLE)
