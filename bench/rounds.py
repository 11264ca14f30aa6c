"""Runs the same calls on several servers in turns, so that disturbances of the machine affect all
of them.
A server's turn begins when the server before it has become idle, so that no server is slowed down
by another's background work, such as indexing.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from typing import Final

from bench import loaded_runs, results
from bench.client import Client
from bench.loaded_runs import SEARCHES, rows
from bench.peers import Peer, ready
from bench.process_usage import megabytes, processes
from bench.results import Figure
from bench.workload import Scale, Workload, point
from tests.engines import memory_folder
from tests.servers import Server, stopped

CALLERS: Final = 4
"""Clients that load runs at the same time."""
WRITERS: Final = 8
WRITTEN: Final = 100
"""Metrics in each call of a writer."""
MOST_SECONDS: Final = 25.0
"""Limit for one kind of call at one server; it makes fewer calls then."""
REST_SECONDS: Final = 0.6
"""Longer than the longest pause of the stream process while requests are served: before its end,
runs may still have to be indexed although no process works."""
REST_CPU_SECONDS: Final = 0.025
"""CPU time of all processes of a server that rests for :data:`REST_SECONDS`: two ticks of Linux's
clock. An idle runner uses up to two."""
MOST_REST_SECONDS: Final = 3.0
IDLE_SECONDS: Final = 3.0
EXPECTED: Final = {"newest 100": 100, "top 100 by a metric": 100, "status, none match": 0}
MATCHING: Final = 50

START: Final = "start"
IDLE: Final = "memory, idle"
AFTER: Final = "memory after this work"
LOADING: Final = "runs loaded: made, logged to, ended; 4 callers"
WRITING: Final = "8 writers, 100 metrics a call"


class Side:
    """One server and its measurements: the milliseconds of each call, by the name of the kind of
    call."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.taken: dict[str, list[float]] = {}
        self.figures: dict[str, Figure] = {}
        self.server: Server | None = None
        self.client: Client | None = None
        self.workload: Workload | None = None
        self.failure = ""

    def fail(self, work: str, error: BaseException) -> None:
        self.figures[work] = Figure(reason=_reason(error))
        # The answer of the failed call may still arrive on this connection.
        if self.server and self.client:
            self.client.close()

    @property
    def url(self) -> str:
        assert self.server
        return self.server.url

    def begin(self) -> None:
        """Begins a turn: reopens the connection, because servers close idle connections."""
        assert self.client
        assert self.workload
        self.client.close()
        self.client.get(f"experiments/get?experiment_id={self.workload.experiment}")

    def rest(self) -> None:
        """Waits until the server uses almost no CPU time, for :data:`MOST_REST_SECONDS` at most."""
        assert self.server
        until = time.monotonic() + MOST_REST_SECONDS
        before = _ticks(self.server)
        while time.monotonic() < until:
            time.sleep(REST_SECONDS)
            now = _ticks(self.server)
            if now - before <= REST_CPU_SECONDS:
                return
            before = now


def _ticks(server: Server) -> float:
    return sum(process.seconds for process in processes(server.process.pid))


def compared(peers: Sequence[Peer], scale: Scale) -> list[Side]:
    """Starts all servers, runs the calls on them in turns, and stops them. Returns the servers with
    their measurements."""
    sides = [Side(peer) for peer in peers]
    with contextlib.ExitStack() as stack:
        for side in sides:
            _say(f"start {side.peer.title}")
            try:
                ready(side.peer)
                _start(side, stack, scale)
            except (OSError, RuntimeError, ValueError) as error:
                side.failure = _reason(error)
        running = [side for side in sides if not side.failure]
        _steps(running, scale)
        _load(running, scale)
        _write(running, scale)
        for side in running:
            assert side.server
            side.figures[AFTER] = Figure(p50=round(megabytes(side.server.process.pid), 1))
    return sides


def _start(side: Side, stack: contextlib.ExitStack, scale: Scale) -> None:
    taken = []
    for _ in range(scale.starts):
        with contextlib.ExitStack() as attempt:
            folder = attempt.enter_context(memory_folder())
            began = time.perf_counter()
            server = side.peer.command(folder)
            taken.append((time.perf_counter() - began) * 1000)
            attempt.enter_context(stopped(server))
            if len(taken) == scale.starts:
                stack.enter_context(attempt.pop_all())
    time.sleep(IDLE_SECONDS)
    side.server = server
    side.figures[START] = results.figure(taken)
    side.figures[IDLE] = Figure(p50=round(megabytes(server.process.pid), 1))
    side.client = stack.enter_context(Client(server.url))
    side.workload = Workload(side.client)


def _steps(sides: Sequence[Side], scale: Scale) -> None:
    each = [side.workload.steps(scale) for side in sides if side.workload]
    for steps in zip(*each, strict=True):
        name = steps[0].name
        _rounds(name, sides, [step.calls() for step in steps], steps[0].times, scale.rounds)


def _rounds(
    name: str, sides: Sequence[Side], calls: Sequence[Iterator[None]], times: int, rounds: int
) -> None:
    """Makes ``times`` calls of one kind to each server, an equal share in each round."""
    _say(name)
    turns = list(zip(sides, calls, strict=True))
    for number in range(rounds):
        share = times * (number + 1) // rounds - times * number // rounds
        for side, work in turns[number % len(turns) :] + turns[: number % len(turns)]:
            if name in side.figures:
                continue
            taken = side.taken.setdefault(name, [])
            assert side.client
            try:
                side.begin()
                for _ in range(share):
                    if sum(taken) > MOST_SECONDS * 1000:
                        break
                    next(work)
                    taken.append(side.client.seconds * 1000)
            except (AssertionError, KeyError, OSError, RuntimeError) as error:
                side.fail(name, error)
            side.rest()
    for side in sides:
        if name not in side.figures:
            side.figures[name] = results.figure(side.taken[name])


def _load(sides: Sequence[Side], scale: Scale) -> None:
    """Loads runs into an experiment of each server, and measures searches of them."""
    _say(LOADING)
    made = list(rows(scale.loaded))
    experiments: dict[str, str] = {}
    rates: dict[str, list[float]] = {}
    size = scale.loaded // scale.rounds
    for chunk in (made[at : at + size] for at in range(0, scale.loaded, size)):
        for side in sides:
            if LOADING in side.figures:
                continue
            assert side.client
            try:
                side.begin()
                if side.peer.name not in experiments:
                    answer = side.client.post("experiments/create", {"name": "loaded"})
                    experiments[side.peer.name] = answer["experiment_id"]
                began = time.perf_counter()
                loaded_runs.load(side.url, experiments[side.peer.name], chunk, CALLERS)
                rate = len(chunk) / (time.perf_counter() - began)
                rates.setdefault(side.peer.name, []).append(rate)
            except (KeyError, OSError, RuntimeError) as error:
                side.fail(LOADING, error)
            side.rest()
    for side in sides:
        if LOADING not in side.figures:
            middle = statistics.harmonic_mean(rates[side.peer.name])
            side.figures[LOADING] = Figure(p50=round(middle, 1))
    loaded = [side for side in sides if not side.figures[LOADING].reason]
    for name in SEARCHES:
        calls = [_searching(side, experiments[side.peer.name], name) for side in loaded]
        shown = f"search, {name}"
        _rounds(shown, loaded, calls, scale.heavy, scale.rounds)


def _searching(side: Side, experiment: str, name: str) -> Iterator[None]:
    body = {"experiment_ids": [experiment], "max_results": 100, **SEARCHES[name]}
    expected = EXPECTED.get(name, MATCHING)
    while True:
        assert side.client
        count = len(side.client.post("runs/search", body).get("runs") or ())
        assert count == expected, f"{count} runs where {expected} match"
        yield


def _write(sides: Sequence[Side], scale: Scale) -> None:
    _say(WRITING)
    rates: dict[str, list[float]] = {side.peer.name: [] for side in sides}
    with ProcessPoolExecutor(WRITERS, multiprocessing.get_context("spawn")) as pool:
        # The processes must have started and imported their modules before the first turn.
        list(pool.map(time.sleep, [1.0] * WRITERS))
        for _ in range(min(3, scale.rounds)):
            for side in sides:
                if WRITING in side.figures:
                    continue
                assert side.client
                try:
                    side.begin()
                    answer = side.client.post(
                        "experiments/create", {"name": f"writers {time.time_ns()}"}
                    )
                    arguments = [(side.url, answer["experiment_id"], scale.writing)] * WRITERS
                    rates[side.peer.name].append(sum(pool.map(written, arguments)))
                except (KeyError, OSError, RuntimeError) as error:
                    side.fail(WRITING, error)
                side.rest()
    for side in sides:
        if WRITING not in side.figures:
            side.figures[WRITING] = Figure(p50=round(statistics.median(rates[side.peer.name])))


def written(arguments: tuple[str, str, float]) -> float:
    """Logs metrics to a new run for some seconds. Returns how many metrics a second were written.
    ``arguments`` are the server's URL, the experiment and the seconds."""
    url, experiment, seconds = arguments
    with Client(url) as client:
        run_id = client.post("runs/create", {"experiment_id": experiment})["run"]["info"]["run_id"]
        began = time.perf_counter()
        for number in count():
            spent = time.perf_counter() - began
            if spent > seconds:
                return number * WRITTEN / spent
            points = [point(f"m{key}", number) for key in range(WRITTEN)]
            client.post("runs/log-batch", {"run_id": run_id, "metrics": points})
    raise AssertionError


def _reason(error: BaseException) -> str:
    """Returns the last line of an error's text, without query strings and the body of an answer."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r"\?[^ :]*|(?<=: \d{3}) b['\"].*", "", lines[-1])[:120]


def _say(message: str) -> None:
    sys.stderr.write(f"  {message} …\n")
