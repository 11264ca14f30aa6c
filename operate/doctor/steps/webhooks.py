"""A webhook: a change of the registry reaches a receiver on this machine, signed."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import ipaddress
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from operate.doctor.checkup import Checkup, expect
from operate.doctor.outcome import LeftOut

PATH: Final = "/doctor"
_LONGEST: Final = 1_000_000


class Delivery(NamedTuple):
    headers: Mapping[str, str]
    text: str


def receive(checkup: Checkup) -> str:
    """The delivery of an event arrives, with the right signature."""
    api, name = checkup.api, checkup.fact("model")
    with _receiving(*_address(checkup)) as (deliveries, url):
        body = {
            "name": checkup.name,
            "url": url,
            "events": [{"entity": "MODEL_VERSION_TAG", "action": "SET"}],
            "secret": checkup.webhook_secret,
        }
        answer = api.call("POST", "/api/2.0/mlflow/webhooks", body)
        if answer.status == 403:
            raise LeftOut("webhooks are for administrators")
        expect(answer.status == 200, f"webhooks: {answer.status} {answer.text[:300]}")
        path = f"2.0/mlflow/webhooks/{answer.body['webhook']['webhook_id']}"
        checkup.will_remove("the webhook", lambda: api.ask("DELETE", path))
        api.post("model-versions/set-tag", name=name, version="1", key="doctor", value="seen")
        [first, *_] = checkup.wait("the delivery arrives", lambda: list(deliveries))
    expect(_is_signed(first, checkup.webhook_secret), "the signature is not that of the secret")
    return "the delivery arrived with the right signature"


def _address(checkup: Checkup) -> tuple[str, int]:
    """Raises LeftOut if the server cannot reach this machine."""
    given = checkup.options.receiver
    if given:
        host, _, port = given.rpartition(":")
        return host, int(port)
    host = urlsplit(checkup.api.url).hostname or ""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return host, 0
    if host == "localhost":
        return "127.0.0.1", 0
    raise LeftOut("name an address of this machine that the server reaches by --receiver HOST:PORT")


def _is_signed(delivery: Delivery, secret: str) -> bool:
    """As MLflow signs: the HMAC of id, time and text."""
    headers = delivery.headers
    signed = ".".join(
        (
            headers.get("x-mlflow-delivery-id", ""),
            headers.get("x-mlflow-timestamp", ""),
            delivery.text,
        )
    )
    digest = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest()
    wanted = f"v1,{base64.b64encode(digest).decode()}"
    return hmac.compare_digest(headers.get("x-mlflow-signature", ""), wanted)


@contextlib.contextmanager
def _receiving(host: str, port: int) -> Iterator[tuple[list[Delivery], str]]:
    deliveries: list[Delivery] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = min(int(self.headers.get("Content-Length") or 0), _LONGEST)
            text = self.rfile.read(length).decode(errors="replace")
            headers = {name.lower(): value for name, value in self.headers.items()}
            deliveries.append(Delivery(headers, text))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield deliveries, f"http://{host}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
