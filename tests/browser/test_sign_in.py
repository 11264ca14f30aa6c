"""People sign in to the UI with a browser, at a provider that others wrote (oidc-provider)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import requests

from tests.browser import provider
from tests.browser.conftest import visiting
from tests.browser.drawn_cards import ask_nothing
from tests.browser.provider import FONT, Provider, sign_in
from tests.browser.visitor import Visitor
from tests.engines import free_port
from tests.servers import start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
CURRENT = "/ajax-api/2.0/mlflow/users/current"


class Product(NamedTuple):
    url: str
    provider: Provider


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("sign-in")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with provider.running(folder, url) as running:
        chosen = {
            "Authentication": "oidc",
            "OidcIssuer": running.issuer,
            "OidcAudience": provider.CLIENT,
            "OidcClientId": provider.CLIENT,
            "OidcAdminGroup": "admins",
        }
        arguments = [f"--parameter={name}={value}" for name, value in chosen.items()]
        with stopped(start_product(folder, *arguments, port=port)):
            yield Product(url, running)


def _current(visitor: Visitor) -> Any:
    return visitor.page.evaluate(f"fetch('{CURRENT}').then(async r => [r.status, await r.text()])")


def test_people_sign_in_and_out(browser: Any, product: Product) -> None:
    product.provider.put_into(ada=["admins"])
    with visiting(browser, product.url) as visitor:
        page = visitor.page
        page.route(FONT, lambda route: route.fulfill(status=204))
        page.goto(product.url)
        assert page.url.startswith(product.provider.issuer)
        sign_in(page, "ada")
        page.wait_for_url(f"{product.url}/**")
        visitor.looks("sign-in-home", "Welcome to MLflow")
        status, body = _current(visitor)
        assert (status, json.loads(body)["user"]["username"]) == (200, "ada@example.org")
        assert page.evaluate("document.cookie") == ""
        assert [
            (cookie["name"], cookie["httpOnly"], cookie["sameSite"])
            for cookie in page.context.cookies(product.url)
            if cookie["name"].startswith("mlflow")
        ] == [("mlflow-session", True, "Lax")]
        webhooks = "fetch('/ajax-api/2.0/mlflow/webhooks').then(r => r.status)"
        assert page.evaluate(webhooks) == 200, "administrators only"
        made = page.evaluate(
            "fetch('/ajax-api/2.0/mlflow/experiments/create', {method: 'POST', "
            "headers: {'content-type': 'application/json'}, body: '{\"name\": \"by ada\"}'})"
            ".then(r => r.status)"
        )
        assert made == 200
        ask_nothing(page)
        page.goto(f"{product.url}/dashboards")
        assert page.url == f"{product.url}/dashboards"
        page.goto(f"{product.url}/logout")
        if page.url.startswith(product.provider.issuer):
            page.locator("button[value=yes], button[type=submit]").first.click()
        page.wait_for_url(f"{product.url}/logout?done")
        assert "You are signed out" in page.locator("body").inner_text()
        page.goto(product.url)
        assert page.url.startswith(product.provider.issuer)
        page.locator("input[name=login]").wait_for()  # the provider's session has ended, too


def test_lost_group(browser: Any, product: Product) -> None:
    webhooks = "fetch('/ajax-api/2.0/mlflow/webhooks').then(r => r.status)"
    for groups, expected in ((["admins"], 200), ([], 403)):
        product.provider.put_into(bob=groups)
        with visiting(browser, product.url) as visitor:
            visitor.expected.add(("GET", "/ajax-api/2.0/mlflow/webhooks", 403))
            visitor.page.goto(f"{product.url}/")
            sign_in(visitor.page, "bob")
            visitor.page.wait_for_url(f"{product.url}/**")
            assert visitor.page.evaluate(webhooks) == expected


def test_programs_get_401(product: Product) -> None:
    answer = requests.get(f"{product.url}{CURRENT}", timeout=30)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (
        401,
        'Bearer realm="mlflow"',
    )
    page = requests.get(product.url, headers={"accept": "*/*"}, timeout=30)
    assert page.status_code == 401
