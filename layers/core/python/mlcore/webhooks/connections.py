"""A connection to an address that was looked at before: TLS asks for the name, and nobody resolves
it a second time."""

from __future__ import annotations

import ssl
from functools import cache

from botocore.httpsession import get_cert_path
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Timeout


def pool(
    scheme: str, address: str, port: int, host: str, *, connect: float, read: float
) -> HTTPConnectionPool:
    """For one request; whoever asks closes it.

    Args:
        address: where the connection goes.
        host: the name that the certificate must have.
        connect: seconds.
        read: seconds, for each part of the answer.
    """
    timeout = Timeout(connect=connect, read=read)
    if scheme != "https":
        return HTTPConnectionPool(address, port, timeout=timeout)
    return HTTPSConnectionPool(
        address,
        port,
        timeout=timeout,
        ssl_context=_context(),
        server_hostname=host,
        assert_hostname=host,
    )


@cache
def _context() -> ssl.SSLContext:
    made = ssl.create_default_context()
    if not made.get_ca_certs():  # the system keeps none where OpenSSL looks for them
        made.load_verify_locations(get_cert_path(True))
    return made
