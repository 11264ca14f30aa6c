"""A client that leaves ends the provider's work, on a laptop's server."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.doubles.silent_provider import FIRST_PART, PATIENCE, silent
from tests.e2e.gateway_configuration import Configuration
from tests.servers import start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

LEFT_SECONDS = 1.0


@pytest.mark.parametrize("sent", [b"", FIRST_PART], ids=["whole", "stream"])
def test_a_client_that_leaves_ends_the_call(tmp_path: Path, sent: bytes) -> None:
    server = start_product(
        tmp_path,
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
    )
    with silent(sent) as provider, stopped(server):
        gateway = Configuration(server.url)
        gateway.endpoint("chat", gateway.model("openai", "openai", f"{provider.url}/v1", "gpt-5"))
        client = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
        messages = [{"role": "user", "content": "hello"}]
        body: dict[str, Any] = {"model": "chat", "messages": messages, "stream": bool(sent)}
        client.request("POST", "/gateway/mlflow/v1/chat/completions", json.dumps(body))
        assert provider.is_asked.wait(PATIENCE)
        if sent:
            assert client.getresponse().readline().startswith(b"data: ")
        assert not provider.is_left.wait(0.6)
        left = time.monotonic()
        assert client.sock is not None or sent
        client.close()
        assert provider.is_left.wait(PATIENCE)
        assert time.monotonic() - left < LEFT_SECONDS
