"""``make bench-gateway``: measures the AI gateway of the local runner and LiteLLM's proxy in turns,
with a model provider on this machine that answers at once. Prints a table.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from bench.model_provider import PACED, TOKENS
from bench.peers import FOLDER, installed
from bench.process_usage import megabytes
from bench.workload import side_by_side
from tests.e2e.gateway_configuration import Configuration
from tests.engines import ROOT, free_port
from tests.servers import Server, start, start_product, stopped

LITELLM: Final = "litellm[proxy]==1.108.7"
CALLERS: Final = 16
"""Callers at the same time."""
STREAMS: Final = (50, 200)
"""How many streams run at the same time, of a model that pauses before each token."""
KEY: Final = "sk-" + "0123456789abcdef" * 4
_MODELS: Final = ("plain", PACED)
_MESSAGES: Final = [{"role": "user", "content": "hello"}]


class Target(NamedTuple):
    """The server that is called: the provider itself, or a gateway in front of it."""

    title: str
    url: str
    path: str
    prefix: str = ""
    """The prefix of the names of models."""
    server: Server | None = None
    start_seconds: float = 0.0


class Stream(NamedTuple):
    """The milliseconds of one stream until its first token and until its end."""

    first: float
    whole: float


class Caller:
    """One caller with a connection of its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection = http.client.HTTPConnection(urlsplit(target.url).netloc, timeout=60)

    def close(self) -> None:
        self._connection.close()

    def chat(self) -> float:
        """Returns the milliseconds of a chat without a stream."""
        began = time.perf_counter()
        answer = json.loads(self._ask(_MODELS[0], stream=False).read())
        taken = (time.perf_counter() - began) * 1000
        assert answer["choices"][0]["message"]["content"] == " token" * TOKENS, answer
        return taken

    def stream(self, model: str = _MODELS[0]) -> Stream:
        """Requests a stream and returns its milliseconds. Fails if tokens are missing."""
        began, first, tokens = time.perf_counter(), 0.0, 0
        reply = self._ask(model, stream=True)
        for line in iter(reply.readline, b""):
            if b'" token"' in line:
                first = first or (time.perf_counter() - began) * 1000
                tokens += 1
        assert tokens == TOKENS, tokens
        return Stream(first, (time.perf_counter() - began) * 1000)

    def _ask(self, model: str, *, stream: bool) -> http.client.HTTPResponse:
        body = {"model": f"{self._target.prefix}{model}", "messages": _MESSAGES, "stream": stream}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        self._connection.request("POST", self._target.path, json.dumps(body), headers)
        reply = self._connection.getresponse()
        if reply.status != 200:
            raise RuntimeError(f"{self._target.title}: {reply.status} {reply.read()[:500]!r}")
        return reply


@contextlib.contextmanager
def provider() -> Iterator[str]:
    """Context manager: runs the provider and yields its URL."""
    port = free_port()
    command = [sys.executable, "-m", "bench.model_provider", str(port)]
    with (
        tempfile.TemporaryDirectory() as folder,
        stopped(start(command, port, Path(folder), ROOT)) as server,
    ):
        yield server.url


def product(model_url: str, folder: Path, *, traces: bool) -> Target:
    """Starts the runner with an endpoint for each model. ``traces`` is whether each call leaves a
    trace with its tokens and costs, as usage pages need it."""
    began = time.perf_counter()
    server = start_product(
        folder,
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        PYTHONDONTWRITEBYTECODE="",
    )
    seconds = time.perf_counter() - began
    prefix = "traced-" if traces else ""
    gateway = Configuration(server.url)
    secret = gateway.make(
        "secrets/create",
        secret_name="key",
        secret_value={"api_key": KEY},
        provider="openai",
        auth_config={"api_base": f"{model_url}/v1"},
    )
    for model in _MODELS:
        definition = gateway.make(
            "model-definitions/create",
            name=model,
            secret_id=secret["secret_id"],
            provider="openai",
            model_name=model,
        )
        gateway.endpoint(prefix + model, definition["model_definition_id"], usage_tracking=traces)
    title = "mlflow-serverless, with traces" if traces else "mlflow-serverless"
    return Target(title, server.url, "/gateway/mlflow/v1/chat/completions", prefix, server, seconds)


def litellm(model_url: str, folder: Path) -> Target:
    """Starts LiteLLM's proxy with one worker and no database."""
    python = installed("litellm", (LITELLM,))
    models = [
        {
            "model_name": model,
            "litellm_params": {
                "model": f"openai/{model}",
                "api_base": f"{model_url}/v1",
                "api_key": KEY,
            },
        }
        for model in _MODELS
    ]
    settings = folder / "config.yaml"
    settings.write_text(json.dumps({"model_list": models}))  # JSON is YAML
    port = free_port()
    command = [str(python.with_name("litellm")), "--config", str(settings), "--port", str(port)]
    began = time.perf_counter()
    server = start(
        [*command, "--host", "127.0.0.1"],
        port,
        folder,
        folder,
        health="/health/liveliness",
        LITELLM_LOG="ERROR",
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        LITELLM_MASTER_KEY=KEY,
        PYTHONDONTWRITEBYTECODE="",
    )
    seconds = time.perf_counter() - began
    return Target("LiteLLM's proxy", server.url, "/v1/chat/completions", "", server, seconds)


def beside(target: Target, callers: int, work: Callable[[Caller], Any]) -> list[Any]:
    """Runs ``work`` once with each of ``callers`` callers at the same time. Returns their
    results."""
    results: list[Any] = []
    barrier = threading.Barrier(callers)

    def call() -> None:
        with contextlib.closing(Caller(target)) as caller:
            barrier.wait()
            results.append(work(caller))

    side_by_side(call, callers)
    return results


class Figures:
    """The samples of one target, by name of the measurement, in the unit that is in the name."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.samples: dict[str, list[float]] = {}

    def add(self, work: str, *values: float) -> None:
        self.samples.setdefault(work, []).extend(values)

    def turn(self, calls: int) -> None:
        """One turn: ``calls`` chats and streams by one caller, then many at once."""
        caller = Caller(self.target)
        self.add("chat, ms", *(caller.chat() for _ in range(calls)))
        streams = [caller.stream() for _ in range(calls)]
        caller.close()
        self.add("first token of a stream, ms", *(stream.first for stream in streams))
        self.add(f"stream of {TOKENS} tokens, ms", *(stream.whole for stream in streams))
        began = time.perf_counter()
        beside(self.target, CALLERS, lambda client: [client.chat() for _ in range(calls)])
        each_second = CALLERS * calls / (time.perf_counter() - began)
        self.add(f"{CALLERS} callers, chats a second", each_second)
        began = time.perf_counter()
        beside(self.target, CALLERS, lambda client: [client.stream() for _ in range(calls)])
        each_second = CALLERS * calls * TOKENS / (time.perf_counter() - began)
        self.add(f"{CALLERS} callers, streamed tokens a second", each_second)
        for number in STREAMS:
            streams = beside(self.target, number, lambda client: client.stream(PACED))
            name = f"{number} streams at once"
            self.add(f"{name}, first token, ms", *(stream.first for stream in streams))
            self.add(f"{name}, whole, ms", *(stream.whole for stream in streams))


def measured(targets: Sequence[Target], turns: int, calls: int) -> list[Figures]:
    """Measures the targets in turns, without the first turn of each, and returns their figures."""
    sides = [Figures(target) for target in targets]
    for side in sides:
        if side.target.server:
            side.add("start, s", side.target.start_seconds)
            side.add("memory, idle, MB", megabytes(side.target.server.process.pid))
        Figures(side.target).turn(2)
    for _ in range(turns):
        for side in sides:
            side.turn(calls)
    for side in sides:
        if side.target.server:
            side.add("memory after this work, MB", megabytes(side.target.server.process.pid))
    return sides


def table(sides: Sequence[Figures]) -> str:
    """Returns the medians as a table of Markdown."""
    works = dict.fromkeys(work for side in sides for work in side.samples)
    ordered = sorted(works, key=lambda work: not work.startswith(("start", "memory, idle")))
    lines = [
        " | ".join(["| work", *(side.target.title for side in sides)]) + " |",
        "|---|" + "---|" * len(sides),
    ]
    for work in ordered:
        figures = [
            f"{median(side.samples[work]):,.1f}" if work in side.samples else "–" for side in sides
        ]
        lines.append(" | ".join([f"| {work}", *figures]) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__)
    parser.add_argument("--turns", type=int, default=10, help="turns of each (%(default)s)")
    parser.add_argument("--calls", type=int, default=20, help="calls in a turn (%(default)s)")
    parser.add_argument("--alone", action="store_true", help="leave LiteLLM out")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(provider())

        def folder() -> Path:
            return Path(stack.enter_context(tempfile.TemporaryDirectory()))

        targets = [Target("the provider itself", url, "/v1/chat/completions")]

        def add(target: Target) -> None:
            assert target.server
            stack.enter_context(stopped(target.server))
            targets.append(target)

        for traces in (False, True):
            add(product(url, folder(), traces=traces))
        if not options.alone:
            FOLDER.mkdir(parents=True, exist_ok=True)
            add(litellm(url, folder()))
        print(table(measured(targets, options.turns, options.calls)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
