"""One POST of JSON to a provider: the way there, and what comes back whole or line by line.

Where somebody configured the address, every address of its name must be public, and the connection
goes to the one that was looked at. Redirects are not followed, proxies not asked.
"""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError, TimeoutError

from mlcore.db import deadline
from mlcore.errors import GatewayCallFailed, InvalidParameterValue
from mlcore.providers.environment import ALLOW_PRIVATE, private_allowed, timeout_seconds
from mlcore.webhooks import addresses, connections

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024

CONTENT_TYPE: Final = "application/json"

_CONNECT_SECONDS: Final = 10.0
_NOT_SENT: Final = frozenset(
    (
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "x-mlflow-authorization",
    )
)
"""Of the caller's headers: they speak of the caller's own request, or of this server's login."""

Json = dict[str, Any]


def ask(url: str, headers: Mapping[str, str], payload: Json, *, configured: bool) -> Json:
    """What the provider answers.

    Args:
        configured: whether the address is what somebody wrote into a secret, and no default.

    Raises:
        GatewayCallFailed: the provider answered an error, or nothing that can be passed on.
    """
    with _posted(url, headers, payload, configured=configured) as response:
        content = _whole(response)
        content_type = response.headers.get("Content-Type")
        if content_type and "application/json" in content_type:
            answer = _parsed(content)
        elif content_type and "text/plain" in content_type:
            answer = {"message": content.decode("utf-8", "replace")}
        else:
            raise GatewayCallFailed(
                502,
                "The returned data type from the route service is not supported. Received content "
                f"type: {content_type}",
            )
        if response.status >= 400:
            raise GatewayCallFailed(response.status, _detail(answer, response))
        if not isinstance(answer, dict):
            raise GatewayCallFailed(502, "The provider's answer is no JSON object.")
        return answer


def lines(
    url: str, headers: Mapping[str, str], payload: Json, *, configured: bool
) -> Iterator[bytes]:
    """The lines of a provider's answer as they come, each with its end.

    Raises:
        GatewayCallFailed: as :func:`ask`; before the first line, or after some.
    """
    rest = b""
    for part in parts(url, headers, payload, configured=configured):
        *whole, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def parts(
    url: str, headers: Mapping[str, str], payload: Json, *, configured: bool
) -> Iterator[bytes]:
    """A provider's answer as it comes. Raises GatewayCallFailed: as :func:`lines`."""
    with _posted(url, headers, payload, configured=configured) as response:
        if response.status >= 400:
            raise GatewayCallFailed(response.status, _said(_whole(response)) or _reason(response))
        yield from _parts(response)


def written(payload: Json) -> bytes:
    """What is sent of a payload, for those who sign it."""
    return json.dumps(payload).encode()


def events(stream: Iterator[bytes]) -> Iterator[Json]:
    """The JSON objects of a stream of server-sent events; what is none is left out."""
    for line in stream:
        if line.startswith(b"data:"):
            try:
                data = json.loads(line[5:])
            except ValueError:  # such as [DONE]
                continue
            if isinstance(data, dict):
                yield data


def _whole(response: BaseHTTPResponse) -> bytes:
    content = b""
    for part in _parts(response):
        content += part
        if len(content) > MAX_ANSWER_BYTES:
            raise GatewayCallFailed(502, f"The provider's answer exceeds {MAX_ANSWER_BYTES} bytes.")
    return content


def _parts(response: BaseHTTPResponse) -> Iterator[bytes]:
    """What comes, as long as there is time: a provider that drips holds nobody up."""
    while part := response.read1(decode_content=True):
        yield part
        if time.monotonic() > deadline.current():
            raise GatewayCallFailed(504, "The provider's answer did not end in time.")


@contextmanager
def _posted(
    url: str, headers: Mapping[str, str], payload: Json, *, configured: bool
) -> Iterator[BaseHTTPResponse]:
    try:
        place = urlsplit(url)
        host = place.hostname or ""
        port = place.port or {"http": 80}.get(place.scheme, 443)
    except ValueError:
        raise GatewayCallFailed(502, "The provider's address is no URL.") from None
    address = _address(host, guarded=configured and not private_allowed())
    seconds = _seconds()
    sent = {name: value for name, value in headers.items() if name.lower() not in _NOT_SENT}
    sent |= {
        "Host": place.netloc.rpartition("@")[2],
        "Content-Type": CONTENT_TYPE,
        "Accept-Encoding": "gzip, deflate, identity",
    }
    sent.setdefault("User-Agent", "mlflow-serverless")
    pool = connections.pool(
        place.scheme, address, port, host, connect=min(_CONNECT_SECONDS, seconds), read=seconds
    )
    try:
        response = pool.urlopen(
            "POST",
            _target(place),
            body=written(payload),
            headers=sent,
            retries=False,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
        )
        with closing(response):  # one that was not read to its end would stay open
            yield response
    except TimeoutError:
        raise GatewayCallFailed(
            504, f"The provider at {host} did not answer within {seconds:g} seconds."
        ) from None
    except (HTTPError, OSError) as error:
        raise GatewayCallFailed(
            502, f"The provider at {host} could not be reached ({type(error).__name__})."
        ) from None
    finally:
        pool.close()


def _address(host: str, *, guarded: bool) -> str:
    try:
        found = addresses.resolved_addresses(host, "gateway upstream")
    except InvalidParameterValue as error:
        raise GatewayCallFailed(502, error.message) from None
    for address in found if guarded else ():
        if not addresses.is_public(address):
            raise GatewayCallFailed(
                502,
                f"Gateway upstream connection blocked: {host!r} resolves to {address}, which is "
                f"not a public IP address. Set {ALLOW_PRIVATE}=true to allow private upstreams.",
            )
    if guarded and _is_odd_literal(host):
        raise GatewayCallFailed(
            502, f"Gateway upstream host {host!r} is not a canonical IP address literal."
        )
    return str(found[0])


def _is_odd_literal(host: str) -> bool:
    """Numbers that are not written as addresses mean different ones to different readers."""
    if not host.replace(".", "").isdigit():
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False


def _seconds() -> float:
    """How long a provider may take: as long as is configured, and as long as is left."""
    left = deadline.current() - time.monotonic()
    if left <= 0:
        raise GatewayCallFailed(504, "No time was left to ask the provider.")
    return min(timeout_seconds(), left)


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise GatewayCallFailed(502, "The provider's answer is no JSON.") from None


def _detail(answer: Any, response: BaseHTTPResponse) -> Any:
    """As MLflow's gateway tells it: the provider's sentence, or all that it answered."""
    if isinstance(answer, dict) and "error" in answer:
        error = answer["error"]
        told = error.get("message") if isinstance(error, dict) else None
        return told or _reason(response)
    return answer


def _said(content: bytes) -> str:
    """The most specific sentence that an error of a provider holds."""
    try:
        answer = json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")
    if isinstance(answer, dict):
        error = answer.get("error")
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            return str(error["message"])
        if isinstance(answer.get("message"), str):
            return str(answer["message"])
    return str(answer) if answer else ""


def _reason(response: BaseHTTPResponse) -> str:
    return response.reason or f"Status {response.status}"
