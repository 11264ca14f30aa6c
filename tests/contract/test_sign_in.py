"""Sign-in of browsers against an issuer that tests control: what succeeds, and attacks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mlcore.repos.settings import config
from signin import addresses, issuers
from tests import issuer as issuer_server
from tests.contract.sign_in_browser import CLIENT, HOST, KEY, OTHER, SESSION, SIGN_IN, Browser
from tests.issuer import Issuer


def test_somebody_signs_in_and_out(issuer: Issuer) -> None:
    browser = Browser()
    begun = browser.begin(**{"return": "/dashboards?a=1#x"})
    assert begun.query()["redirect_uri"] == f"https://{HOST}/login/callback"
    assert begun.query()["code_challenge_method"] == "S256"
    assert all(
        part in begun.cookies[0] for part in ("HttpOnly", "SameSite=Lax", "Secure", "Path=/;")
    )
    page = browser.open("/login/callback", browser.answer(begun, issuer))
    assert (page.status, page.location) == (302, "/dashboards?a=1#x")
    assert list(browser.cookies) == [SESSION]
    user = browser.user()
    assert user is not None
    assert (user.username, user.is_admin) == ("ada@example.org", False)
    stolen = dict(browser.cookies)
    left = browser.open("/logout")
    assert left.location.startswith(f"{issuer.url}/end?")
    assert left.query()["post_logout_redirect_uri"] == f"https://{HOST}/logout?done"
    assert jwt.decode(left.query()["id_token_hint"], options={"verify_signature": False})
    browser.cookies = stolen
    assert browser.user() is None, "a session that ended is no session anywhere"


def _forged(token: str, **header: Any) -> str:
    old, payload, signature = token.split(".")
    told = {**json.loads(base64.urlsafe_b64decode(old + "==")), **header}
    text = base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=").decode()
    return f"{text}.{payload}.{signature}"


def _by_public_key(token: str) -> str:
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


@pytest.mark.parametrize("attack", CLAIMS)
def test_claims_that_are_refused(issuer: Issuer, attack: str) -> None:
    browser = Browser()
    assert browser.sign_in(issuer, **CLAIMS[attack]).status == 400
    assert browser.cookies == {}
    assert browser.user() is None


TOKENS: dict[str, Callable[[str, Issuer, dict[str, Any]], Any]] = {
    "no signature": lambda token, _i, _c: _forged(token, alg="none").rpartition(".")[0] + ".",
    "public key as a secret": lambda token, _i, _c: _by_public_key(token),
    "another algorithm": lambda _t, i, c: i.token("k", algorithm="RS512", **c),
    "another padding": lambda _t, i, c: i.token("k", algorithm="PS256", **c),
    "another key": lambda _t, i, c: i.token("k", OTHER, **c),
    "unknown key": lambda token, _i, _c: _forged(token, kid="unknown"),
    "key in the header": lambda _t, i, c: _forged(
        i.token("k", OTHER, **c), jwk=jwt.algorithms.RSAAlgorithm.to_jwk(OTHER.public_key())
    ),
    "key's address in the header": lambda _t, i, c: _forged(
        i.token("k", OTHER, **c), jku="https://attacker.example/keys"
    ),
    "changed claims": lambda token, _i, _c: token[:-400] + "AAAA" + token[-396:],
    "too long": lambda token, _i, _c: token + "x" * 20_000,
    "no text": lambda _t, _i, _c: {"sub": "1"},
    "missing": lambda _t, _i, _c: None,
}


@pytest.mark.parametrize("attack", TOKENS)
def test_tokens_that_are_refused(issuer: Issuer, attack: str) -> None:
    browser = Browser()
    begun = browser.begin()
    query = browser.answer(begun, issuer)
    claims = {"aud": CLIENT, "nonce": begun.query()["nonce"]}
    issued = issuer.codes[query["code"]]
    issued["id_token"] = TOKENS[attack](issued["id_token"], issuer, claims)
    assert browser.open("/login/callback", query).status == 400
    assert browser.user() is None


def _query(**changed: str | None) -> Callable[[dict[str, str]], dict[str, str]]:
    return lambda query: {k: v for k, v in {**query, **changed}.items() if v is not None}


ANSWERS: dict[str, Callable[[dict[str, str]], dict[str, str] | str]] = {
    "no state": _query(state=None),
    "empty state": _query(state=""),
    "another state": _query(state="x" * 43),
    "state twice": lambda query: f"state={query['state']}&state=x&code={query['code']}",
    "no code": _query(code=None),
    "empty code": _query(code=""),
    "made-up code": _query(code="made-up"),
    "code twice": lambda q: f"state={q['state']}&code={q['code']}&code={q['code']}",
    "code too long": _query(code="c" * 5_000),
    "another issuer's name": _query(iss="https://attacker.example"),
    "error": _query(error="access_denied"),
    "error with HTML": _query(error="<script>alert(1)</script>"),
    "nothing": lambda _query: "",
}


@pytest.mark.parametrize("attack", ANSWERS)
def test_answers_that_are_refused(issuer: Issuer, attack: str) -> None:
    browser = Browser()
    query = browser.answer(browser.begin(), issuer)
    page = browser.open("/login/callback", ANSWERS[attack](query))
    assert (page.status, browser.user()) == (400, None)
    assert "<script" not in page.body
    assert SIGN_IN not in browser.cookies, "an attempt is made once"


def test_answer_in_another_browser(issuer: Issuer) -> None:
    """Neither the victim's browser takes the attacker's answer, nor the other way round."""
    victim, attacker = Browser(), Browser()
    of_attacker = attacker.answer(attacker.begin(), issuer, email="eve@example.org")
    assert victim.open("/login/callback", of_attacker).status == 400
    victim.begin()
    assert victim.open("/login/callback", of_attacker).status == 400
    stolen = victim.answer(victim.begin(), issuer)
    begun = attacker.begin()
    injected = {"state": begun.query()["state"], "code": stolen["code"]}
    assert attacker.open("/login/callback", injected).status == 400, "PKCE binds the code"
    assert (victim.user(), attacker.user()) == (None, None)


def test_code_injection_without_pkce_at_the_issuer(issuer: Issuer) -> None:
    """The nonce binds the code even where the issuer ignores PKCE."""
    victim, attacker = Browser(), Browser()
    stolen = victim.answer(victim.begin(), issuer)
    del issuer.challenges[stolen["code"]]
    state = attacker.begin().query()["state"]
    assert attacker.open("/login/callback", {**stolen, "state": state}).status == 400


def test_replay(issuer: Issuer) -> None:
    browser = Browser()
    query = browser.answer(browser.begin(), issuer)
    before = dict(browser.cookies)
    assert browser.open("/login/callback", query).status == 302
    browser.cookies.pop(SESSION)
    assert browser.open("/login/callback", query).status == 400
    browser.cookies = before
    assert browser.open("/login/callback", query).status == 400
    assert browser.user() is None


def test_attempts_end(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser()
    query = browser.answer(browser.begin(), issuer)
    later = issuers.now() + 601
    monkeypatch.setattr(issuers, "now", lambda: later)
    assert browser.open("/login/callback", query).status == 400


def test_mix_up(issuer: Issuer) -> None:
    """An answer of one issuer at the address, or under the name, of another."""
    with issuer_server.running() as other:
        other.publish("k", OTHER)
        entry = {"issuer": other.url, "client_id": CLIENT, "domains": ["other.example"]}
        config.put("sign_in_issuers", {"other": entry})
        browser = Browser()
        assert browser.open("/login").status == 200, "people choose"
        query = browser.answer(browser.begin(issuer=""), issuer)
        assert browser.open("/login/callback/other", query).status == 400
        query = browser.answer(browser.begin(issuer="other"), other)
        assert browser.open("/login/callback", query).status == 400
        assert len(issuer.exchanges) + len(other.exchanges) == 0, "no code went anywhere"
        there = "/login/callback/other"
        assert browser.sign_in(other, there, email="eve@example.org").status == 400
        assert browser.sign_in(other, there, email="eve@evil.other.example").status == 400
        assert browser.sign_in(other, there, email="bob@other.example").status == 302
        user = browser.user()
        assert user is not None
        assert user.username == "bob@other.example"
        assert browser.open("/login", {"issuer": "nobody"}).status == 404


def test_issuers_that_name_themselves_must(issuer: Issuer) -> None:
    issuer.more["authorization_response_iss_parameter_supported"] = True
    issuers._endpoints.pop(issuer.url)
    browser = Browser()
    query = browser.answer(browser.begin(), issuer)
    assert browser.open("/login/callback", query).status == 400
    query = browser.answer(browser.begin(), issuer)
    assert browser.open("/login/callback", {**query, "iss": issuer.url}).status == 302


@pytest.mark.parametrize(
    "address",
    [
        *("//evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example"),
        *("/\t/evil.example", "/ /evil.example", "///evil.example", "javascript:alert(1)"),
        *("evil.example", "", "/a\r\nset-cookie: x=1", "/login?return=/", "/login/callback"),
        *("/logout", "/" + "a" * 3_000, "/\x00", "/a\\b", "@evil.example"),
    ],
)
def test_open_redirects(issuer: Issuer, address: str) -> None:
    assert addresses.return_address(address) == "/"
    browser = Browser()
    begun = browser.begin(**{"return": address})
    page = browser.open("/login/callback", browser.answer(begun, issuer))
    assert (page.status, page.location) == (302, "/")
