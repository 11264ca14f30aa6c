"""The runner's memory while calls of all kinds go on: ``python -m bench.endurance --calls 100000``.

Makes one of everything that routes are about, and sends each route its request, again and again,
over HTTP to a runner with its indexer. When each route had its request a day is over: what it left
is deleted, and somebody else begins, so that lists without pages stay as long as a day makes them.
What is deleted stays in the table, which grows. Memory is what a process has for itself, its share
of what is shared included. Ends with 1 when an answer was a 5xx.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from bench.environment import stand_alone
from bench.processes import Process, processes, shown
from local import environment
from mlcore.http import PlainRoute
from tests.contract.catalog_api import FILES
from tests.contract.conftest import pointed
from tests.contract.route_requests import REQUESTS
from tests.contract.route_world import DOMAINS, PASSWORD, Fields, World, routes_of
from tests.engines import memory_folder
from tests.servers import Server, announced_engine, start_product, stopped

ADMIN: Final = ("admin", "password1234")
REST_SECONDS: Final = 2.0
SWITCHED_OFF: Final = "/3.0/mlflow/workspaces"
"""Answered by 503 where a server has no workspaces, as MLflow's does."""

_GATEWAY: Final = "DELETE /3.0/mlflow/gateway"
ENDINGS: Final[tuple[tuple[str, str, str], ...]] = (
    ("endpoint", f"{_GATEWAY}/endpoints/delete", "endpoint_id"),
    ("guardrail", f"{_GATEWAY}/guardrails/delete", "guardrail_id"),
    ("other_guardrail", f"{_GATEWAY}/guardrails/delete", "guardrail_id"),
    ("budget", f"{_GATEWAY}/budgets/delete", "budget_policy_id"),
    ("definition", f"{_GATEWAY}/model-definitions/delete", "model_definition_id"),
    ("other_definition", f"{_GATEWAY}/model-definitions/delete", "model_definition_id"),
    ("secret", f"{_GATEWAY}/secrets/delete", "secret_id"),
    ("name+", "DELETE /3.0/mlflow/mcp-servers/{name+}", ""),
    ("webhook_id", "DELETE /2.0/mlflow/webhooks/{webhook_id}", ""),
    ("model_name", "DELETE /2.0/mlflow/registered-models/delete", "name"),
    ("filed_name", "DELETE /2.0/mlflow/registered-models/delete", "name"),
    ("role", "DELETE /3.0/mlflow/roles/delete", "role_id"),
    ("user", "DELETE /2.0/mlflow/users/delete", "username"),
    ("holder", "DELETE /2.0/mlflow/users/delete", "username"),
    ("other_experiment", "POST /2.0/mlflow/experiments/delete", "experiment_id"),
    ("experiment", "POST /2.0/mlflow/experiments/delete", "experiment_id"),
)
"""By what a world made: the route that takes it away, and in which field it is named."""


class Reached(World):
    """Sends to a server instead of to handlers."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.statuses: Counter[int] = Counter()
        self.broken: Counter[str] = Counter()
        self._login = ""
        self._left: list[dict[str, str]] = []
        self.log_in(*ADMIN)

    def log_in(self, username: str, password: str) -> None:
        """Further requests are this user's."""
        self._login = "Basic " + b64encode(f"{username}:{password}".encode()).decode()

    def begin_day(self, number: int) -> None:
        """Makes an administrator, whose work it is: grants of what somebody made are one list."""
        self.log_in(*ADMIN)
        caller = {"username": f"day {number}", "password": PASSWORD}
        self.made("POST", "/2.0/mlflow/users/create", **caller)
        promoted = {"username": caller["username"], "is_admin": True}
        self.made("PATCH", "/2.0/mlflow/users/update-admin", **promoted)
        self.log_in(*caller.values())

    def prepare(self, domain: str = "") -> None:
        before = dict(self.names)
        super().prepare(domain)
        new = {name: value for name, value in self.names.items() if before.get(name) != value}
        self._left.append(new)

    def _model(self) -> None:
        super()._model()
        self.names["model_name"] = self.names["name"]

    def _files(self) -> None:
        super()._files()
        self.names["filed_name"] = self._filled("filed {name}")

    def end_day(self, number: int) -> Iterator[None]:
        """Stops after each request."""
        left, self._left = self._left, []
        for self.names in left:
            for made, route, field in ENDINGS:
                if made in self.names:
                    method, _, path = route.partition(" ")
                    self.send(method, path, {field: self.names[made]} if field else {})
                    yield
        self.names = {}
        self.log_in(*ADMIN)
        self.send("DELETE", "/2.0/mlflow/users/delete", {"username": f"day {number}"})
        yield

    def send(self, method: str, path: str, fields: Fields) -> tuple[int, Any]:
        route = routes_of(self._domains[f"{method} {path}"])[f"{method} {path}"]
        prefix = "/api"
        if isinstance(route, PlainRoute):
            prefix = ""
        elif route.ajax_only:
            prefix = "/ajax-api"
        sent = json.loads(self._filled(json.dumps(fields)))
        place = prefix + self._filled(path)
        if method == "GET" or "upload-artifact" in path:
            place += f"?{urlencode(sent, doseq=True)}"
        headers = {
            "content-type": "application/json",
            "authorization": self._login,
            "x-mlflow-experiment-id": self.names.get("experiment", ""),
        }
        body = None if method == "GET" else json.dumps(sent)
        self._connection.request(method, place.replace(" ", "%20"), body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        self.statuses[answer.status] += 1
        if answer.status >= 500 and not path.startswith(SWITCHED_OFF):
            self.broken[f"{method} {path}: {answer.status} {text[:200]!r}"] += 1
        return answer.status, json.loads(text) if text.startswith(b"{") else text

    def close(self) -> None:
        self._connection.close()

    def _catalog(self) -> None:
        """The runner has loaded it."""
        self.names.update({"source_id": "open", "model_name+": "org/Alpha", "tool_name": "search"})
        listed = self.made("GET", "/api/mcp_catalog/v1/mcp_servers", name="forge")
        self.names["server_id"] = listed["items"][0]["id"]


def rounds(world: Reached) -> Iterator[None]:
    """Stops after each request of a route."""
    for day in itertools.count(1):
        world.begin_day(day)
        for domain in DOMAINS:
            for name in routes_of(domain):
                if name not in REQUESTS:
                    continue
                world.prepare(domain)  # so that it finds what it is about
                method, _, path = name.partition(" ")
                world.send(method, path, REQUESTS[name])
                yield
        yield from world.end_day(day)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.endurance", description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000, help="how many (%(default)s)")
    parser.add_argument("--every", type=int, default=10_000, help="calls (%(default)s)")
    options = parser.parse_args()
    stand_alone()
    with memory_folder() as folder:
        catalog = folder / "catalog"
        catalog.mkdir()
        for name, text in FILES.items():
            (catalog / name).write_text(text)
        arguments = ["--data", str(folder / "data"), "--catalog", str(catalog), "--auth"]
        with stopped(start_product(folder, *arguments)) as runner:
            return endured(runner, folder, options.calls, options.every)


def endured(runner: Server, folder: Path, calls: int, every: int) -> int:
    # What no route makes, the world writes into the table itself.
    with pointed(announced_engine(runner), environment.table_name()):
        world = Reached(runner.url)
        one_by_one = rounds(world)
        began, told = time.monotonic(), 0
        while True:
            made = world.statuses.total()
            if made >= told:
                print(_line(runner, folder, made, time.monotonic() - began), flush=True)
                told += every
            if made >= calls:
                break
            next(one_by_one)
        world.close()
    print("answers:", ", ".join(f"{n} of {status}" for status, n in world.statuses.items()))
    for what, times in world.broken.most_common():
        print(f"{times} times {what}")
    return int(bool(world.broken))


def _line(runner: Server, folder: Path, made: int, seconds: float) -> str:
    time.sleep(REST_SECONDS)
    found: list[Process] = processes(runner.process.pid)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    memory = shown(found, "megabytes")
    return f"{made} calls, {seconds:.0f} s, {size / 2**20:.0f} MB of data; MB: {memory}"


if __name__ == "__main__":
    sys.exit(main())
