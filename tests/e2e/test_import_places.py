"""An import from a server of long ago, with the table and the files in AWS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import urllib3

from local.table import client, ensure
from local.template import read
from tests import ministack
from tests.e2e.clients import OLD_SERVER, python
from tests.e2e.import_administrator import admin
from tests.engines import REGION, ROOT
from tests.servers import Server, start_old_stock, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FILES = "api/2.0/mlflow-artifacts/artifacts"
TABLE, BUCKET = "imported-table", "imported-files"


def call(server: Server, method: str, path: str, **fields: Any) -> Any:
    given: dict[str, Any] = {"json" if method == "POST" else "fields": fields}
    answer = urllib3.request(method, f"{server.url}/api/2.0/{path}", timeout=60, **given)
    assert answer.status == 200, answer.data
    return answer.json()


def filled(server: Server) -> str:
    """An experiment with a run in each state, which old clients know."""
    made: str = call(server, "POST", "mlflow/experiments/create", name="né/w")["experiment_id"]
    for number, status in enumerate(("RUNNING", "FINISHED", "FAILED")):
        run = call(
            server,
            "POST",
            "mlflow/runs/create",
            experiment_id=made,
            run_name=f"run {number}",
            start_time=number,
        )
        run_id = run["run"]["info"]["run_id"]
        call(
            server,
            "POST",
            "mlflow/runs/log-batch",
            run_id=run_id,
            metrics=[
                {"key": "loss", "value": value, "timestamp": 9 - step, "step": step}
                for step, value in enumerate((0.5, "NaN", "-Infinity", 1e-300))
            ],
            params=[{"key": "p/a", "value": "é"}, {"key": "empty", "value": ""}],
            tags=[{"key": "t", "value": "x" * 500}],
        )
        dataset = {"name": "d", "digest": "1", "source_type": "http", "source": "{}"}
        call(
            server, "POST", "mlflow/runs/log-inputs", run_id=run_id, datasets=[{"dataset": dataset}]
        )
        if number:
            call(server, "POST", "mlflow/runs/update", run_id=run_id, status=status, end_time=7)
    call(server, "POST", "mlflow/runs/delete", run_id=run_id)
    _registry(server, run["run"]["info"])
    return made


def _registry(server: Server, run: dict[str, Any]) -> None:
    location = run["artifact_uri"].removeprefix("mlflow-artifacts:/")
    sent = urllib3.request("PUT", f"{server.url}/{FILES}/{location}/net/a b.txt", body=b"1 2 3")
    assert sent.status == 200, sent.data
    name = "it's"
    call(server, "POST", "mlflow/registered-models/create", name=name, description="d")
    for _ in range(2):
        source = f"{run['artifact_uri']}/net"
        version = {"name": name, "source": source, "run_id": run["run_id"]}
        call(server, "POST", "mlflow/model-versions/create", **version)
    stage = {"stage": "Production", "archive_existing_versions": False}
    call(server, "POST", "mlflow/model-versions/transition-stage", name=name, version="1", **stage)
    call(server, "POST", "mlflow/registered-models/alias", name=name, alias="champion", version="2")


def server_state(server: Server, experiment_id: str) -> list[str]:
    """What a server says of an experiment's runs and of the registry."""
    runs = call(
        server,
        "POST",
        "mlflow/runs/search",
        experiment_ids=[experiment_id],
        run_view_type="ALL",
    )["runs"]
    statements = []
    for run in runs:
        run["data"] = {name: sorted(map(repr, rows)) for name, rows in run["data"].items()}
        run.pop("outputs", None)  # which a server of that time does not know
        run_id = run["info"]["run_id"]
        statements.append(json.dumps(run, sort_keys=True))
        history = call(
            server, "GET", "mlflow/metrics/get-history", run_id=run_id, metric_key="loss"
        )
        statements.append(repr(sorted(map(repr, history["metrics"]))))
    registry = call(server, "GET", "mlflow/registered-models/search")
    for model in registry["registered_models"]:
        # A server of that time lists them in another order.
        model["latest_versions"].sort(key=lambda version: version["version"])
    statements.append(json.dumps(registry, sort_keys=True))
    location = runs[0]["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    file = urllib3.request("GET", f"{server.url}/{FILES}/{location}/net/a b.txt")
    return [*statements, file.data.decode()]


def test_from_an_old_server_into_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("old", "aws", "product"):
        (tmp_path / name).mkdir()
    with (
        stopped(start_old_stock(tmp_path / "old", python(OLD_SERVER))) as old,
        ministack.running(tmp_path / "aws") as aws,
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", aws)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        ensure(client("dynamodb"), TABLE, read(ROOT / "template.yaml", TABLE, REGION, {}).table)
        ministack.make_bucket(aws, BUCKET)
        experiment_id = filled(old)
        reached: dict[str, Any] = {
            "AWS_ENDPOINT_URL_DYNAMODB": aws,
            "AWS_ENDPOINT_URL_S3": aws,
            "TABLE_NAME": TABLE,
            "ARTIFACT_BUCKET": BUCKET,
        }
        arguments = (f"--from={old.url}", f"--journal={tmp_path / 'journal'}")
        admin("import", *arguments, **reached)
        assert "0 differences, 0 failures" in admin("compare", *arguments, **reached)
        with stopped(start_product(tmp_path / "product", **reached)) as product:
            for imported, original in zip(
                server_state(product, experiment_id), server_state(old, experiment_id), strict=True
            ):
                assert imported == original
