"""Checks webhooks: a change in the registry has to be delivered.

If the server can reach this machine, this machine receives the delivery and checks its signature.
Otherwise, in AWS, the webhook's URL is one of the server itself, which refuses the delivery; the
log of the webhook sender shows that the delivery was sent and answered.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import ipaddress
import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from operate.doctor.checkup_state import Checkup, expect
from operate.doctor.outcome import LeftOut, Wrong
from operate.doctor.stack import Deployment

PATH: Final = "/doctor"
REFUSING: Final = "/health"
"""A path of the server that refuses POST."""
SENT: Final = ("webhook delivered", "webhook refused by its receiver")
"""What the webhook sender logs about a delivery that the receiver answered."""
FAILED: Final = "webhook not delivered"
_LOGGED: Final = ("INFO", "DEBUG")
"""Values of ``LogLevel`` with which the webhook sender logs deliveries."""
_LONGEST: Final = 1_000_000
_CLOCKS_DIFFER_SECONDS: Final = 60


class Delivery(NamedTuple):
    headers: Mapping[str, str]
    text: str


def receive(checkup: Checkup) -> str:
    """Checks webhooks: creates a webhook, changes a model, and waits for the delivery. Returns the
    result as a text. Raises LeftOut if neither this machine can receive a delivery nor the log of
    the webhook sender can be read, Wrong if no delivery arrives."""
    model = checkup.fact("model")
    address = _address(checkup)
    if address is not None:
        return _receive_here(checkup, address, model)
    if checkup.deployment is not None:
        return _follow_in_the_log(checkup, checkup.deployment, model)
    raise LeftOut(
        "give --stack, so that the sender's log can be read; or an address that the server reaches"
        " by --receiver HOST:PORT, and --receiver-url https://… if a tunnel leads there"
    )


def _receive_here(checkup: Checkup, address: tuple[str, int], model: str) -> str:
    with _receiving(*address) as (deliveries, url):
        _create(checkup, checkup.options.receiver_url or url)
        _announce(checkup, model)
        [first, *_] = checkup.wait("the delivery arrives", lambda: list(deliveries))
    expect(_is_signed(first, checkup.webhook_secret), "the signature does not match the secret")
    return "the delivery arrived with the right signature"


def _follow_in_the_log(checkup: Checkup, stack: Deployment, model: str) -> str:
    level = stack.parameters.get("LogLevel", "INFO")
    if level not in _LOGGED:
        raise LeftOut(f"LogLevel is {level}, so the sender logs no delivery: give --receiver")
    url = f"{checkup.api.url}{REFUSING}"
    webhook = _create(checkup, url)
    tested = checkup.api.post(f"webhooks/{webhook}/test")["result"]
    if "response_status" not in tested:
        raise Wrong(
            f"functions cannot reach {urlsplit(url).hostname}, nor any other receiver; in a VPC"
            f" they need a NAT: {tested.get('error_message', '')[:300]}"
        )
    began = int((time.time() - _CLOCKS_DIFFER_SECONDS) * 1000)
    _announce(checkup, model)
    reasons: list[str] = []

    def sent() -> str:
        lines = _lines(stack, webhook, began)
        reasons[:] = [line.get("reason", "") for line in lines if line["message"] == FAILED]
        return next((line["message"] for line in lines if line["message"] in SENT), "")

    try:
        checkup.wait("the sender logs the delivery", sent)
    except Wrong as error:
        reason = f"; it could not deliver: {reasons[-1]}" if reasons else ""
        raise Wrong(f"{error}{reason}") from None
    return "the sender delivered to this server itself; --receiver checks the signature too"


def _lines(stack: Deployment, webhook: str, began_ms: int) -> list[dict[str, Any]]:
    """Returns the log entries of the webhook sender about the deliveries of one webhook."""
    pages = stack.client("logs").get_paginator("filter_log_events")
    _, group = stack.resources["WebhookSenderLogGroup"]
    pages_read = pages.paginate(
        logGroupName=group, startTime=began_ms, filterPattern=f'"{webhook}"'
    )
    texts = [event["message"] for page in pages_read for event in page.get("events", ())]
    return [line for line in map(_decoded, texts) if line.get("webhook_id") == webhook]


def _decoded(text: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        line = json.loads(text)
        if isinstance(line, dict) and isinstance(line.get("message"), str):
            return line
    return {}


def _create(checkup: Checkup, url: str) -> str:
    """Creates a webhook for changed tags of model versions and returns its id. Raises LeftOut if
    the login may not create webhooks."""
    api = checkup.api
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
    webhook = str(answer.body["webhook"]["webhook_id"])
    path = f"2.0/mlflow/webhooks/{webhook}"
    checkup.will_remove("the webhook", lambda: api.ask("DELETE", path))
    return webhook


def _announce(checkup: Checkup, model: str) -> None:
    """Sets a tag of a model version, which is the event that the webhook is subscribed to."""
    checkup.api.post("model-versions/set-tag", name=model, version="1", key="doctor", value="seen")


def _address(checkup: Checkup) -> tuple[str, int] | None:
    """Returns the host and port at which this machine listens for the delivery; None if the server
    probably cannot reach this machine."""
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
    return None


def _is_signed(delivery: Delivery, secret: str) -> bool:
    """Returns whether the delivery has MLflow's signature: the HMAC of its id, time and text."""
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
