"""Signed URLs of the local store: what they answer, take and refuse."""

from __future__ import annotations

import http.client
import socket
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mlcore.artifacts.local_folder_store import Folder
from tests.local.conftest import PATIENT_SECONDS, eventually
from tests.servers import Server, start_product, stopped

KEY = "1/é b.bin"
DATA = bytes(range(256)) * 10_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("data")
    with stopped(start_product(folder, "--data", str(folder / "data"))) as server:
        store = Folder(folder / "data" / "artifacts")
        store.put(KEY, DATA)
        yield server, store


def ask(
    server: Server, method: str, url: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENT_SECONDS)
    try:
        connection.request(method, url, body, headers)
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, answer.read(), named
    finally:
        connection.close()


def download(store: Folder, seconds: int = 60, key: str = KEY) -> str:
    return store.download_url(
        key, seconds=seconds, content_type="text/x", disposition="attachment", origin=""
    )


@pytest.mark.parametrize(
    ("span", "status", "first", "after"),
    [("", 200, 0, None), ("bytes=0-0", 206, 0, 1), ("bytes=5-", 206, 5, None),
     ("bytes=-7", 206, -7, None), ("bytes=9-99999999", 206, 9, None), ("bytes=1-0", 416, 0, 0),
     ("bytes=99999999-", 416, 0, 0), ("bytes=0-1,4-5", 200, 0, None), ("x=1-2", 200, 0, None)],
)  # fmt: skip
def test_ranges(served: Any, span: str, status: int, first: int, after: int | None) -> None:
    server, store = served
    answer = ask(server, "GET", download(store), None, **({"Range": span} if span else {}))
    assert answer[:2] == (status, DATA[first:after])
    if status < 300:
        assert answer[2]["content-type"] == "text/x"
        assert answer[2]["content-disposition"] == "attachment"
        assert answer[2]["x-content-type-options"] == "nosniff"


def test_what_is_refused(served: Any) -> None:
    server, store = served
    url = download(store)
    put = store.upload_url(KEY, seconds=60, content_type=None, origin="")
    for method, wrong in (
        ("GET", url.replace("signature=", "signature=0")),
        ("GET", url.replace("text", "html")),
        ("GET", url.partition("?")[0]),
        ("GET", url.replace("/1/", "/2/")),
        ("GET", download(store, -5)),
        ("GET", put),
        ("PUT", url),
        ("GET", "/artifact-storage/../secret"),
    ):
        assert ask(server, method, wrong, b"x" if method == "PUT" else None)[0] == 403, wrong
    assert ask(server, "POST", put, b"x")[0] == 405
    assert ask(server, "GET", download(store, key="none"))[0] == 404
    assert ask(server, "HEAD", url)[:2] == (200, b"")
    assert store.get(KEY) == DATA


def test_a_client_that_goes_away_leaves_nothing(served: Any) -> None:
    server, store = served
    signed = store.upload_url("half", seconds=60, content_type=None, origin="")
    for path in (signed, "/api/2.0/mlflow-artifacts/artifacts/half"):
        with socket.create_connection(("127.0.0.1", urlsplit(server.url).port)) as connection:
            head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n"
            connection.sendall(head.encode() + bytes(3_000_000))
            eventually(lambda: list(store.uploads.iterdir()))
        eventually(lambda: not list(store.uploads.iterdir()))
    assert store.get("half") is None


def test_a_large_put_on_a_kept_connection(served: Any) -> None:
    """Taken, refused, and taken again: nothing of a body is left on the connection."""
    server, store = served
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENT_SECONDS)
    proxy = "/api/2.0/mlflow-artifacts/artifacts/"
    large = bytes(7_000_000)
    for path, status in (("a/large", 200), ("../x", 400), ("a", 400), ("a/large", 200)):
        connection.request("PUT", proxy + path, large)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (status, status != 200)
    connection.close()
    assert store.get("a/large") == large


def test_bytes_that_are_called_text(served: Any) -> None:
    server, store = served
    path = "/api/2.0/mlflow-artifacts/artifacts/latin.txt"
    assert ask(server, "PUT", path, b"caf\xe9", **{"Content-Type": "text/plain"})[0] == 200
    assert store.get("latin.txt") == b"caf\xe9"


def test_thrown_away(tmp_path: Path) -> None:
    with stopped(start_product(tmp_path)) as server:
        assert ask(server, "PUT", "/api/2.0/mlflow-artifacts/artifacts/a", b"x")[0] == 200
        data = next(line for line in server.log.read_text().splitlines() if " data " in line)
        kept = Path(tempfile.gettempdir()) / Path(data.split()[1]).name
        assert kept.is_dir()
    eventually(lambda: not kept.exists())
