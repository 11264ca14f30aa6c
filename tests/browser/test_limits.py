"""The page of the AI gateway's limits: a user sees what is used of the own ones, of no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.differential.rest import Side, post
from tests.doubles.providers import openai, serving
from tests.e2e.gateway_configuration import Configuration
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
VERA = ("vera", "password-of-vera")
PAGE = "/dashboards/limits"
CONFIG = "/api/3.0/mlflow-serverless/config/gateway_limits"
TITLE = "Limits of the AI gateway"
LIMITS = {
    "users": {"*": {"requests_per_day": 1500, "tokens_per_minute": 10_000}},
    "endpoints": {"chat": {"requests_per_minute": 4, "concurrent_calls": 2}},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("limits")
    server = start_product(
        folder,
        "--auth",
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        DEFAULT_PERMISSION="USE",
    )
    with stopped(server), serving(openai) as provider:
        side = Side(server.url)
        side.login = ADMIN
        made = side.send(post("users/create", {"username": VERA[0], "password": VERA[1]}))
        assert made.status == 200
        side.close()
        gateway = Configuration(server.url)
        gateway.endpoint("chat", gateway.model("openai", "openai", f"{provider.url}/v1", "gpt-4o"))
        yield server.url


def set_limits(url: str, value: dict[str, Any]) -> None:
    answer = requests.put(f"{url}{CONFIG}", json={"value": value}, auth=ADMIN, timeout=30)
    assert answer.ok, answer.text


def chat(url: str) -> None:
    body: dict[str, Any] = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}
    path = f"{url}/gateway/mlflow/v1/chat/completions"
    assert requests.post(path, json=body, auth=VERA, timeout=60).ok


def rows(visitor: Visitor) -> list[list[str]]:
    visitor.page.locator("body[data-state=drawn]").wait_for()
    return [
        [cell.inner_text().strip() for cell in row.locator("td").all()]
        for row in visitor.page.locator("#list tr").all()
    ]


def test_what_a_user_has_used(browser: Any, url: str) -> None:
    with visiting(browser, url, VERA) as visitor:
        visitor.page.goto(f"{url}{PAGE}")
        assert rows(visitor) == []
        visitor.looks("limits-none", "No limits concern you.")
    set_limits(url, LIMITS)
    for _ in range(2):
        chat(url)
    with visiting(browser, url, VERA) as visitor:
        page = visitor.page
        page.goto(f"{url}{PAGE}")
        user, endpoint = rows(visitor)
        assert user == ["user", "vera", "", "2 of 1,500", "36 of 10,000", "", ""]
        # A minute may have ended between the calls.
        assert endpoint[:2] == ["endpoint", "chat"]
        assert endpoint[2] in ("0 of 4", "1 of 4", "2 of 4")
        assert endpoint[6] == "0 of 2"
        assert page.locator("meter").count() == 4
        visitor.looks("limits", TITLE)
        chat(url)
        page.locator("td", has_text="3 of 1,500").wait_for()  # it reads again by itself
    with visiting(browser, url, ADMIN) as visitor:
        visitor.page.goto(f"{url}{PAGE}")
        assert rows(visitor)[0][:4] == ["user", "admin", "", "0 of 1,500"]
        assert "vera" not in visitor.page.locator("#list").inner_text()
    with visiting(browser, url) as visitor:
        answer = visitor.page.goto(f"{url}{PAGE}")
        assert (answer.status, "www-authenticate" in answer.headers) == (401, True)
