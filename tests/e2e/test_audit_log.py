"""kill -9 of the runner while clients write with a login: each write that was answered is in
``audit_log`` once, nothing that was refused is there as done, and the chain holds.

AUDIT_KILLS is how often the runner is killed, AUDIT_WRITES how many writes are answered at least.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.engines import ROOT, free_port
from tests.servers import ADMIN, Server, environment, start_product

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("AUDIT_KILLS", "2"))
WRITES = int(os.environ.get("AUDIT_WRITES", "300"))
WRITERS = 4
LOGIN = {"MLFLOW_AUTH_ADMIN_USERNAME": ADMIN[0], "MLFLOW_AUTH_ADMIN_PASSWORD": ADMIN[1]}
STRANGER = ("stranger", "a long password")
V2 = "/api/2.0/mlflow"


class Caller:
    """A client with a login that repeats nothing."""

    def __init__(self, url: str, login: tuple[str, str]) -> None:
        self.address = urlsplit(url).netloc
        text = base64.b64encode(":".join(login).encode()).decode()
        self.headers = {"Content-Type": "application/json", "Authorization": f"Basic {text}"}
        self.connection = http.client.HTTPConnection(self.address, timeout=30)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Returns status and answer; (0, None) if none came."""
        try:
            sent = None if body is None else json.dumps(body)
            self.connection.request(method, path, sent, self.headers)
            reply = self.connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            time.sleep(0.02)
            return 0, None
        return reply.status, json.loads(text) if text.startswith(b"{") else None


class Writer(threading.Thread):
    """Creates runs as the administrator, and tries to delete each as a stranger."""

    def __init__(self, url: str, experiment_id: str) -> None:
        super().__init__(daemon=True)
        self.admin, self.stranger = Caller(url, ADMIN), Caller(url, STRANGER)
        self.experiment_id = experiment_id
        self.created: list[str] = []
        self.refused: list[str] = []
        self.faults: list[str] = []
        self.ends = threading.Event()

    def run(self) -> None:
        for number in itertools.count():
            if self.ends.is_set():
                self.admin.connection.close()
                self.stranger.connection.close()
                return
            body = {"experiment_id": self.experiment_id, "start_time": number + 1}
            status, answer = self.admin.call("POST", f"{V2}/runs/create", body)
            if status != 200:
                continue
            run_id = answer["run"]["info"]["run_id"]
            self.created.append(run_id)
            if number % 5 == 0:
                status, _ = self.stranger.call("POST", f"{V2}/runs/delete", {"run_id": run_id})
                if status == 403:
                    self.refused.append(run_id)
                elif status == 200:
                    self.faults.append(f"a stranger deleted {run_id}")


def ask(url: str, sql: str, login: tuple[str, str] = ADMIN) -> tuple[int, Any]:
    body = {"sql": sql, "fresh": True}
    caller = Caller(url, login)
    answer = caller.call("POST", "/api/3.0/mlflow-serverless/sql", body)
    caller.connection.close()
    return answer


def rows_of(url: str, rpc: str) -> list[tuple[str, str, str]]:
    """(user, outcome, run id) of all rows about a route."""
    rows: list[tuple[str, str, str]] = []
    while True:
        status, answer = ask(
            url,
            "SELECT user_name, outcome, entity FROM system.mlflow.audit_log "
            f"WHERE rpc LIKE '%/mlflow/{rpc}' ORDER BY sequence LIMIT 5000 OFFSET {len(rows)}",
        )
        assert status == 200, answer
        rows += [
            (who, how, json.loads(what).get("run_id", "")) for who, how, what in answer["rows"]
        ]
        if len(answer["rows"]) < 5000:
            return rows


def verified(data: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local.admin", "audit", "verify", "--data", str(data)]
    return subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )


def test_every_answered_write_is_audited_once(tmp_path: Path) -> None:
    pytest.importorskip("mltables.publisher")
    data, port = tmp_path / "data", free_port()

    def start() -> Server:
        return start_product(tmp_path, "--data", str(data), "--auth", port=port, **LOGIN)

    server = start()
    try:
        admin = Caller(server.url, ADMIN)
        body = {"username": STRANGER[0], "password": STRANGER[1]}
        assert admin.call("POST", f"{V2}/users/create", body)[0] == 200
        status, made = admin.call("POST", f"{V2}/experiments/create", {"name": "audited"})
        assert status == 200
        admin.connection.close()
        writers = [Writer(server.url, made["experiment_id"]) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        for kill in range(KILLS + 1):
            while sum(len(writer.created) for writer in writers) < WRITES * (kill + 1) / (
                KILLS + 1
            ):
                time.sleep(0.02)
            if kill < KILLS:
                if kill % 2:
                    ask(server.url, "SELECT 1")  # a publication before it, so that rows exist
                server.kill()
                server = start()
        for writer in writers:
            writer.ends.set()
        for writer in writers:
            writer.join(60)
        assert [fault for writer in writers for fault in writer.faults] == []
        created = rows_of(server.url, "runs/create")
        counted = Counter(run_id for _, outcome, run_id in created if outcome == "done")
        lost = [run_id for writer in writers for run_id in writer.created if counted[run_id] != 1]
        assert not lost, [(run_id, counted[run_id]) for run_id in lost]
        assert {user for user, *_ in created} == {ADMIN[0]}
        deleted = rows_of(server.url, "runs/delete")
        assert {(user, outcome) for user, outcome, _ in deleted} == {(STRANGER[0], "refused")}
        refused = Counter(run_id for *_, run_id in deleted)
        assert all(refused[run_id] == 1 for writer in writers for run_id in writer.refused)
        assert sum(len(writer.created) for writer in writers) >= WRITES
        # A stranger may not ask at all.
        assert ask(server.url, "SELECT count(*) FROM system.mlflow.audit_log", STRANGER)[0] == 403
        checked = verified(data)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert ", 0 problems" in checked.stdout
    finally:
        server.stop()
