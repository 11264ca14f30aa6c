"""Nothing acknowledged is lost: many writers to one run, and kill -9 in the middle of writing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.e2e.hammer import Tracking, batch, hammer
from tests.servers import Server, start_product

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_eight_processes_log_to_one_run(product: Server) -> None:
    assert hammer(product.url) == []


def test_kill_and_restart_keep_what_was_acknowledged(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    server = start_product(tmp_path, "--data", data)
    acknowledged = 0
    tracking = Tracking(server.url)
    try:
        tracking.call("POST", "experiments/create", {"name": "kept"})
        found = tracking.call("GET", "experiments/get-by-name?experiment_name=kept")
        experiment = found["experiment"]["experiment_id"]
        body = {"experiment_id": experiment, "run_name": "kept", "start_time": 1}
        run_id = tracking.call("POST", "runs/create", body)["run"]["info"]["run_id"]
        threading.Timer(1.5, server.kill).start()
        while not tracking.errors and acknowledged < 5000:
            tracking.call("POST", "runs/log-batch", {"run_id": run_id, **batch(0, acknowledged, 2)})
            acknowledged += not tracking.errors
    finally:
        server.kill()
    assert tracking.errors, "the server was not killed while the client was writing"
    assert acknowledged > 20

    server = start_product(tmp_path, "--data", data)
    try:
        again = Tracking(server.url)
        found = again.call("GET", "experiments/get-by-name?experiment_name=kept")
        assert found["experiment"]["experiment_id"] == experiment
        history = again.call("GET", f"metrics/get-history?run_id={run_id}&metric_key=writer%200/m0")
        steps = [point["step"] for point in history["metrics"]]
        # The call that was under way may have been executed without its answer.
        assert steps in (list(range(acknowledged)), list(range(acknowledged + 1)))
        # The retry of that call completes it and doubles nothing.
        last = {"run_id": run_id, **batch(0, acknowledged, 2)}
        again.call("POST", "runs/log-batch", last)
        history = again.call("GET", f"metrics/get-history?run_id={run_id}&metric_key=writer%200/m0")
        assert [point["step"] for point in history["metrics"]] == list(range(acknowledged + 1))
        run = again.call("GET", f"runs/get?run_id={run_id}")["run"]
        tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
        assert tags["writer 0"] == str(acknowledged)
        found = again.call("POST", "runs/search", {"experiment_ids": [experiment]})
        assert [one["info"]["run_id"] for one in found["runs"]] == [run_id]
        assert again.errors == []
    finally:
        server.stop()
