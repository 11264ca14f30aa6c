"""Attacks on the sign-in of browsers: what an attacker puts into tokens, into what the issuer
returns with, and into the address that is opened afterwards."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.contract.sign_in_browser import CLIENT, KEY, OTHER
from tests.issuer import Issuer


def forged(token: str, **header: Any) -> str:
    old, payload, signature = token.split(".")
    new_header = {**json.loads(base64.urlsafe_b64decode(old + "==")), **header}
    text = base64.urlsafe_b64encode(json.dumps(new_header).encode()).rstrip(b"=").decode()
    return f"{text}.{payload}.{signature}"


def by_public_key(token: str) -> str:
    payload = token.split(".")[1]
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"k"}').rstrip(b"=").decode()
    mac = hmac.digest(public, f"{header}.{payload}".encode(), hashlib.sha256)
    return f"{header}.{payload}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


CLAIMS: dict[str, dict[str, Any]] = {
    "nonce of another sign-in": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "nonce of another type": {"nonce": ["x"]},
    "another client's token": {"aud": "another"},
    "two audiences and no authorized party": {"aud": [CLIENT, "another"]},
    "two audiences, authorized is another": {"aud": [CLIENT, "another"], "azp": "another"},
    "authorized party is another": {"azp": "another"},
    "another issuer's name": {"iss": "https://elsewhere"},
    "no issuer": {"iss": None},
    "expired": {"exp": int(time.time()) - 120},
    "without an end": {"exp": None},
    "not valid yet": {"nbf": int(time.time()) + 10_000},
    "issued in the future": {"iat": int(time.time()) + 10_000},
    "no time of issue": {"iat": None},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "subject too long": {"sub": "s" * 256},
    "no name": {"email": None},
    "name is a list": {"email": ["ada@example.org"]},
    "name too long": {"email": "a" * 256},
    "address that nobody checked": {"email_verified": False},
    "the same as a text": {"email_verified": "false"},
}


TOKENS: dict[str, Callable[[str, Issuer, dict[str, Any]], Any]] = {
    "no signature": lambda token, _i, _c: forged(token, alg="none").rpartition(".")[0] + ".",
    "public key as a secret": lambda token, _i, _c: by_public_key(token),
    "another algorithm": lambda _t, i, c: i.token("k", algorithm="RS512", **c),
    "another padding": lambda _t, i, c: i.token("k", algorithm="PS256", **c),
    "another key": lambda _t, i, c: i.token("k", OTHER, **c),
    "unknown key": lambda token, _i, _c: forged(token, kid="unknown"),
    "key in the header": lambda _t, i, c: forged(
        i.token("k", OTHER, **c), jwk=jwt.algorithms.RSAAlgorithm.to_jwk(OTHER.public_key())
    ),
    "key's address in the header": lambda _t, i, c: forged(
        i.token("k", OTHER, **c), jku="https://attacker.example/keys"
    ),
    "changed claims": lambda token, _i, _c: token[:-400] + "AAAA" + token[-396:],
    "too long": lambda token, _i, _c: token + "x" * 20_000,
    "no text": lambda _t, _i, _c: {"sub": "1"},
    "missing": lambda _t, _i, _c: None,
}


def changed_query(**changed: str | None) -> Callable[[dict[str, str]], dict[str, str]]:
    return lambda query: {k: v for k, v in {**query, **changed}.items() if v is not None}


ANSWERS: dict[str, Callable[[dict[str, str]], dict[str, str] | str]] = {
    "no state": changed_query(state=None),
    "empty state": changed_query(state=""),
    "another state": changed_query(state="x" * 43),
    "state twice": lambda query: f"state={query['state']}&state=x&code={query['code']}",
    "no code": changed_query(code=None),
    "empty code": changed_query(code=""),
    "made-up code": changed_query(code="made-up"),
    "code twice": lambda q: f"state={q['state']}&code={q['code']}&code={q['code']}",
    "code too long": changed_query(code="c" * 5_000),
    "another issuer's name": changed_query(iss="https://attacker.example"),
    "error": changed_query(error="access_denied"),
    "error with HTML": changed_query(error="<script>alert(1)</script>"),
    "nothing": lambda _query: "",
}


REDIRECTS: Final = (
    *("//evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example"),
    *("/\t/evil.example", "/ /evil.example", "///evil.example", "javascript:alert(1)"),
    *("evil.example", "", "/a\r\nset-cookie: x=1", "/login?return=/", "/login/callback"),
    *("/logout", "/" + "a" * 3_000, "/\x00", "/a\\b", "@evil.example"),
)
"""Addresses to return to that lead elsewhere."""
