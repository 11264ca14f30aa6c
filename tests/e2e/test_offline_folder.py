"""A folder of runs that was logged without a server comes in whole, with its files, however often
and however interrupted, and also where it was moved to."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from local.store.store import endpoint_of
from tests.e2e import store_reading
from tests.e2e.import_administrator import admin, killed_at
from tests.engines import ROOT, client
from tests.servers import environment, start_product, stopped

RUNS = int(os.environ.get("OFFLINE_RUNS", "7"))
TABLE = "mlflow-serverless"
STAGES = ("experiment ", "run ", "files ", "logged model ", "registered model ")
"""What the journal names when an import has come so far."""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def content(data: Path) -> set[str]:
    """Every item of the table, and every file."""
    with contextlib.closing(client(endpoint_of(data / "store"))) as dynamodb:
        pages = dynamodb.get_paginator("scan").paginate(TableName=TABLE)
        items = {
            json.dumps(item, sort_keys=True, default=repr)
            for page in pages
            for item in page["Items"]
        }
    kept = (path for path in (data / "artifacts").rglob("*") if path.is_file())
    return items | {f"{path.relative_to(data)} {path.read_bytes()!r}" for path in kept}


def test_a_folder_of_runs(tmp_path: Path) -> None:
    logged = tmp_path / "cluster/mlruns"
    logged.parent.mkdir()
    subprocess.run(
        [sys.executable, str(ROOT / "tests/e2e/offline_script.py"), str(logged), str(RUNS)],
        env=environment(MLFLOW_ALLOW_FILE_STORE="true"),
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    brought = tmp_path / "brought/mlruns"
    brought.parent.mkdir()
    logged.rename(brought)
    data, journal = tmp_path / "data", tmp_path / "journal.jsonl"
    arguments = ("import", f"--from={brought}", f"--data={data}", f"--journal={journal}")
    kills = sum(killed_at(stage, journal, *arguments) for stage in STAGES)
    assert kills
    assert "0 differences, 0 failures" in admin(*arguments)
    before = content(data)
    # Again, and again without what the journal remembers.
    for remembered in (journal, tmp_path / "another.jsonl"):
        output = admin(*arguments[:-1], f"--journal={remembered}")
        assert sum(map(int, re.findall(r"\((\d+) written\)", output))) == 0
        assert content(data) == before
    with stopped(start_product(tmp_path, "--data", str(data), TABLE_NAME=TABLE)) as product:
        stored = store_reading.told(product.url)
    ids = {path.parent.name for path in brought.glob("*/*/artifacts")}
    assert len(ids) == RUNS
    for run_id in ids:
        assert f"run {run_id}" in stored
        assert list(stored[f"files {run_id}"]) == ["texts/a b ü.txt"]
        assert len(stored[f"history {run_id} val/loss"]) == 20
    sizes = sorted(len(stored[f"files {run_id}"]["texts/a b ü.txt"]) for run_id in ids)
    assert sizes == [len("words ") * number for number in range(RUNS)]
    assert any(key.startswith("logged model ") for key in stored)
    (version,) = (read for key, read in stored.items() if key.startswith("version "))
    assert "mlflow-artifacts:/" in repr(version)
    assert str(tmp_path) not in repr(stored)
