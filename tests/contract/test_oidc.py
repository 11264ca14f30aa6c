"""Tokens of a real issuer against the authorizer, and what must not pass for one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from authorizer import oidc_authentication
from mlcore.auth.permissions import Grant
from mlcore.entities.users import User
from mlcore.errors import TemporarilyUnavailable
from mlcore.oidc import signing_keys, tokens
from mlcore.repos.users import grants, users
from tests import issuer as issuers
from tests.contract.conftest import Store
from tests.issuer import Issuer

RSA, OTHER_RSA, EC = issuers.rsa_key(), issuers.rsa_key(), issuers.ec_key()


class Login(NamedTuple):
    issuer: Issuer
    show: Callable[[str], User | None]


@pytest.fixture
def login(shared_store: Store) -> Iterator[Login]:
    with issuers.running() as issuer:
        issuer.publish("r", RSA)
        issuer.publish("e", EC)
        environment = {
            "OIDC_ISSUER": issuer.url,
            "OIDC_AUDIENCE": "mlflow",
            "OIDC_ADMIN_GROUP": "mlflow-admins",
        }
        authenticate = oidc_authentication.authenticator(environment)
        yield Login(issuer, lambda token: authenticate(f"Bearer {token}", "10.0.0.1"))


@pytest.mark.parametrize("kid", ["r", "e"])
def test_valid_token_is_its_bearer(login: Login, kid: str) -> None:
    user = login.show(login.issuer.token(kid, email=f"{kid}@example.org"))
    assert user is not None
    assert (user.username, user.is_admin) == (f"{kid}@example.org", False)
    assert users.get(user.username).password_hash == ""


def test_user_keeps_number_and_grants(login: Login) -> None:
    token = login.issuer.token("r", email="kept@example.org")
    first = login.show(token)
    assert first is not None
    grants.create(first, "default", Grant("experiment", "1", "EDIT"))
    assert login.show(token) == first
    profile = users.find_profile("kept@example.org")
    assert profile is not None
    users.delete(profile)
    again = login.show(token)
    assert again is not None
    assert again.user_id != first.user_id
    made = users.find_profile("kept@example.org")
    assert made is not None
    assert made.grants == ()


@pytest.mark.parametrize(
    ("groups", "is_admin"),
    [
        (["staff", "mlflow-admins"], True),
        ("mlflow-admins", True),
        (["mlflow-admins-not"], False),
        ("x mlflow-admins", False),
        ({"mlflow-admins": 1}, False),
        (None, False),
    ],
)
def test_administrators_are_a_group(login: Login, groups: Any, is_admin: bool) -> None:
    user = login.show(login.issuer.token("r", groups=groups))
    assert user is not None
    assert user.is_admin is is_admin


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://elsewhere"},
        {"iss": None},
        {"aud": "other"},
        {"aud": ["other", "another"]},
        {"aud": None},
        {"exp": int(time.time()) - 61},
        {"exp": None},
        {"exp": "never"},
        {"nbf": int(time.time()) + 10**8},
        {"email": None},
        {"email": ""},
        {"email": ["ada@example.org"]},
        {"email": "x" * 256},
        {"email_verified": False},
    ],
)
def test_claims_that_do_not_fit(login: Login, claims: dict[str, Any]) -> None:
    assert login.show(login.issuer.token("r", **claims)) is None


def test_clocks_may_differ_by_a_minute(login: Login) -> None:
    now = int(time.time())
    assert login.show(login.issuer.token("r", exp=now - 50, nbf=now + 50)) is not None


def _with_header(token: str, signature: str | None = None, **changed: Any) -> str:
    header, payload, signed = token.split(".")
    fields = {**json.loads(base64.urlsafe_b64decode(header + "==")), **changed}
    text = base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()
    return f"{text}.{payload}.{signed if signature is None else signature}"


def test_signatures_that_do_not_fit(login: Login) -> None:
    issuer = login.issuer
    token = issuer.token("r")
    assert login.show(token) is not None
    header, payload, signature = token.split(".")
    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    forged = [
        _with_header(token, "", alg="none"),
        f"{header}.{payload}.",
        f"{header}.{payload}",
        issuer.token("r", key=OTHER_RSA),
        issuer.token("r", key=EC),
        issuer.token("e", key=RSA),
        _with_header(token, kid="e"),
        _with_header(token, kid="nobody's"),
        _with_header(token, kid=None),
        _with_header(token, kid=["r"]),
        _with_header(token, alg="ES256"),
        _with_header(token, alg="RS512"),
        issuer.token("r", algorithm="RS512"),
        issuer.token("r", algorithm="PS256"),
        _hs256(payload, public),
        _with_header(issuer.token("r", key=OTHER_RSA), jwk=_public(OTHER_RSA)),
        _with_header(token, crit=["exp"]),
        f"{header}.{payload[:-4]}AAAA.{signature}",
        "",
        "x",
        "a.b.c",
        "é.é.é",
        token + "x" * tokens.MAXIMUM_TOKEN,
    ]
    assert [each for each in forged if login.show(each) is not None] == []


def _hs256(payload: str, secret: bytes) -> str:
    """Signed with the public key as if it were a shared secret."""
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"r"}').rstrip(b"=").decode()
    mac = hmac.digest(secret, f"{header}.{payload}".encode(), hashlib.sha256)
    return f"{header}.{payload}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def _public(key: Any) -> dict[str, Any]:
    return dict(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True))


def test_headers_that_are_no_bearer_tokens(shared_store: Store, login: Login) -> None:
    token = login.issuer.token("r")
    environment = {"OIDC_ISSUER": login.issuer.url, "OIDC_AUDIENCE": "mlflow"}
    authenticate = oidc_authentication.authenticator(environment)
    for header in ("", token, f"Basic {token}", "Bearer", "Bearer "):
        assert authenticate(header, "") is None
    assert authenticate(f"bearer {token}", "") is not None


@pytest.mark.parametrize("missing", ["OIDC_ISSUER", "OIDC_AUDIENCE"])
def test_nothing_is_accepted_without_issuer_and_audience(missing: str) -> None:
    environment = {"OIDC_ISSUER": "https://x", "OIDC_AUDIENCE": "mlflow", missing: ""}
    with pytest.raises(KeyError):
        oidc_authentication.authenticator(environment)


def test_keys_are_asked_for_seldom(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer, now = login.issuer, [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for _ in range(5):
        assert login.show(issuer.token("r")) is not None
        assert login.show(_with_header(issuer.token("r"), kid="unknown")) is None
    assert issuer.asked == 2  # the configuration and the keys

    new = issuers.rsa_key()
    issuer.publish("new", new)
    now[0] += signing_keys.RETRY_SECONDS + 1
    assert login.show(issuer.token("new")) is not None
    assert issuer.asked == 4

    del issuer.public["r"]  # the issuer has taken the key back
    now[0] += signing_keys.KEPT_SECONDS + 1
    assert login.show(issuer.token("r")) is None

    issuer.answers = False
    now[0] += signing_keys.KEPT_SECONDS + 1
    assert login.show(issuer.token("new")) is not None


@pytest.mark.parametrize("clock", ["monotonic", "time"])
def test_keys_age_on_either_clock(
    login: Login, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    """While a process is frozen, one of them may stand still."""
    clocks = {"monotonic": time.monotonic(), "time": time.time()}
    for each in clocks:
        monkeypatch.setattr(time, each, partial(clocks.__getitem__, each))
    keys = signing_keys.SigningKeys(login.issuer.url)
    assert keys.find("r") is not None
    del login.issuer.public["r"]
    assert keys.find("r") is not None
    clocks[clock] += signing_keys.KEPT_SECONDS + 1
    assert keys.find("r") is None


def test_keys_that_are_not_used(login: Login) -> None:
    issuer = login.issuer
    issuer.publish("weak", issuers.rsa_key(1_024))
    issuer.publish("for-encryption", OTHER_RSA, use="enc")
    issuer.publish("of-another-kind", OTHER_RSA, alg="RS512")
    issuer.public["secret"] = {"kty": "oct", "kid": "secret", "k": "c2VjcmV0", "alg": "HS256"}
    issuer.public["broken"] = {"kty": "RSA", "kid": "broken", "n": "AQAB"}
    for kid in ("for-encryption", "of-another-kind"):
        assert login.show(issuer.token(kid)) is None
    keys = signing_keys.SigningKeys(issuer.url)
    assert [kid for kid in issuer.public if keys.find(kid)] == ["r", "e"]


def test_configuration_of_another_issuer(login: Login) -> None:
    login.issuer.named = "https://elsewhere"
    with pytest.raises(TemporarilyUnavailable):
        login.show(login.issuer.token("r"))


def test_keys_come_by_https(shared_store: Store) -> None:
    with pytest.raises(TemporarilyUnavailable):
        signing_keys.SigningKeys("http://issuer.invalid").find("r")
