"""Makes one delivery to a webhook: its body, its signed headers, and one HTTP request without
retries.

Body, headers and signature are those of MLflow's server, so that receivers verify them in the same
way.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from urllib3 import BaseHTTPResponse

from mlcore.entities.webhooks import EventName
from mlcore.webhooks import addresses, connections
from mlcore.webhooks.environment import webhook_settings

USER_AGENT: Final = "mlflow-serverless"
MAX_ANSWER_BYTES: Final = 256 * 1024

RETRIED_STATUSES: Final = frozenset((429, 500, 502, 503, 504))
"""Statuses after which MLflow's server retries; after any other it does not."""


class DeliveryAnswer(NamedTuple):
    status: int
    text: str
    """The body of the receiver's answer; at most its first 256 KB."""
    retry_after: float
    """Seconds in the receiver's Retry-After header; 0 without one."""


def body(event: EventName, time_ms: int, data: Mapping[str, Any], workspace: str) -> str:
    """Returns the JSON text that the delivery of an event to a webhook sends."""
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
    """Returns the signature of a webhook delivery: ``v1,`` and the Base64 of the HMAC-SHA256 of
    ``id.time.body``."""
    signed = f"{delivery_id}.{timestamp}.{text}".encode()
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def headers(secret: str, delivery_id: str, text: str) -> dict[str, str]:
    """Returns the headers of one attempt to deliver a webhook event. The timestamp is that of the
    attempt, so that a receiver may refuse old ones; the delivery id is the same in all attempts."""
    timestamp = str(int(time.time()))
    fields = {
        "Content-Type": "application/json",
        "X-MLflow-Delivery-Id": delivery_id,
        "X-MLflow-Timestamp": timestamp,
    }
    if secret:
        fields["X-MLflow-Signature"] = signature(secret, delivery_id, timestamp, text)
    return fields


def send(
    url: str, own_headers: Mapping[str, str], text: str, timeout_seconds: float
) -> DeliveryAnswer:
    """Posts a delivery and returns the receiver's answer. Does not follow redirects and does not
    use proxies.

    Raises:
        InvalidParameterValue: the URL is not allowed for webhooks.
        urllib3.exceptions.HTTPError: no answer arrived.
    """
    target = addresses.destination(url)
    request_headers = {
        **own_headers,
        "Host": target.host_header,
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
    }
    if target.credentials:
        pair = ":".join(target.credentials).encode()
        request_headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    pool = connections.pool(
        target.scheme,
        target.address,
        target.port,
        target.host,
        connect=min(10.0, timeout_seconds),
        read=timeout_seconds,
    )
    try:
        response = pool.urlopen(
            "POST",
            target.target,
            body=text.encode(),
            headers=request_headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
        )
        content = _read_limited(response, time.monotonic() + timeout_seconds)
        return DeliveryAnswer(
            response.status,
            content.decode("utf-8", "replace"),
            _retry_after_seconds(response.headers.get("Retry-After", "")),
        )
    finally:
        pool.close()


def _read_limited(response: BaseHTTPResponse, deadline: float) -> bytes:
    """Reads and returns the answer's body up to the size limit or the deadline, so that a slow
    receiver cannot block the function."""
    content = b""
    while len(content) < MAX_ANSWER_BYTES and time.monotonic() < deadline:
        chunk = response.read1(MAX_ANSWER_BYTES - len(content), decode_content=True)
        if not chunk:
            break
        content += chunk
    return content


def _retry_after_seconds(text: str) -> float:
    """Returns the seconds in a Retry-After header. A date in it is ignored, since clocks may
    differ."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0
