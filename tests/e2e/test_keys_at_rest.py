"""A provider's key is found nowhere on a laptop, after calls whose provider repeats it: neither in
the store and its journal, nor in packs, files of tables and logs, whatever compresses them."""

from __future__ import annotations

import base64
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

import pytest

from tests.doubles.providers import Asked, Told, failing, openai, serving
from tests.e2e.gateway_configuration import KEYS, Configuration
from tests.e2e.packed_bytes import Found, contents
from tests.servers import ADMIN, Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

PROMPT: Final = "a prompt that is stored " * 200
PUBLISH_SECONDS: Final = 60
ROUTES: Final = (
    ("mlflow/v1/chat/completions", {}),
    ("mlflow/v1/chat/completions", {"stream": True}),
    ("openai/v1/chat/completions", {"stream": True}),
    ("proxy/chat/v1/chat/completions", {}),
)


def repeating(request: Asked) -> Told:
    """A provider that says the headers of its request, in a stream letter by letter."""
    shown = json.dumps(request.headers).replace('"', "'")
    response = openai(request)
    if not response.parts:
        text = json.dumps({**response.body, "debug": request.headers})
        return response._replace(body=json.loads(text.replace("echo: ", f"echo: {shown} ")))
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    letters = (
        {**head, "choices": [{"index": 0, "delta": {"content": letter}, "finish_reason": None}]}
        for letter in f"{shown} {PROMPT}"
    )
    parts = tuple(f"data: {json.dumps(chunk)}\n\n" for chunk in letters)
    return response._replace(parts=(*parts, "data: [DONE]\n\n"))


def _post(server: Server, path: str, **fields: Any) -> str:
    request = urllib.request.Request(
        f"{server.url}/{path}", json.dumps(fields).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.read().decode())


def _spellings(key: str) -> list[bytes]:
    """The key, in Base64 at each offset, in hexadecimal and backwards."""
    coded = [base64.b64encode(b"x" * shift + key.encode())[4:-4] for shift in range(3)]
    return [key.encode(), *coded, key.encode().hex().encode(), key[::-1].encode()]


def _call_everything(server: Server, said: list[str]) -> None:
    for endpoint in ("chat", "broken"):
        for route, more in ROUTES:
            message = {"role": "user", "content": PROMPT}
            body = {"model": endpoint, "messages": [message], **more}
            path = route.replace("proxy/chat", f"proxy/{endpoint}")
            said.append(_post(server, f"gateway/{path}", **body))
    query = {"sql": "SELECT count(*) FROM system.mlflow.traces", "fresh": True}
    until = time.monotonic() + PUBLISH_SECONDS
    while "error_code" in (answer := _post(server, "api/3.0/mlflow-serverless/sql", **query)):
        assert time.monotonic() < until, answer


def test_a_key_is_nowhere(tmp_path: Path) -> None:
    server = start_product(
        tmp_path,
        *("--data", str(tmp_path / "data")),
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        MLFLOW_AUTH_ADMIN_USERNAME=ADMIN[0],
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    said: list[str] = []
    shown = f"no, {KEYS['broken']}"
    with stopped(server), serving(repeating) as good, serving(failing(401, shown)) as broken:
        gateway = Configuration(server.url)
        for name, url in (("openai", good.url), ("broken", broken.url)):
            model = gateway.model(name, "openai", f"{url}/v1", "gpt-4o")
            gateway.endpoint("chat" if name == "openai" else name, model, usage_tracking=True)
        _call_everything(server, said)
        assert all(KEYS["openai"] in str(request.headers) for request in good.asked)
        assert len(good.asked) >= len(ROUTES)
        # While it runs, the store's write-ahead log has what the database has not.
        found = list(contents(tmp_path))
    found += contents(tmp_path)
    _holds_prompts(found)
    for key in (KEYS["openai"], KEYS["broken"]):
        for spelling in _spellings(key):
            places = {(f.path.name, f.way) for f in found if spelling in f.content}
            assert not places, (spelling, places)
        assert not any(key in text for text in (*said, *gateway.said))


def _holds_prompts(found: list[Found]) -> None:
    """The search would find a key: it finds the texts that are stored beside it."""
    where = {f"{f.path.suffix}{f.way}" for f in found if b"a prompt that is stored" in f.content}
    assert any("parquet" in place for place in where), where
    assert {".sqliterow", ".sqlite-wal"} <= where, where
    assert any("/zstd" in place or "/gzip" in place for place in where), where


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the limits of a process")
def test_processes_that_hold_keys_leave_no_core(tmp_path: Path) -> None:
    """The runner, and all that it starts."""
    with stopped(start_product(tmp_path)) as server:
        processes = _family(server.process.pid)
        assert len(processes) > 1
        for process in processes:
            limits = Path(f"/proc/{process}/limits").read_text()
            (line,) = (line for line in limits.splitlines() if line.startswith("Max core file"))
            assert line.split()[4:6] == ["0", "0"], (process, line)


def _family(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task").glob("*/children")
    return [process, *(int(child) for path in children for child in path.read_text().split())]
