"""Opens connections to the checked address of a webhook or model provider. TLS verifies the host
name, and the name is not resolved again.
"""

from __future__ import annotations

import ssl
from functools import cache

from botocore.httpsession import get_cert_path
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Timeout


def pool(
    scheme: str, address: str, port: int, host: str, *, connect: float, read: float
) -> HTTPConnectionPool:
    """Returns a connection pool to an IP address that the caller has checked; the caller closes it.

    Args:
        address: the IP address; the host's name is not resolved again.
        host: the name that the certificate must have.
        connect: timeout in seconds.
        read: timeout in seconds, for each read of the answer.
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
    context = ssl.create_default_context()
    if not context.get_ca_certs():  # OpenSSL found no certificates of the system
        context.load_verify_locations(get_cert_path(True))
    return context
