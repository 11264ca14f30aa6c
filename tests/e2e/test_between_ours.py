"""One of ours follows another: an import that is repeated brings what was added meanwhile, and no
more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e import old_server, store_reading
from tests.e2e.import_administrator import admin
from tests.servers import start_product, stopped

TABLE = "mlflow-serverless"

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def written(output: str) -> int:
    return sum(map(int, re.findall(r"\((\d+) written\)", output)))


def test_a_copy_follows(tmp_path: Path) -> None:
    first, second, data = tmp_path / "first", tmp_path / "second", tmp_path / "data"
    for folder in (first, second):
        folder.mkdir()
    with stopped(start_product(first)) as source:
        store_reading.fill(source.url, runs=6, models=1, traces=6)
        arguments = ("import", f"--from={source.url}", f"--data={data}")
        assert "0 differences, 0 failures" in admin(*arguments)
        assert written(admin(*arguments)) == 0
        run = old_server.call(source.url, "runs/create", experiment_id="1", start_time=7)["run"]
        run_id = run["info"]["run_id"]
        old_server.call(
            source.url, "runs/log-metric", run_id=run_id, key="k", value=1, timestamp=1, step=3
        )
        assert written(admin(*arguments)) == 1
        assert "0 differences" in admin("compare", *arguments[1:])
        at_source = store_reading.told(source.url)
    assert f"history {run_id} k" in at_source
    with stopped(start_product(second, "--data", str(data), TABLE_NAME=TABLE)) as copy:
        there = store_reading.told(copy.url)
    assert {key: there.get(key) for key in at_source} == at_source
    assert there.keys() == at_source.keys()
