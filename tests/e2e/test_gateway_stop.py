"""A laptop's server that is told to stop ends the calls of models that are open."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from local.http.server import STOP_SECONDS
from tests.doubles.silent_provider import FIRST_PART, PATIENCE, SilentProvider, silent
from tests.e2e.gateway_configuration import Configuration
from tests.servers import start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SOON = STOP_SECONDS - 1.0
"""Seconds for what takes half a one, on a busy machine; requests that call no model have longer."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_providers_that_say_nothing_do_not_delay_the_end(
    tmp_path: Path, number: signal.Signals
) -> None:
    server = start_product(
        tmp_path,
        *("--data", str(tmp_path / "data")),
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
    )
    with stopped(server), ExitStack() as stack:
        made = Configuration(server.url)
        providers: list[SilentProvider] = []
        for name, sent in (("openai", b""), ("gemini", FIRST_PART)):
            provider = stack.enter_context(silent(sent))
            providers.append(provider)
            made.endpoint(name, made.model(name, "openai", f"{provider.url}/v1", name))

        def call(name: str) -> requests.Response:
            body: dict[str, Any] = {"model": name, "messages": [{"role": "user", "content": "hi"}]}
            return requests.post(
                f"{server.url}/gateway/openai/v1/chat/completions",
                json={**body, "stream": name == "gemini"},
                timeout=PATIENCE * 3,
            )

        pool = stack.enter_context(ThreadPoolExecutor(2))
        calls: list[Future[requests.Response]] = [
            pool.submit(call, name) for name in ("openai", "gemini")
        ]
        assert all(provider.is_asked.wait(PATIENCE) for provider in providers)
        began = time.monotonic()
        server.process.send_signal(number)
        whole, stream = (future.result() for future in calls)
        assert all(provider.is_left.wait(PATIENCE) for provider in providers)
        assert time.monotonic() - began < SOON
        assert server.process.wait(PATIENCE * 3) == 0
        assert (whole.status_code, "stopping" in whole.json()["detail"]) == (503, True)
        assert stream.status_code == 200
        events = [line[6:] for line in stream.text.splitlines() if line.startswith("data: ")]
        assert "stopping" in json.loads(events[-1])["error"]["message"]
