"""Accounts with MLflow's own client of them, old and new; and what a session leaves in the log."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
import requests

from tests.e2e.clients import CURRENT, run_script
from tests.servers import ADMIN, Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("login_script.py")
NO_SECRETS = (
    "password-of-a-user",
    "anotherpassword",
    "a wrong password",
    "a description that nobody else may read",
    ADMIN[1],
    "scrypt$",
    "Basic ",
)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    made = start_product(
        folder,
        "--auth",
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
        POWERTOOLS_LOG_LEVEL="DEBUG",
    )
    with stopped(made) as server:
        yield server


@pytest.mark.parametrize("version", [CURRENT, "3.7.0"])
def test_accounts(guarded: Server, version: str, tmp_path: Path) -> None:
    run_script(SCRIPT, version, tmp_path, guarded.url, uuid4().hex, *ADMIN)


def _status(
    guarded: Server, path: str, login: tuple[str, str] | None = ADMIN, body: bytes | None = None
) -> int:
    headers = {"Content-Type": "application/json"}
    if login is not None:
        headers["Authorization"] = "Basic " + b64encode(":".join(login).encode()).decode()
    try:
        with urlopen(Request(guarded.url + path, body, headers), timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_signup_page_makes_an_account(guarded: Server) -> None:
    """With the token that its form carries, and for administrators only."""
    with requests.Session() as browser:
        browser.auth, name = ADMIN, f"new {uuid4().hex}"
        page = browser.get(guarded.url + "/signup")
        match = re.search(r'name="csrf_token" value="(\S+)"', page.text)
        assert match is not None
        target = guarded.url + "/api/2.0/mlflow/users/create-ui"
        form = {"username": name, "password": "password-of-a-user"}
        assert "The CSRF token is missing" in browser.post(target, data=form).text
        forged = browser.post(target, data={**form, "csrf_token": "x"})
        assert (forged.status_code, "do not match" in forged.text) == (400, True)
        form["csrf_token"] = match[1]
        assert browser.post(target, json=form).status_code == 400
        short = browser.post(target, data={**form, "password": "short"})
        assert short.status_code == 400
        assert f"Successfully signed up user: {name}" in browser.post(target, data=form).text
        assert "already been taken" in browser.post(target, data=form).text
        browser.auth = (name, "password-of-a-user")
        assert browser.get(guarded.url + "/api/2.0/mlflow/users/current").status_code == 200
        assert browser.get(guarded.url + "/signup").status_code == 403
    assert requests.get(guarded.url + "/signup", timeout=30).status_code == 401


def test_log_holds_no_secret(guarded: Server) -> None:
    """After all that the scripts did, wrong passwords and requests that fail among it."""
    post = "/api/2.0/mlflow/registered-models/create"
    described = b'{"name": "m", "description": "a description that nobody else may read"}'
    assert _status(guarded, post, body=described) == 200
    assert _status(guarded, post, body=described) == 400
    assert _status(guarded, post, body=b'{"name": ["a description that nobody else') == 400
    assert _status(guarded, "/version", ("admin", "a wrong password")) == 401
    changed = b'{"username": "admin", "password": "a wrong password", "current_password": "x"}'
    assert _status(guarded, "/api/2.0/mlflow/users/create", body=changed) == 400
    text = guarded.log.read_text(errors="replace")
    encoded = b64encode(":".join(ADMIN).encode()).decode()
    assert [secret for secret in (*NO_SECRETS, encoded) if secret in text] == []


@pytest.mark.parametrize(
    ("path", "needs_login"),
    [
        ("/", True),
        ("/version", True),
        ("/graphql", True),
        ("/get-artifact?run_id=x&path=y", True),
        ("/api/2.0/mlflow/users/current", True),
        ("/ajax-api/2.0/mlflow/users/current", True),
        ("/api/2.0/mlflow-artifacts/artifacts", True),
        ("/no/such/page", True),
        ("/health", False),
        ("/api/3.0/mlflow/server-info", False),
        ("/ajax-api/3.0/mlflow/server-info", False),
        ("/favicon.ico", False),
    ],
)
def test_what_is_open(guarded: Server, path: str, needs_login: bool) -> None:
    assert (_status(guarded, path, None) == 401) is needs_login
