"""Sign-in of browsers against an issuer that tests control: what succeeds, and attacks."""

from __future__ import annotations

import jwt
import pytest

from mlcore.repos.settings import stored_settings
from signin import issuers
from tests import issuer as issuer_server
from tests.contract.sign_in_browser import CLIENT, HOST, OTHER, SESSION, Browser
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
        stored_settings.put("sign_in_issuers", {"other": entry})
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
