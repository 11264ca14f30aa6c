"""Creates the process's only DynamoDB client, and clients of services with the same protocol.

Region, endpoint and credentials are read from environment variables if those are complete, as they
are on Lambda. Otherwise botocore finds them; its import takes a third of a cold start. Calls
are made by :class:`mlcore.db.transport.Transport`: validating and parsing in botocore's own client
costs more than the rest of a call.
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

from mlcore.db import embedded_stores
from mlcore.db.embedded_stores import TableClient
from mlcore.db.signature import Credentials, Signer
from mlcore.db.transport import DYNAMODB, Protocol, Transport

CONNECT_TIMEOUT_SECONDS = 1
READ_TIMEOUT_SECONDS = 4
ATTEMPTS = 3
PATIENCE_SECONDS = 5
CALL_SECONDS = 20
"""Limit of one call, retries included: 3 attempts of at most 5 s with short back-off. A request's
deadline also bounds its calls."""

POOL_CONNECTIONS = 32

USER_AGENT = "mlflow-serverless"

_SPECIAL_ENDPOINTS: Final = ("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_PROFILE")
"""If one of these is set and no variable names the endpoint, botocore determines the endpoint; it
creates a client for that."""

_NEEDS_BOTOCORE: Final = ("AWS_DEFAULT_PROFILE", "AWS_CREDENTIAL_EXPIRATION")
"""If one of these is set, credentials are in a file or expire, so botocore has to provide them."""

_REQUIRED_VARIABLES: Final = ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""If one of these is missing, botocore is used. AWS_REGION alone is not enough, because a
configuration file may name another region."""

_AUTHORITIES: Final = Path(botocore.__file__).with_name("cacert.pem")
"""The certificate authorities that botocore trusts."""

_SUFFIXES: Final = {
    "cn-": "amazonaws.com.cn",
    "eusc-": "amazonaws.eu",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "eu-isoe-": "cloud.adc-e.uk",
    "us-isof-": "csp.hci.ic.gov",
}
"""Prefix of region names to the domain of AWS's hosts there; all others use amazonaws.com."""


@functools.cache
def client() -> TableClient:
    """Returns the DynamoDB client that the whole process shares. Region and credentials come from
    environment variables or, if those are incomplete, from botocore. An endpoint with a scheme that
    was registered in :mod:`mlcore.db.embedded_stores` is a store in this process.

    Raises:
        NoRegionError, NoCredentialsError: neither the environment nor botocore has them.
        ValueError: no store is registered for the endpoint's scheme.
    """
    endpoint = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB", "")
    if embedded_stores.is_embedded(endpoint):
        return embedded_stores.client_for(endpoint)
    return transport("dynamodb", DYNAMODB)


def transport(service: str, protocol: Protocol) -> Transport:
    """Returns a new client of an AWS service, which is not shared: the caller keeps it. It finds
    region, endpoint and credentials as :func:`client` does."""
    region, endpoint, keys = _from_environment(service) or _from_botocore(service)
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


def _from_environment(service: str) -> tuple[str, str, Callable[[], Credentials]] | None:
    """Returns region, endpoint and a function for credentials from environment variables, which
    take precedence over files. Returns None if they are incomplete or need botocore."""
    if any(os.environ.get(variable) for variable in (*_SPECIAL_ENDPOINTS, *_NEEDS_BOTOCORE)):
        return None
    region, access_key, secret_key = map(os.environ.get, _REQUIRED_VARIABLES)
    if not (region and access_key and secret_key):
        return None
    token = os.environ.get("AWS_SECURITY_TOKEN") or os.environ.get("AWS_SESSION_TOKEN")
    keys = Credentials(access_key, secret_key, token or None)
    return region, _endpoint(None, region, service), lambda: keys


def _from_botocore(service: str) -> tuple[str, str, Callable[[], Credentials]]:
    """Returns region, endpoint and a function for credentials. botocore finds region and
    credentials, for example in files or from AWS's services."""
    import botocore.session  # noqa: PLC0415 -- 60 ms; not needed on Lambda

    session = botocore.session.get_session()
    region = session.get_config_variable("region") or os.environ.get("AWS_REGION")
    if not region:
        raise NoRegionError
    credentials = session.get_credentials()
    if credentials is None:
        raise NoCredentialsError

    def keys() -> Credentials:
        frozen = credentials.get_frozen_credentials()
        return Credentials(frozen.access_key or "", frozen.secret_key or "", frozen.token)

    return region, _endpoint(session, region, service), keys


def _endpoint(session: Any, region: str, service: str) -> str:
    for variable in (f"AWS_ENDPOINT_URL_{service.upper()}", "AWS_ENDPOINT_URL"):
        if os.environ.get(variable):
            return os.environ[variable]
    if any(os.environ.get(variable) for variable in _SPECIAL_ENDPOINTS):
        botocore_client = session.create_client(service, region_name=region)
        endpoint: str = botocore_client.meta.endpoint_url
        return endpoint
    return f"https://{service}.{region}.{domain_of(region)}"


def domain_of(region: str) -> str:
    """Returns the domain of AWS's hosts in a region, such as ``amazonaws.com``."""
    suffixes = (suffix for start, suffix in _SUFFIXES.items() if region.startswith(start))
    return next(suffixes, "amazonaws.com")


if "AWS_LAMBDA_RUNTIME_API" in os.environ and not embedded_stores.is_embedded(
    os.environ.get("AWS_ENDPOINT_URL_DYNAMODB", "")
):
    # Created at start, where Lambda provides a whole processor, rather than in the first request.
    client()
