"""The runner's memory while calls of all kinds go on: ``python -m bench.endurance --calls 100000``.

Makes one of everything that routes are about, and sends each route its request, again and again,
over HTTP to a runner with its indexer. Memory is what a process has for itself, its share of what
is shared included. Ends with 1 when an answer was a 5xx.
"""

from __future__ import annotations

import argparse
import http.client
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
from tests.contract.route_world import DOMAINS, Fields, World, routes_of
from tests.engines import memory_folder
from tests.servers import Server, announced_engine, start_product, stopped

LOGIN: Final = "Basic " + b64encode(b"admin:password1234").decode()
REST_SECONDS: Final = 2.0


class Reached(World):
    """Sends to a server instead of to handlers."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.statuses: Counter[int] = Counter()
        self.broken: Counter[str] = Counter()

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
            "authorization": LOGIN,
            "x-mlflow-experiment-id": self.names.get("experiment", ""),
        }
        body = None if method == "GET" else json.dumps(sent)
        self._connection.request(method, place.replace(" ", "%20"), body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        self.statuses[answer.status] += 1
        if answer.status >= 500:
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
    while True:
        for domain in DOMAINS:
            for name in routes_of(domain):
                if name not in REQUESTS:
                    continue
                world.prepare(domain)  # so that it finds what it is about
                method, _, path = name.partition(" ")
                world.send(method, path, REQUESTS[name])
                yield


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
