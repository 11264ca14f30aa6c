"""Attacks on sign-in, sessions, tokens and API keys, each by its name: none gets in."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from typing import Any

import pytest

import experiments.app
from authorizer import app as authorizer
from authorizer import basic_authentication, oidc_authentication, session_authentication
from mlcore.auth.passwords import check_password
from mlcore.auth.permissions import Grant
from mlcore.db import capacity
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import api_keys, grants, users
from signin import issuers
from tests.contract.attacked_site import ADA, Site
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.login_attacks import ATTACKS
from tests.contract.sign_in_browser import CLIENT, SESSION, Browser
from tests.issuer import Issuer

LEAST = 80


@pytest.fixture
def site(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("OIDC_AUDIENCE", CLIENT)
    authenticate = oidc_authentication.authenticator(
        {"OIDC_ISSUER": issuer.url, "OIDC_AUDIENCE": CLIENT}
    )
    monkeypatch.setattr(authorizer, "_method", "oidc")
    monkeypatch.setattr(authorizer, "_authenticate", authenticate)
    monkeypatch.setattr(authorizer, "_authenticate_session", session_authentication.authenticate)
    return Site(issuer)


def test_attacks_are_many_and_of_every_kind() -> None:
    kinds = Counter(name.partition(":")[0] for name in ATTACKS)
    assert len(ATTACKS) >= LEAST, kinds
    assert min(kinds.values()) >= 4, kinds
    assert kinds.keys() >= {"ID token", "callback", "redirect", "sign-in", "session", "bearer"}
    assert kinds.keys() >= {"key", "header", "other site"}


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_refused(site: Site, name: str) -> None:
    assert ATTACKS[name](site) is False
    # The same with the right cookie, token or key is let in, also after the attack.
    assert site.knows({SESSION: site.session}, "POST", sec_fetch_site="same-origin")
    assert site.bearer(site.key)
    assert site.basic(ADA, site.key)
    assert site.bearer(site.token())


def test_attempt_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser()
    query = browser.answer(browser.begin(), site.issuer)
    later = issuers.now() + 601
    monkeypatch.setattr(issuers, "now", lambda: later)
    assert browser.open("/login/callback", query).status == 400


def test_stolen_login_opens_no_other_workspace(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a session nor a key has rights in a workspace in which its user has none."""
    enable_workspaces(monkeypatch, "team-a", "team-b")
    monkeypatch.setenv(AUTHENTICATION, "oidc")
    grants.put(site.owner, "team-a", Grant("workspace", "*", "MANAGE"))
    of_team_a = api_keys.create(site.owner, "k", "team-a", ("read",), None)
    handler = lambda_handler(experiments.app.RPCS)

    def status(context: dict[str, Any], workspace: str, path: str, body: Any) -> int:
        event = {
            "version": "2.0",
            "rawPath": f"/api/2.0/mlflow/experiments/{path}",
            "rawQueryString": "",
            "headers": {"content-type": "application/json", "x-mlflow-workspace": workspace},
            "requestContext": {
                "http": {"method": "POST"},
                "requestId": "test",
                "authorizer": {"lambda": context},
            },
            "isBase64Encoded": False,
            "body": json.dumps(body),
        }
        code: int = handler(event, None)["statusCode"]
        return code

    session = site.context({SESSION: site.session}, "POST")
    whole = site.context(authorization=f"Bearer {site.key}")
    limited = site.context(authorization=f"Bearer {of_team_a.token}")
    for number, context in enumerate((session, whole)):
        made = {"name": f"experiment {number}"}
        assert status(context, "team-a", "create", made) == 200
        assert status(context, "team-b", "create", made) == 403
        assert status(context, "no-such-team", "create", made) in {403, 404}
    search = {"max_results": 5}
    assert status(limited, "team-a", "search", search) == 200
    assert status(limited, "team-a", "create", {"name": "beyond the scope"}) == 403
    assert status(limited, "team-b", "search", search) == 403


def test_work_does_not_tell_who_exists(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong password of a user and of nobody costs one hash and the same requests, and so does a
    wrong secret of a key and of none."""
    users.create("ada", "", is_admin=False)
    key = api_keys.create(users.get("ada"), "k", "default", None, None).token
    hashed: list[str] = []

    def counted(password: str, stored: str) -> bool:
        hashed.append(stored)
        return check_password(password, stored)

    monkeypatch.setattr(basic_authentication, "check_password", counted)

    def work(login: str) -> tuple[int, int]:
        hashed.clear()
        event = {
            "rawPath": "/",
            "headers": {"authorization": login},
            "requestContext": {"http": {"method": "GET", "sourceIp": "192.0.2.1"}},
        }
        with capacity.measure() as measured:
            assert "username" not in authorizer.handler(event, None)["context"]
        return len(hashed), measured.round_trips

    def basic(name: str) -> str:
        return "Basic " + b64encode(f"{name}:wrong".encode()).decode()

    assert work(basic("ada")) == work(basic("nobody"))
    assert len(hashed) == 1
    prefix, key_id, secret = key.split("_", 2)
    other_id = key_id[:-1] + ("A" if key_id[-1] != "A" else "B")
    wrong = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    first = work(f"Bearer {prefix}_{key_id}_{wrong}")
    assert first == work(f"Bearer {prefix}_{other_id}_{wrong}")
    assert first[0] == 0
