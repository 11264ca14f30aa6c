"""Sessions of browsers: what continues one, what ends it, and which rights it has."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest

from authorizer import session_authentication
from mlcore.auth.permissions import Grant
from mlcore.oidc import signing_keys
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import roles, sessions, sign_in_accounts, users
from mlcore.sign_in import cookies
from operate import create_admin
from operate.module_loading import CannotRun
from tests.contract.sign_in_browser import CLIENT, HOST, OTHER, SESSION, SIGN_IN, Browser
from tests.issuer import Issuer


def test_cookies_that_are_no_session(issuer: Issuer) -> None:
    browser = Browser()
    browser.sign_in(issuer)
    good = browser.cookies[SESSION]
    key_id, _, sealed = good.partition(".")
    begun = Browser()
    begun.begin()
    for forged in (
        "",
        "x",
        sealed,
        f"{key_id}.",
        f"{key_id}.{sealed[:-2]}",
        f"{key_id}.A{sealed[1:]}",
        f"{'0' * 26}.{sealed}",
        f"{key_id.lower()}.{sealed}",
        f"../{key_id}.{sealed}",
        begun.cookies[SIGN_IN],
        cookies.seal(["ada@example.org", "guessed"], SESSION),
        good + "x" * 5_000,
    ):
        browser.cookies = {SESSION: forged}
        assert browser.user() is None, forged
    browser.cookies = {"mlflow-session": good}
    assert browser.user() is None, "a neighbour of the domain may set this name"
    browser.cookies = {SESSION: good}
    assert browser.user() is not None
    event: dict[str, Any] = browser._event("GET", "/", "", {})
    event["cookies"] = [f"{SESSION}={good}", f"{SESSION}=planted"]
    assert session_authentication.authenticate(event, {}) is None


def test_fixation(issuer: Issuer) -> None:
    """A session that somebody planted in the browser ends when its owner signs in."""
    attacker, victim = Browser(), Browser()
    attacker.sign_in(issuer, email="eve@example.org", sub="eve")
    victim.cookies = dict(attacker.cookies)
    victim.sign_in(issuer)
    user = victim.user()
    assert user is not None
    assert user.username == "ada@example.org"
    assert attacker.user() is None
    assert victim.cookies[SESSION] != attacker.cookies[SESSION]


def test_headers_name_nobody(issuer: Issuer) -> None:
    browser = Browser()
    for name in ("x-forwarded-user", "x-mlflow-user", "remote-user", "x-amzn-oidc-data", "cookie"):
        assert browser.user(**{name: f"{SESSION}=ada@example.org"}) is None


@pytest.mark.parametrize(
    ("headers", "is_known"),
    [
        ({"sec_fetch_site": "same-origin"}, True),
        ({}, True),
        ({"origin": f"https://{HOST}"}, True),
        ({"sec_fetch_site": "cross-site"}, False),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "none"}, False),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": f"https://{HOST}.evil.example"}, False),
    ],
)
def test_other_sites_change_nothing(
    issuer: Issuer, headers: dict[str, str], is_known: bool
) -> None:
    browser = Browser()
    browser.sign_in(issuer)
    assert (browser.user("POST", **headers) is not None) is is_known
    assert browser.user("GET", **headers) is not None


def test_other_sites_sign_nobody_out(issuer: Issuer) -> None:
    browser = Browser()
    browser.sign_in(issuer)
    assert browser.open("/logout", **{"sec-fetch-site": "cross-site"}).status == 200
    assert browser.user() is not None


def test_sessions_end(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an hour without a request, and after twelve hours with requests."""
    browser, real, moved = Browser(), time.time, [0.0]
    browser.sign_in(issuer)
    idle = Browser()
    idle.sign_in(issuer)
    monkeypatch.setattr(time, "time", lambda: real() + moved[0])
    for minutes in range(0, 12 * 60, 30):
        moved[0] = minutes * 60.0
        assert browser.user() is not None, minutes
        if minutes == 60:
            assert idle.user() is None
    moved[0] = 12 * 3_600.0
    assert browser.user() is None


def test_users_that_are_gone(issuer: Issuer) -> None:
    browser = Browser()
    browser.sign_in(issuer, email="gone@example.org", sub="gone")
    users.delete(users.get_profile("gone@example.org"))
    assert browser.user() is None
    users.create("gone@example.org", "", is_admin=True)
    assert browser.user() is None, "a later user of the name is somebody else"


def test_all_sessions_of_a_user(issuer: Issuer) -> None:
    browsers = [Browser() for _ in range(3)]
    for browser in browsers:
        browser.sign_in(issuer)
    assert sessions.end_all("ada@example.org") >= 3
    assert [browser.user() for browser in browsers] == [None] * 3


def test_name_keeps_its_account(issuer: Issuer) -> None:
    """An address that another person gets later is not that person's user."""
    browser = Browser()
    assert browser.sign_in(issuer, email="pat@example.org", sub="first").status == 302
    other = Browser()
    assert other.sign_in(issuer, email="pat@example.org", sub="second").status == 403
    assert other.user() is None
    users.delete(users.get_profile("pat@example.org"))
    assert other.sign_in(issuer, email="pat@example.org", sub="second").status == 302


def test_groups_give_roles_and_take_them(issuer: Issuer) -> None:
    grant = {"resource_type": "experiment", "resource_pattern": "*", "permission": "EDIT"}
    stored_settings.put(
        "sign_in_roles",
        [
            {"claim": "groups", "value": "ds", "role": "scientists", "permissions": [grant]},
            {"claim": "email_domain", "value": "Example.org", "role": "staff", "permissions": []},
            {"claim": "realm_access.roles", "value": "root", "administrator": True},
        ],
    )
    by_hand = roles.create("by-hand", "default", None)
    staff = roles.create("staff", "default", None)
    browser, who = Browser(), {"email": "gil@example.org", "sub": "gil"}
    users.create(who["email"], "", is_admin=False)  # rights may exist before the first sign-in
    roles.assign(users.get(who["email"]), by_hand.role_id)
    browser.sign_in(issuer, groups=["ds"], **who)
    given = roles.find_named("default", "scientists")
    assert given is not None
    assert [permission.grant for permission in given.permissions] == [
        Grant("experiment", "*", "EDIT")
    ]

    def held() -> set[int]:
        return set(users.get_profile(who["email"]).role_ids)

    assert held() == {by_hand.role_id, staff.role_id, given.role_id}
    browser.sign_in(issuer, groups=["other"], **who)
    assert held() == {by_hand.role_id, staff.role_id}
    browser.sign_in(issuer, realm_access={"roles": ["root"]}, **who)
    user = browser.user()
    assert user is not None
    assert user.is_admin
    assert not users.get(who["email"]).is_admin
    stored_settings.put("sign_in_roles", [])
    browser.sign_in(issuer, realm_access={"roles": ["root"]}, groups=["ds"], **who)
    user = browser.user()
    assert user is not None
    assert not user.is_admin
    assert held() == {by_hand.role_id}
    account = sign_in_accounts.find(user)
    assert account is not None
    assert account.role_ids == frozenset()


def test_keys_rotate_at_the_issuer(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser()
    assert browser.sign_in(issuer).status == 302
    issuer.publish("k", OTHER)
    clock = time.monotonic() + signing_keys.KEPT_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    assert browser.sign_in(issuer).status == 302


def test_issuer_that_does_not_answer(issuer: Issuer) -> None:
    browser = Browser()
    query = browser.answer(browser.begin(), issuer)
    issuer.answers = False
    assert browser.open("/login/callback", query).status == 503


def test_user_information_of_somebody_else(issuer: Issuer) -> None:
    browser = Browser()
    issuer.user = {"sub": "another", "groups": ["mlflow-admins"]}
    assert browser.sign_in(issuer).status == 400
    issuer.user = {"sub": "1", "groups": ["mlflow-admins"]}
    assert browser.sign_in(issuer).status == 302
    user = browser.user()
    assert user is not None
    assert user.is_admin


def test_plain_http_on_a_laptop(issuer: Issuer) -> None:
    browser = Browser({"host": "localhost:5000"})
    assert browser.sign_in(issuer).status == 302
    assert list(browser.cookies) == ["mlflow-session"]
    assert browser.user() is not None


def test_clients_secret(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIDC_CLIENT_SECRET", "a secret:")
    Browser().sign_in(issuer)
    login = issuer.exchanges[-1]["login"].removeprefix("Basic ")
    assert base64.b64decode(login).decode() == f"{CLIENT}:a%20secret%3A"


def test_first_administrator_has_no_password(issuer: Issuer) -> None:
    create_admin.create_admin_of_issuer("root@example.org", replace=False)
    with pytest.raises(CannotRun, match="--replace"):
        create_admin.create_admin_of_issuer("root@example.org", replace=False)
    assert users.get("root@example.org").password_hash == ""
    browser = Browser()
    browser.sign_in(issuer, email="root@example.org")
    user = browser.user()
    assert user is not None
    assert user.is_admin
    create_admin.create_admin_of_issuer("root@example.org", replace=True)
