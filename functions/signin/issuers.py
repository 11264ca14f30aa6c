"""The issuers with which people may sign in: the deployment's, and those of the setting
``sign_in_issuers``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore import secrets
from mlcore.auth.issuer_addresses import is_safe
from mlcore.oidc.issuer_documents import configuration_of
from mlcore.oidc.signing_keys import SigningKeys
from mlcore.process_cache import ProcessCache
from mlcore.repos.settings import sign_in
from signin.messages import OWN_ISSUER

SECRET: Final = "OIDC_CLIENT_SECRET"  # noqa: S105 -- a name
"""Environment: the client secret, on a laptop."""
SECRET_ARN: Final = "OIDC_CLIENT_SECRET_ARN"  # noqa: S105 -- a name
"""Environment: ARN of a secret of Secrets Manager. It is the client secret, or a JSON object of
secrets by client id."""

_KEPT_SECONDS: Final = 3_600.0
_secrets: ProcessCache[str, str] = ProcessCache("client secret", seconds=300.0)


class Issuer(NamedTuple):
    """An OpenID Connect issuer, and the settings of this server as its client."""

    name: str
    title: str
    issuer: str
    client_id: str
    scopes: str
    username_claim: str
    groups_claim: str
    subject_claim: str
    domains: tuple[str, ...]
    """E-mail domains of its users; empty for the deployment's issuer, which may name any."""
    administrators: str
    """The group whose members are administrators; empty for none."""


class Endpoints(NamedTuple):
    """The URLs and abilities in an issuer's OpenID Connect configuration."""

    authorization: str
    token: str
    user_information: str
    end_session: str
    """The URL of the issuer's logout; empty if it has none."""
    names_itself: bool
    """Whether the issuer's answers carry its name (RFC 9207)."""
    takes_basic: bool
    """Whether the token endpoint takes the client's secret in the Authorization header."""


def find_all() -> dict[str, Issuer]:
    """Returns all issuers for sign-in (OpenID Connect) by name, the deployment's first."""
    own = _issuer(
        OWN_ISSUER,
        {
            "issuer": os.environ["OIDC_ISSUER"],
            "client_id": os.environ["OIDC_CLIENT_ID"],
            "scopes": os.environ.get("OIDC_SCOPES", ""),
            "username_claim": os.environ.get("OIDC_USERNAME_CLAIM", ""),
            "groups_claim": os.environ.get("OIDC_GROUPS_CLAIM", ""),
            "subject_claim": os.environ.get("OIDC_SUBJECT_CLAIM", ""),
        },
    )._replace(administrators=os.environ.get("OIDC_ADMIN_GROUP", ""))
    return {OWN_ISSUER: own} | {
        name: _issuer(name, value) for name, value in sign_in.issuers().items()
    }


def _issuer(name: str, value: Mapping[str, Any]) -> Issuer:
    return Issuer(
        name,
        value.get("title") or value["issuer"],
        value["issuer"],
        value["client_id"],
        value.get("scopes") or "openid email profile",
        value.get("username_claim") or "email",
        value.get("groups_claim") or "groups",
        value.get("subject_claim") or "sub",
        tuple(value.get("domains") or ()),
        "",
    )


_keys: ProcessCache[str, SigningKeys] = ProcessCache("keys of an issuer")
_endpoints: ProcessCache[str, Endpoints] = ProcessCache("endpoints", seconds=_KEPT_SECONDS)


def keys_of(issuer: Issuer) -> SigningKeys:
    """Returns the signing keys of an issuer, which are cached in this process."""
    known = _keys.get(issuer.issuer)
    if known is None:
        known = SigningKeys(issuer.issuer)
        _keys.put(issuer.issuer, known)
    return known


def endpoints_of(issuer: Issuer) -> Endpoints:
    """Returns the issuer's endpoints. Each process fetches them once an hour.

    Raises:
        OSError, ValueError: the issuer's configuration cannot be fetched or is unusable.
    """
    known = _endpoints.get(issuer.issuer)
    if known is None:
        known = _read(configuration_of(issuer.issuer))
        _endpoints.put(issuer.issuer, known)
    return known


def _read(configuration: Mapping[str, Any]) -> Endpoints:
    def address(name: str) -> str:
        value = configuration.get(name)
        return value if isinstance(value, str) and is_safe(value) else ""

    methods = configuration.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    endpoints = Endpoints(
        address("authorization_endpoint"),
        address("token_endpoint"),
        address("userinfo_endpoint"),
        address("end_session_endpoint"),
        configuration.get("authorization_response_iss_parameter_supported") is True,
        "client_secret_basic" in methods,
    )
    if not (endpoints.authorization and endpoints.token):
        raise ValueError("the configuration names no endpoint for authorization or tokens")
    return endpoints


def client_secret(issuer: Issuer) -> str:
    """Returns this server's client secret at an issuer (an OpenID Connect provider); "" for a
    public client, which has none. A secret from Secrets Manager is cached for five minutes.

    Raises:
        TemporarilyUnavailable: Secrets Manager does not give the secret.
    """
    arn = os.environ.get(SECRET_ARN, "")
    text = os.environ.get(SECRET, "")
    if arn:
        text = _secrets.get(arn) or ""
        if not text:
            text = secrets.read_from_secrets_manager(arn).strip()
            _secrets.put(arn, text)
    if not text.startswith("{"):
        return text if issuer.name == OWN_ISSUER else ""
    return str(json.loads(text).get(issuer.client_id, ""))


def now() -> int:
    """Returns the time in seconds since the epoch."""
    return int(time.time())
