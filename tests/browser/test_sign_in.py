"""People sign in to the UI with a browser, at a provider that others wrote (oidc-provider)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.engines import ROOT, free_port
from tests.servers import environment, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PROVIDER = Path(__file__).with_name("provider.mjs")
FONT = "https://fonts.googleapis.com/**"
CURRENT = "/ajax-api/2.0/mlflow/users/current"


class SignIn(NamedTuple):
    url: str
    issuer: str
    groups: Path

    def put_into(self, **groups: list[str]) -> None:
        """Says which account is in which groups from now on."""
        self.groups.write_text(json.dumps(groups))


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignIn]:
    folder = tmp_path_factory.mktemp("sign-in")
    port, issuer_port = free_port(), free_port()
    url, issuer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{issuer_port}"
    groups = folder / "groups.json"
    groups.write_text("{}")
    with (folder / "provider.log").open("wb") as log:
        provider = subprocess.Popen(
            ["node", str(PROVIDER), str(issuer_port), url, str(groups)],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert provider.stdout is not None
        assert b"ready" in provider.stdout.readline(), (folder / "provider.log").read_text()
        chosen = {
            "Authentication": "oidc",
            "OidcIssuer": issuer,
            "OidcAudience": "mlflow",
            "OidcClientId": "mlflow",
            "OidcAdminGroup": "admins",
        }
        arguments = [f"--parameter={name}={value}" for name, value in chosen.items()]
        with stopped(start_product(folder, *arguments, port=port)):
            yield SignIn(url, issuer, groups)
    finally:
        provider.terminate()
        provider.wait()
        if provider.stdout is not None:
            provider.stdout.close()


def _sign_in(visitor: Visitor, name: str) -> None:
    """What a person does at the provider's pages."""
    visitor.page.locator("input[name=login]").fill(name)
    visitor.page.locator("input[name=password]").fill("any")
    visitor.page.locator("button[type=submit]").click()
    visitor.page.get_by_text("Authorize").first.wait_for()
    visitor.page.locator("button[type=submit]").click()


def _current(visitor: Visitor) -> Any:
    return visitor.page.evaluate(f"fetch('{CURRENT}').then(async r => [r.status, await r.text()])")


def test_people_sign_in_and_out(browser: Any, product: SignIn) -> None:
    product.put_into(ada=["admins"])
    with visiting(browser, product.url) as visitor:
        page = visitor.page
        # The provider's own pages ask for a font of another machine.
        page.route(FONT, lambda route: route.fulfill(status=204))
        page.goto(product.url)
        assert page.url.startswith(product.issuer)
        _sign_in(visitor, "ada")
        page.wait_for_url(f"{product.url}/**")
        visitor.looks("sign-in-home", "Welcome to MLflow")
        status, body = _current(visitor)
        assert (status, json.loads(body)["user"]["username"]) == (200, "ada@example.org")
        assert page.evaluate("document.cookie") == ""
        assert [
            (one["name"], one["httpOnly"], one["sameSite"])
            for one in page.context.cookies(product.url)
            if one["name"].startswith("mlflow")
        ] == [("mlflow-session", True, "Lax")]
        webhooks = "fetch('/ajax-api/2.0/mlflow/webhooks').then(r => r.status)"
        assert page.evaluate(webhooks) == 200, "administrators only"
        made = page.evaluate(
            "fetch('/ajax-api/2.0/mlflow/experiments/create', {method: 'POST', "
            "headers: {'content-type': 'application/json'}, body: '{\"name\": \"by ada\"}'})"
            ".then(r => r.status)"
        )
        assert made == 200
        page.goto(f"{product.url}/dashboards")
        assert page.url == f"{product.url}/dashboards"
        page.goto(f"{product.url}/logout")
        if page.url.startswith(product.issuer):
            page.locator("button[value=yes], button[type=submit]").first.click()
        page.wait_for_url(f"{product.url}/logout?done")
        assert "You are signed out" in page.locator("body").inner_text()
        page.goto(product.url)
        assert page.url.startswith(product.issuer)
        page.locator("input[name=login]").wait_for()  # the provider's session has ended, too


def test_lost_group(browser: Any, product: SignIn) -> None:
    webhooks = "fetch('/ajax-api/2.0/mlflow/webhooks').then(r => r.status)"
    for groups, expected in ((["admins"], 200), ([], 403)):
        product.put_into(bob=groups)
        with visiting(browser, product.url) as visitor:
            visitor.expected.add(("GET", "/ajax-api/2.0/mlflow/webhooks", 403))
            visitor.page.goto(f"{product.url}/")
            _sign_in(visitor, "bob")
            visitor.page.wait_for_url(f"{product.url}/**")
            assert visitor.page.evaluate(webhooks) == expected


def test_programs_get_401(product: SignIn) -> None:
    answer = requests.get(f"{product.url}{CURRENT}", timeout=30)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (
        401,
        'Bearer realm="mlflow"',
    )
    page = requests.get(product.url, headers={"accept": "*/*"}, timeout=30)
    assert page.status_code == 401
