"""A login that cannot be checked, because the table or the issuer does not answer, is not called
wrong: clients repeat no request after 401."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

import experiments.app
from authorizer import app as authorizer
from authorizer import oidc_authentication
from mlcore.auth import passwords
from mlcore.auth.passwords import hash_password
from mlcore.db import deadline
from mlcore.entities.users import Session
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import api_keys, sessions, users
from tests.contract.api import Api
from tests.contract.conftest import Store, forget
from tests.doubles.faulty import DATA, WRITES, Fault
from tests.doubles.fixtures import Doubles
from tests.issuer import rsa_key, running

PASSWORD = "password-of-some-length"


class LastSeconds:
    """Lambda's context of an invocation that must answer soon."""

    def get_remaining_time_in_millis(self) -> int:
        return 2_300


def event(method: str, authorization: str, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": "2.0",
        "rawPath": "/api/2.0/mlflow/experiments/create",
        "rawQueryString": "",
        "headers": {
            "content-type": "application/json",
            "host": "localhost",
            "authorization": authorization,
        },
        "requestContext": {
            "http": {"method": method, "sourceIp": "192.0.2.1"},
            "requestId": "test",
        },
        "isBase64Encoded": False,
        "body": json.dumps(body),
    }


def test_the_caller_is_asked_to_repeat_the_request(
    broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, doubles = broken
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setattr(passwords, "_N", 2)
    handler = lambda_handler(experiments.app.RPCS)
    user = users.create("ada", hash_password(PASSWORD), is_admin=False)
    key = api_keys.create(user, "ci", "default", None, None).token

    def create(authorization: str, name: str, *, outage: bool) -> dict[str, Any]:
        forget()
        sent = event("POST", authorization, {"name": name})
        if outage:
            doubles.faulty.arm(Fault.DEAD, 1, DATA)
        answer = authorizer.handler(sent, LastSeconds())
        doubles.faulty.heal()
        assert answer["isAuthorized"] is True
        about = {**sent["requestContext"], "authorizer": {"lambda": answer["context"]}}
        response: dict[str, Any] = handler({**sent, "requestContext": about}, None)
        return response

    right = "Basic " + b64encode(f"ada:{PASSWORD}".encode()).decode()
    wrong = "Basic " + b64encode(b"ada:another-password").decode()
    forged = key[:-1] + ("b" if key[-1] == "a" else "a")
    logins = (right, wrong, f"Bearer {key}", f"Bearer {forged}")
    for number, authorization in enumerate(logins):
        name = f"experiment {number}"
        response = create(authorization, name, outage=True)
        assert response["statusCode"] == 429, "who may call is not told before it is known"
        assert response["headers"]["retry-after"] == "1"
        assert json.loads(response["body"])["error_code"] == "REQUEST_LIMIT_EXCEEDED"
        again = create(authorization, name, outage=False)
        assert again["statusCode"] == (200 if authorization in {right, f"Bearer {key}"} else 401)


def test_a_use_that_cannot_be_recorded_is_no_reason_to_refuse(
    broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an API key on its first day, and of a browser's session after an hour."""
    _, doubles = broken
    user = users.create("ada", hash_password(PASSWORD), is_admin=False)
    key = api_keys.create(user, "ci", "default", None, None).token
    doubles.faulty.arm(Fault.DEAD, 1, WRITES)
    context = authorizer.handler(event("POST", f"Bearer {key}", {}), LastSeconds())["context"]
    assert context["key_user"] == "ada"
    assert doubles.faulty.fired
    session = Session("id", "ada", user.user_id, "issuer", False, 0, 0, 2**40)
    doubles.faulty.arm(Fault.DEAD, 1, WRITES)
    with deadline.within(LastSeconds()):
        sessions.touch(session, 3_600)
    assert doubles.faulty.fired


def test_the_issuer_does_not_answer(shared_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as issuer:
        issuer.publish("r", rsa_key())
        token = issuer.token("r")
        environment = {"OIDC_ISSUER": issuer.url, "OIDC_AUDIENCE": "mlflow"}
        authenticate = oidc_authentication.authenticator(environment)
        monkeypatch.setattr(authorizer, "_authenticate", authenticate)
        issuer.answers = False
        sent = event("POST", f"Bearer {token}", {"name": "x"})
        assert authorizer.handler(sent, None)["context"]["login_not_checked"] is True
        assert authorizer.handler(sent, None)["context"]["login_not_checked"] is True
        monkeypatch.setattr(authorizer, "_authenticate", lambda _login, _address: None)
        assert "login_not_checked" not in authorizer.handler(sent, None)["context"]
