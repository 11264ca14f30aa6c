"""Many callers of a model that does not answer, beside trainings that log."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench import gateway as bench
from bench.model_provider import PACED
from tests.doubles.providers import Asked, Told, openai, serving
from tests.e2e.gateway_configuration import Configuration
from tests.servers import start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

CALLERS = 200
PATIENT_SECONDS = 60
CHAT = "/gateway/mlflow/v1/chat/completions"


class Api:
    """One kept connection to a server."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENT_SECONDS)

    def post(self, path: str, **fields: Any) -> dict[str, Any]:
        self.send(path, **fields)
        return self.answer()

    def send(self, path: str, **fields: Any) -> None:
        self._connection.request(
            "POST", path, json.dumps(fields), {"Content-Type": "application/json"}
        )

    def answer(self) -> dict[str, Any]:
        reply = self._connection.getresponse()
        text = reply.read()
        assert reply.status == 200, (reply.status, text)
        return dict(json.loads(text))

    def close(self) -> None:
        self._connection.close()


def test_callers_of_a_slow_model_hold_up_nobody(tmp_path: Path) -> None:
    """All calls wait at the provider, which counts them, when the trainings log and search."""
    arrived, over = threading.Semaphore(0), threading.Event()

    def wait(request: Asked) -> Told:
        arrived.release()
        over.wait(PATIENT_SECONDS)
        return openai(request)

    server = start_product(
        tmp_path,
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
    )
    with (
        serving(wait) as provider,
        stopped(server),
    ):
        provider._server.socket.listen(socket.SOMAXCONN)
        training = Api(server.url)
        gateway = Configuration(server.url)
        gateway.endpoint("slow", gateway.model("openai", "openai", f"{provider.url}/v1", "gpt-5"))
        callers = [Api(server.url) for _ in range(CALLERS)]
        try:
            for caller in callers:
                caller.send(CHAT, model="slow", messages=[{"role": "user", "content": "hello"}])
            for _ in callers:
                assert arrived.acquire(timeout=PATIENT_SECONDS)
            run = training.post("/api/2.0/mlflow/runs/create", experiment_id="0", start_time=1)[
                "run"
            ]["info"]["run_id"]
            for step in range(50):
                point = {"key": "loss", "value": 0.5, "timestamp": 1 + step, "step": step}
                training.post("/api/2.0/mlflow/runs/log-metric", run_id=run, **point)
            runs = training.post("/api/2.0/mlflow/runs/search", experiment_ids=["0"])["runs"]
            assert [entry["info"]["run_id"] for entry in runs] == [run]
        finally:
            over.set()
        for caller in callers:
            assert caller.answer()["choices"]
            caller.close()
        training.close()


def test_two_hundred_streams_at_once(tmp_path: Path) -> None:
    """Each gets all tokens of a model that pauses before each of them."""
    with bench.provider() as url:
        target = bench.product(url, tmp_path, traces=False)
        assert target.server is not None
        with stopped(target.server):
            streams = bench.beside(target, CALLERS, lambda caller: caller.stream(PACED))
    assert len(streams) == CALLERS
    assert max(stream.whole for stream in streams) < PATIENT_SECONDS * 1000
