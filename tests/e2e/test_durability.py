"""Nothing acknowledged is lost: many writers to one run, and kill -9 in the middle of writing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.e2e.hammer import Tracking, batch, hammer
from tests.examples import number_of
from tests.servers import Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_eight_processes_log_to_one_run(product: Server) -> None:
    assert hammer(product.url, batches=number_of(60)) == []


def keep_writing(server: Server, seconds: float) -> tuple[str, str, int]:
    """Logs until the server is killed: (experiment, run, number of batches acknowledged)."""
    with Tracking(server.url) as tracking:
        body: dict[str, object] = {"name": "kept"}
        experiment = tracking.call("POST", "experiments/create", body)["experiment_id"]
        body = {"experiment_id": experiment, "run_name": "kept", "start_time": 1}
        run_id = tracking.call("POST", "runs/create", body)["run"]["info"]["run_id"]
        acknowledged = 0
        while not tracking.errors and acknowledged < 5000:
            tracking.call("POST", "runs/log-batch", {"run_id": run_id, **batch(0, acknowledged, 2)})
            acknowledged += not tracking.errors
            if acknowledged == 11:
                threading.Timer(seconds, server.kill).start()
        assert tracking.errors, "the server was not killed while the client was writing"
        return experiment, run_id, acknowledged


def test_kill_and_restart_keep_what_was_acknowledged(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    server = start_product(tmp_path, "--data", data)
    try:
        experiment, run_id, acknowledged = keep_writing(server, 1.5)
    finally:
        server.kill()
    assert acknowledged > 10

    server = start_product(tmp_path, "--data", data)
    with stopped(server), Tracking(server.url) as again:

        def steps() -> list[int]:
            path = f"metrics/get-history?run_id={run_id}&metric_key=writer%200/m0"
            return [point["step"] for point in again.call("GET", path)["metrics"]]

        response = again.call("GET", "experiments/get-by-name?experiment_name=kept")
        assert response["experiment"]["experiment_id"] == experiment
        # The call that was under way may have been executed without its answer.
        assert steps() in (list(range(acknowledged)), list(range(acknowledged + 1)))
        # The retry of that call completes it and doubles nothing.
        again.call("POST", "runs/log-batch", {"run_id": run_id, **batch(0, acknowledged, 2)})
        assert steps() == list(range(acknowledged + 1))
        run = again.call("GET", f"runs/get?run_id={run_id}")["run"]
        tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
        assert tags["writer 0"] == str(acknowledged)
        response = again.call("POST", "runs/search", {"experiment_ids": [experiment]})
        assert [run["info"]["run_id"] for run in response["runs"]] == [run_id]
        assert again.errors == []
