"""What the system tables cost a laptop while runs are logged: processor seconds of the publisher's
processes, and commits of each table.

.venv/bin/python -m bench.publishing 3000 300

starts the local runner on a folder of its own, logs so many runs within so many seconds (three
requests each: create, log-batch of 10 metrics, 5 params and 2 tags, update), and asks for fresh
tables at the end, so that every row is published; then five times beside a client that goes on.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bench.processes import TICKS, processes, shown

API = "/api/2.0/mlflow/"
LOGS_EVERY_SECONDS = 0.05
SQL = "/api/3.0/mlflow-serverless/sql"


class Client:
    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def post(self, path: str, **body: Any) -> Any:
        self._connection.request(
            "POST", path, json.dumps(body), {"Content-Type": "application/json"}
        )
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{path}: {answer.status} {text.decode()}")
        return json.loads(text)


def main(arguments: list[str]) -> int:
    runs, seconds = (int(one) for one in (arguments or ["3000", "300"]))
    with tempfile.TemporaryDirectory() as folder:
        port = _free_port()
        command = [sys.executable, "-m", "local", "--port", str(port), "--data", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as runner:
            try:
                _wait(port)
                _measure(Client(port), runner.pid, Path(folder), runs, seconds)
            finally:
                runner.terminate()
    return 0


def _measure(client: Client, pid: int, folder: Path, runs: int, seconds: int) -> None:
    experiment = client.post(f"{API}experiments/create", name="bench")["experiment_id"]
    began = time.monotonic()
    for number in range(runs):
        time.sleep(max(0.0, began + number * seconds / runs - time.monotonic()))
        _log(client, experiment, number)
    logged = time.monotonic() - began
    while_logging = _ended_children(pid)
    asked = _ask(client, fresh=True)
    whole = _ended_children(pid)
    _ask(client, fresh=False)
    query = _ended_children(pid) - whole
    print(f"{runs} runs logged in {logged:.0f} s; rows of runs and history: {asked['rows'][0]}")
    print(f"publisher: {while_logging:.1f} CPU s meanwhile, {whole - query:.1f} with what was left")
    print(f"runner:    {shown(processes(pid), 'seconds')} CPU s")
    for log in sorted((folder / "system-tables/files/system/mlflow").glob("*/_delta_log")):
        commits = len(list(log.glob("*.json")))
        print(f"{log.parent.name}: {commits} commits")
    _measure_fresh(client, experiment)


def _ask(client: Client, *, fresh: bool) -> Any:
    return client.post(
        SQL,
        sql="SELECT (SELECT count(*) FROM system.mlflow.runs_latest), "
        "(SELECT count(*) FROM system.mlflow.run_metrics_history)",
        fresh=fresh,
    )


def _measure_fresh(client: Client, experiment: str) -> None:
    """How long fresh tables take beside another client that never stops logging."""
    made = client.post(f"{API}runs/create", experiment_id=experiment, start_time=0)
    run = made["run"]["info"]["run_id"]
    over = threading.Event()
    other = Client(client.port)

    def log() -> None:
        step = 0
        while not over.wait(LOGS_EVERY_SECONDS):
            step += 1
            other.post(
                f"{API}runs/log-metric", run_id=run, key="m", value=1, step=step, timestamp=1
            )

    thread = threading.Thread(target=log)
    thread.start()
    took = []
    for _ in range(5):
        began = time.monotonic()
        _ask(client, fresh=True)
        took.append(time.monotonic() - began)
    over.set()
    thread.join()
    print(
        f"fresh beside a metric every {LOGS_EVERY_SECONDS} s: "
        + ", ".join(f"{one:.1f}" for one in took)
        + " s"
    )


def _log(client: Client, experiment: str, number: int) -> None:
    now = int(time.time() * 1000)
    made = client.post(f"{API}runs/create", experiment_id=experiment, start_time=now)
    run = made["run"]["info"]["run_id"]
    metrics = [
        {"key": f"metric-{name}", "value": number / (name + 1), "step": 0, "timestamp": now}
        for name in range(10)
    ]
    client.post(
        f"{API}runs/log-batch",
        run_id=run,
        metrics=metrics,
        params=[{"key": f"param-{name}", "value": str(number)} for name in range(5)],
        tags=[{"key": f"tag-{name}", "value": str(number)} for name in range(2)],
    )
    client.post(f"{API}runs/update", run_id=run, status="FINISHED", end_time=now + 1000)


def _ended_children(pid: int) -> float:
    """Processor seconds of the processes that the runner started and that have ended: those of the
    publisher, and of queries."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[13:15])) / TICKS


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _wait(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the runner does not answer")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
