"""One delivery: its body, its headers with the signature, and one HTTP request; never a second.

Body, headers and signature are those of MLflow's own server, so that its receivers verify them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, NamedTuple

from botocore.httpsession import get_cert_path
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout

from mlcore.entities.webhooks import EventName
from mlcore.webhooks import addresses
from mlcore.webhooks.environment import webhook_settings

USER_AGENT: Final = "mlflow-serverless"
MAX_ANSWER_BYTES: Final = 256 * 1024

REPEATED: Final = frozenset((429, 500, 502, 503, 504))
"""Statuses after which MLflow's server tries again; any other is the receiver's last word."""


class Answer(NamedTuple):
    status: int
    text: str
    """At most 256 KB of the body."""
    retry_after: float
    """Seconds that the receiver asks to wait; 0 when it does not."""


def body(event: EventName, time_ms: int, data: Mapping[str, Any], workspace: str) -> str:
    """The JSON text of a delivery."""
    moment = datetime.fromtimestamp(time_ms / 1000, tz=UTC)
    payload: dict[str, Any] = {
        "entity": event.entity,
        "action": event.action,
        "timestamp": moment.isoformat(timespec="microseconds"),
        "data": data,
    }
    if webhook_settings().workspaces:
        payload["workspace"] = workspace
    return json.dumps(payload)


def signature(secret: str, delivery_id: str, timestamp: str, text: str) -> str:
    """``v1,`` and the Base64 of the HMAC-SHA256 of id, time and body, with dots between them."""
    signed = f"{delivery_id}.{timestamp}.{text}".encode()
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def headers(secret: str, delivery_id: str, text: str) -> dict[str, str]:
    """The time is that of the attempt, so that a receiver may refuse what is old; the id stays."""
    timestamp = str(int(time.time()))
    made = {
        "Content-Type": "application/json",
        "X-MLflow-Delivery-Id": delivery_id,
        "X-MLflow-Timestamp": timestamp,
    }
    if secret:
        made["X-MLflow-Signature"] = signature(secret, delivery_id, timestamp, text)
    return made


def send(url: str, own_headers: Mapping[str, str], text: str, timeout_seconds: float) -> Answer:
    """Posts a delivery. Redirects are not followed, proxies not asked.

    Raises:
        InvalidParameterValue: the URL leads where no webhook may.
        urllib3.exceptions.HTTPError: there was no answer.
    """
    where = addresses.destination(url)
    sent = {**own_headers, "Host": where.host_header, "User-Agent": USER_AGENT, "Accept": "*/*"}
    if where.credentials:
        pair = ":".join(where.credentials).encode()
        sent["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    timeout = Timeout(connect=min(10.0, timeout_seconds), read=timeout_seconds)
    pool: HTTPConnectionPool
    if where.scheme == "https":
        pool = HTTPSConnectionPool(
            where.address,
            where.port,
            timeout=timeout,
            ssl_context=_context(),
            server_hostname=where.host,
            assert_hostname=where.host,
        )
    else:
        pool = HTTPConnectionPool(where.address, where.port, timeout=timeout)
    try:
        response = pool.urlopen(
            "POST",
            where.target,
            body=text.encode(),
            headers=sent,
            retries=False,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
        )
        content = _beginning(response, time.monotonic() + timeout_seconds)
        return Answer(
            response.status,
            content.decode("utf-8", "replace"),
            _seconds(response.headers.get("Retry-After", "")),
        )
    finally:
        pool.close()


def _beginning(response: BaseHTTPResponse, deadline: float) -> bytes:
    """What came of the body in time: a receiver that drips holds nobody up."""
    content = b""
    while len(content) < MAX_ANSWER_BYTES and time.monotonic() < deadline:
        part = response.read1(MAX_ANSWER_BYTES - len(content), decode_content=True)
        if not part:
            break
        content += part
    return content


@cache
def _context() -> ssl.SSLContext:
    made = ssl.create_default_context()
    if not made.get_ca_certs():  # the system keeps none where OpenSSL looks for them
        made.load_verify_locations(get_cert_path(True))
    return made


def _seconds(text: str) -> float:
    """Of a Retry-After that counts seconds; the form with a date is not worth a clock's error."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0
