"""``make profile CALL=log-metric``: shows where the time of a call goes.
The product's handlers run in this process against the laptop's store, without server and indexer,
so that the figures are those of the API itself. ``--server`` also measures the local runner; the
difference is the server and the client.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import io
import json
import logging
import os
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from bench.client import Client
from bench.environment import stand_alone
from bench.workload import BATCH, HISTORY, INTERVAL_RUNS, Workload
from local.store.store import Store
from mlcore.http import handler as lambda_handler
from mlcore.observability import logger
from tests.contract.api import Api
from tests.contract.conftest import pointed
from tests.contract.trace_calls import tell
from tests.engines import create_table, memory_folder, running_store
from tests.servers import start_product, stopped

RUNS: Final = 200
"""How many runs exist before the call is made."""
REPEATS: Final = 5
"""How many rounds are made; the fastest counts, because other load only adds time."""
LINES: Final = 30
TRACES: Final = "/api/3.0/mlflow/traces"


class Handlers:
    """Calls the product's Lambda handlers directly, without an HTTP server."""

    seconds = 0.0

    def __init__(self) -> None:
        self._api = Api()

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path.startswith(TRACES):
            return tell("POST", path.replace(TRACES, "3.0/traces"), body)
        return self._api.post(path, **body)

    def get(self, path: str) -> dict[str, Any]:
        name, _, query = path.partition("?")
        fields: dict[str, list[str]] = {}
        for key, value in parse_qsl(query):
            fields.setdefault(key, []).append(value)
        return self._api.get(name, **fields)


CALLS: Final[dict[str, Callable[[Workload], Iterator[None]]]] = {
    "create": Workload.create,
    "log-metric": Workload.log_metric,
    "set-tag": Workload.set_tag,
    "log-param": Workload.log_param,
    "update": Workload.update,
    "log-batch": Workload.log_batch,
    "log-many": Workload.log_many,
    "get": Workload.get_run,
    "newest": Workload.search_newest,
    "history": Workload.history,
    "interval": Workload.interval,
    "trace": Workload.start_trace,
    "traces": Workload.search_traces,
}


def fill(workload: Workload) -> None:
    """Creates runs with metric histories, as trainings do, and traces."""
    for calls, times in (
        (workload.create, RUNS),
        (workload.log_metric, RUNS),
        (workload.log_batch, RUNS),
        (workload.log_many, INTERVAL_RUNS * HISTORY // BATCH),
        (workload.start_trace, RUNS),
    ):
        made = calls()
        for _ in range(times):
            next(made)


class Parts:
    """Measures how many milliseconds of CPU time chosen functions of the product take, over all
    their calls."""

    def __init__(self) -> None:
        self.milliseconds: defaultdict[str, float] = defaultdict(float)

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                self.milliseconds[name] += (time.thread_time() - began) * 1000

        return call

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Context manager: measures the chosen functions until the block ends."""
        with contextlib.ExitStack() as stack:
            for owner, attribute, name in (
                (Store, "call", "store"),
                (lambda_handler, "encode", "JSON of the answer"),
            ):
                original = getattr(owner, attribute)
                setattr(owner, attribute, self.timed(name, original))
                stack.callback(setattr, owner, attribute, original)
            yield


class Round(NamedTuple):
    """The milliseconds of one call, averaged over a round of calls."""

    wall: float
    python: float
    """CPU time of this process."""
    parts: dict[str, float]


@contextlib.contextmanager
def in_silence() -> Iterator[None]:
    """Context manager: discards the request log's lines, which would hide the figures. Their cost
    is still measured."""
    with Path(os.devnull).open("w") as nowhere:
        for handler in logging.getLogger(logger.name).handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(nowhere)
        yield


def measured(calls: Iterator[None], times: int) -> Round:
    parts = Parts()
    with parts.watched():
        python_before, began = time.process_time(), time.perf_counter()
        for _ in range(times):
            next(calls)
        wall = time.perf_counter() - began
        python = time.process_time() - python_before
    each = 1000 / times
    milliseconds = {name: spent / times for name, spent in parts.milliseconds.items()}
    return Round(wall * each, python * each, milliseconds)


def functions(calls: Iterator[None], times: int) -> str:
    """Profiles ``times`` calls and returns a text with the functions that take the most time
    themselves."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(times):
        next(calls)
    profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(LINES)
    return text.getvalue()


def over_http(name: str, times: int) -> float:
    """Returns the median milliseconds of the same call when it is sent to the local runner over
    HTTP."""
    with (
        memory_folder() as folder,
        stopped(start_product(folder, "--no-indexer")) as server,
        Client(server.url) as client,
    ):
        workload = Workload(client)
        fill(workload)
        calls, taken = CALLS[name](workload), []
        for _ in range(times):
            next(calls)
            taken.append(client.seconds * 1000)
    return median(taken)


def profile(name: str, times: int, *, server: bool, lines: bool) -> dict[str, Any]:
    """Measures a call, prints where its time goes, and returns the figures."""
    with running_store() as engine, pointed(engine.endpoint, create_table(engine.endpoint)):
        workload = Workload(Handlers())
        fill(workload)
        calls = CALLS[name](workload)
        for _ in range(5):
            next(calls)
        rounds = [measured(calls, times) for _ in range(REPEATS)]
        least = min(rounds, key=lambda round: round.python)
        figures: dict[str, Any] = {
            "call": name,
            "wall": min(round.wall for round in rounds),
            "python": least.python,
            **{part: least.parts[part] for part in sorted(least.parts)},
        }
        if lines:
            print(functions(calls, times))
    if server:
        figures["over HTTP"] = over_http(name, times)
    print(
        "  ".join(f"{key} {v if isinstance(v, str) else round(v, 2)}" for key, v in figures.items())
    )
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("call", nargs="*", help="such as log-metric; default: all calls")
    parser.add_argument(
        "--times", type=int, default=50, help="number of calls in a round (%(default)s)"
    )
    parser.add_argument("--server", action="store_true", help="also measure the runner over HTTP")
    parser.add_argument(
        "--lines", action="store_true", help="print the functions that take most time"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args()
    unknown = [name for name in options.call if name not in CALLS]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(CALLS)}")
    stand_alone()
    with in_silence():
        profiles = [
            profile(name, options.times, server=options.server, lines=options.lines)
            for name in options.call or CALLS
        ]
    if options.json:
        options.json.write_text(json.dumps(profiles, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
