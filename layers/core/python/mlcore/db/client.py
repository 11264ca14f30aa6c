"""The one client of DynamoDB in the process; nothing else creates one. Services that speak the same
protocol are reached in the same way.

Where the environment says where DynamoDB is and who calls, as Lambda's does, it is read here;
otherwise botocore is asked, whose import is a third of a cold start.
:class:`mlcore.db.transport.Transport` does the calls. What botocore's own client would add, a walk
over the shapes of requests and responses, costs more than all the rest of a call.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import botocore
from botocore.exceptions import NoCredentialsError, NoRegionError

from mlcore.db.signature import Keys, Signer
from mlcore.db.transport import DYNAMODB, Protocol, Transport

CONNECT_TIMEOUT_SECONDS = 1
READ_TIMEOUT_SECONDS = 4
ATTEMPTS = 3
PATIENCE_SECONDS = 5
CALL_SECONDS = 20
"""3 attempts of at most 5 s with short back-off, where nothing is known of the time that is left;
a request's own deadline bounds all of its calls."""

POOL_CONNECTIONS = 32

USER_AGENT = "mlflow-serverless"

_SPECIAL_ENDPOINTS: Final = ("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_PROFILE")
"""Where one of these is set, botocore is asked for the endpoint, which takes it a whole client."""

_ASKED_FOR: Final = ("AWS_DEFAULT_PROFILE", "AWS_CREDENTIAL_EXPIRATION")
"""Where one of these is set, credentials are in a file, or will be others after a while."""

_NEEDED: Final = ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""AWS_REGION alone leaves it to a configuration file."""

_AUTHORITIES: Final = Path(botocore.__file__).with_name("cacert.pem")
"""Whom botocore trusts."""

_SUFFIXES: Final = {
    "cn-": "amazonaws.com.cn",
    "eusc-": "amazonaws.eu",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "eu-isoe-": "cloud.adc-e.uk",
    "us-isof-": "csp.hci.ic.gov",
}
"""Of host names, by how the names of a partition's regions begin; elsewhere it is amazonaws.com."""


@functools.cache
def client() -> Transport:
    """The shared client. Region, endpoint and credentials come from the environment, as botocore
    reads them.

    Raises:
        NoRegionError, NoCredentialsError: the environment does not say.
    """
    return transport("dynamodb", DYNAMODB)


def transport(service: str, protocol: Protocol) -> Transport:
    """A client of a service, as :func:`client`; its callers keep it."""
    region, endpoint, keys = _said(service) or _asked(service)
    host = urlsplit(endpoint).hostname or ""
    return Transport(
        endpoint,
        Signer(service, region),
        keys,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        attempts=ATTEMPTS,
        patience=PATIENCE_SECONDS,
        longest=CALL_SECONDS,
        connections=POOL_CONNECTIONS,
        user_agent=USER_AGENT,
        authorities=os.environ.get("AWS_CA_BUNDLE") or str(_AUTHORITIES),
        proxy=None if proxy_bypass(host) else getproxies().get("https"),
        protocol=protocol,
    )


def _said(service: str) -> tuple[str, str, Callable[[], Keys]] | None:
    """Region, endpoint and credentials of the environment; None when it does not say all, or asks
    for what only botocore knows. Credentials of the environment come before all others."""
    if any(os.environ.get(variable) for variable in (*_SPECIAL_ENDPOINTS, *_ASKED_FOR)):
        return None
    region, access_key, secret_key = map(os.environ.get, _NEEDED)
    if not (region and access_key and secret_key):
        return None
    token = os.environ.get("AWS_SECURITY_TOKEN") or os.environ.get("AWS_SESSION_TOKEN")
    keys = Keys(access_key, secret_key, token or None)
    return region, _endpoint(None, region, service), lambda: keys


def _asked(service: str) -> tuple[str, str, Callable[[], Keys]]:
    """Region, endpoint and credentials as botocore finds them, in files and from services."""
    import botocore.session  # noqa: PLC0415 -- 60 ms, for those who need it

    session = botocore.session.get_session()
    region = session.get_config_variable("region") or os.environ.get("AWS_REGION")
    if not region:
        raise NoRegionError
    credentials = session.get_credentials()
    if credentials is None:
        raise NoCredentialsError

    def keys() -> Keys:
        frozen = credentials.get_frozen_credentials()
        return Keys(frozen.access_key or "", frozen.secret_key or "", frozen.token)

    return region, _endpoint(session, region, service), keys


def _endpoint(session: Any, region: str, service: str) -> str:
    for variable in (f"AWS_ENDPOINT_URL_{service.upper()}", "AWS_ENDPOINT_URL"):
        if os.environ.get(variable):
            return os.environ[variable]
    if any(os.environ.get(variable) for variable in _SPECIAL_ENDPOINTS):
        made = session.create_client(service, region_name=region)
        endpoint: str = made.meta.endpoint_url
        return endpoint
    return f"https://{service}.{region}.{domain_of(region)}"


def domain_of(region: str) -> str:
    """What the names of AWS's hosts in a region end with."""
    suffixes = (suffix for start, suffix in _SUFFIXES.items() if region.startswith(start))
    return next(suffixes, "amazonaws.com")


if "AWS_LAMBDA_RUNTIME_API" in os.environ:
    # What it costs belongs to the start of the function, where Lambda gives it a whole processor,
    # and not to its first request.
    client()
