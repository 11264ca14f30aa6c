"""A runner that is killed in parts while clients write, and clients that never repeat a call;
asserts nothing."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.storm import Client, Worker, history
from tests.engines import free_port
from tests.servers import Server, followed, healthy, start_product

KILLS = int(os.environ.get("KILLS", "3"))
SEED = int(os.environ.get("STORM_SEED", str(random.randrange(10**6))))
PATIENT, HASTY = 2, 2
RECOVERY_SECONDS = 10.0
SETTLED_SECONDS = 120.0


class Hasty(threading.Thread):
    """Logs to one run and never repeats a call: what is not answered was lost by its client."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__(name=f"hasty-{number}", daemon=True)
        self.url = url
        self.client = Client(url)
        created = self.client.call("POST", "experiments/create", {"name": f"hasty {number}"})[1]
        body = {**created, "start_time": 1}
        self.run_id = self.client.call("POST", "runs/create", body)[1]["run"]["info"]["run_id"]
        self.answered: dict[str, set[int]] = {}
        self.sent: dict[str, set[int]] = {}
        self.done = self.lost = 0
        self._ended = threading.Event()

    def run(self) -> None:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        for step in itertools.count(1):
            if self._ended.is_set():
                break
            names = [["a"], ["a", "b"], ["a", "b", "c"]][step % 3]
            for name in names:
                self.sent.setdefault(name, set()).add(step)
            if self._post(connection, step, names):
                for name in names:
                    self.answered.setdefault(name, set()).add(step)
                self.done += 1
            else:
                self.lost += 1
        connection.close()

    def finish(self) -> None:
        self._ended.set()

    def _post(self, connection: http.client.HTTPConnection, step: int, names: list[str]) -> bool:
        points = [{"key": name, "value": step, "timestamp": 1, "step": step} for name in names]
        body: dict[str, Any] = {"run_id": self.run_id, "metrics": points}
        if step % 5 == 0:
            body["params"] = [{"key": f"p{step}", "value": str(step)}]
        try:
            headers = {"Content-Type": "application/json"}
            path = "/api/2.0/mlflow/runs/log-batch"
            connection.request("POST", path, json.dumps(body), headers)
            reply = connection.getresponse()
            reply.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            time.sleep(0.02)
            return False
        return reply.status == 200

    def check(self) -> list[str]:
        """Nothing answered is lost, nothing is invented, and both sides of each metric agree."""
        data = self.client.call("GET", f"runs/get?run_id={self.run_id}")[1]["run"]["data"]
        latest = {metric["key"]: metric["step"] for metric in data.get("metrics", ())}
        faults = []
        for name, sent in self.sent.items():
            steps = [step for step, _ in history(self.client, self.run_id, name)]
            if len(steps) != len(set(steps)) or not set(steps) <= sent:
                faults.append(f"{name}: points that nobody logged")
            if lost := self.answered.get(name, set()) - set(steps):
                faults.append(f"{name}: {sorted(lost)} were answered and are lost")
            if latest.get(name) != max(steps, default=None):
                faults.append(f"{name}: latest {latest.get(name)}, logged {max(steps)}")
        self.client.close()
        return faults


class Product:
    """The runner on one folder, killed in parts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._killed = 0
        self.data = folder / "data"
        self.restarts = 0
        self.server = self._start()

    def _start(self) -> Server:
        return start_product(self._folder, "--data", str(self.data), port=self._port)

    def kill(self, what: str) -> None:
        """Kills and waits until the product works again, by itself or started anew."""
        self.end(what)
        self.recover()

    def end(self, what: str) -> None:
        """Kills the runner, the stream process or both."""
        following = self._following()
        while not following:
            time.sleep(0.05)
            following = self._following()
        if what in ("stream process", "both"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(following, signal.SIGKILL)
        if what in ("runner", "both"):
            self.server.kill()
        self._killed = following

    def recover(self) -> None:
        """Waits until the product works again; starts the runner anew if it has ended."""
        if self.server.process.poll() is None:
            self._wait_for_another(self._killed)
        if self.server.process.poll() is not None:
            self.server.kill()
            self.restarts += 1
            self.server = self._start()

    def processes(self) -> Iterator[int]:
        """The running processes: the runner and the one that follows the stream."""
        if self.server.process.poll() is None:
            yield self.server.process.pid
            following = self._following()
            if following:
                yield following

    def _following(self) -> int:
        """The process that follows the stream; 0 if there is none."""
        listed = subprocess.run(
            ["ps", "-o", "pid=,args=", "--ppid", str(self.server.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        lines = (line.split() for line in listed.splitlines() if "local.events" in line)
        return next((int(line[0]) for line in lines), 0)

    def _wait_for_another(self, former: int) -> None:
        """Until another process follows the stream; a runner without one for long is killed."""
        deadline = time.monotonic() + RECOVERY_SECONDS
        while self.server.process.poll() is None:
            if self._following() not in (0, former) and healthy(self.server.url):
                return
            if time.monotonic() > deadline:
                self.server.kill()
            time.sleep(0.05)


def done(writers: Sequence[Worker | Hasty]) -> int:
    """How many writes were answered."""
    return sum(writer.done for writer in writers)


def completed(server: Server) -> int:
    """As the runners have said."""
    matches = re.findall(r"unfinished writes completed in (\d+) runs", server.log.read_text())
    return sum(map(int, matches))


def wait_for(goal: int, writers: Sequence[Worker | Hasty]) -> None:
    """Until so many writes are answered."""
    while done(writers) < goal:
        assert all(writer.is_alive() for writer in writers), "a writer ended"
        time.sleep(0.002)


def settled(server: Server) -> str:
    """What ``verify`` says as soon as no write is on its way."""
    deadline = time.monotonic() + SETTLED_SECONDS
    while True:
        output = followed(server)
        if not re.search(r"[1-9]\d* writes on their way", output):
            return output
        assert time.monotonic() < deadline, output
        time.sleep(0.2)
