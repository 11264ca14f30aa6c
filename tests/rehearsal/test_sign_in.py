"""People sign in behind CloudFront, in AWS's shape: at an issuer that others wrote, with the
deployed functions, keys and distribution. Nobody gets in by a forged request or by another's
cookie."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.browser.provider import sign_in
from tests.rehearsal import edge_cache
from tests.rehearsal import site as sites
from tests.rehearsal.sign_in_attacks import ATTACKS, EVIL, Attack
from tests.rehearsal.site import (
    ATTEMPT,
    CALL,
    CREATE,
    CURRENT,
    KEYS,
    PAGE,
    SESSION,
    WEBHOOKS,
    Site,
    Visitor,
    fields_of,
)
from tests.rehearsal.site_browser import browsing

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SPOOFED: Final = (
    {"x-forwarded-host": EVIL},
    {"x-forwarded-proto": "http"},
    {"forwarded": f"for=192.0.2.1;host={EVIL};proto=http"},
    {"x-original-host": EVIL, "x-host": EVIL, "x-forwarded-server": EVIL},
    {"x-forwarded-port": "80", "x-forwarded-scheme": "http", "x-url-scheme": "http"},
    {"x-original-url": f"https://{EVIL}/", "x-rewrite-url": f"https://{EVIL}/"},
    {"host": EVIL},
    {"origin": f"https://{EVIL}", "referer": f"https://{EVIL}/login"},
)
"""Headers by which servers behind proxies learn their own address."""


@pytest.fixture
def visitor(site: Site) -> Visitor:
    return Visitor(site)


@pytest.fixture(scope="module")
def eve(site: Site) -> Visitor:
    """A user without rights, who has signed in."""
    visitor = Visitor(site)
    visitor.sign_in("eve")
    return visitor


def test_people_sign_in_and_out(site: Site) -> None:
    with browsing(site) as visitor:
        page = visitor.page
        begun: list[str] = []
        page.on("request", lambda request: begun.append(request.url))
        page.goto(f"{site.url}/dashboards")
        [address] = [url for url in begun if url.startswith(f"{site.provider.issuer}/auth?")]
        assert fields_of(address)["redirect_uri"] == f"{site.url}/login/callback"
        sign_in(page, "ada")
        page.wait_for_url(f"{site.url}/dashboards")
        assert page.title() == "MLflow dashboards"
        assert not [url for url in begun if "execute-api" in url]
        assert page.evaluate("document.cookie") == ""
        [cookie] = page.context.cookies(site.url)
        kept = ("name", "domain", "path", "secure", "httpOnly", "sameSite")
        assert [cookie[field] for field in kept] == [SESSION, site.domain, "/", True, True, "Lax"]
        call = f"fetch('{CURRENT}').then(r => r.json())"
        assert page.evaluate(call)["user"]["username"] == "ada@example.org"
        create = (
            f"fetch('{CREATE}', {{method: 'POST', headers: {{'content-type': "
            "'application/json'}, body: '{\"name\": \"by a browser\"}'}).then(r => r.status)"
        )
        assert page.evaluate(create) == 200
        page.goto(f"{site.url}/logout")
        if page.url.startswith(site.provider.issuer):
            page.locator("button[value=yes], button[type=submit]").first.click()
        page.wait_for_url(f"{site.url}/logout?done")
        assert "You are signed out" in page.locator("body").inner_text()
        assert page.context.cookies(site.url) == []
        page.goto(f"{site.url}/")
        page.locator("input[name=login]").wait_for()  # the issuer's session has ended, too
        assert page.url.startswith(site.provider.issuer)


def test_cookies_are_as_promised(visitor: Visitor) -> None:
    begun = visitor.send("GET", "/login")
    [attempt] = begun.cookies
    finished = visitor.finish(visitor.site.provider.answer(begun.header("location"), "ada"))
    session, over = finished.cookies
    for cookie, name in ((attempt, ATTEMPT), (session, SESSION), (over, ATTEMPT)):
        assert cookie.startswith(f"{name}=")
        attributes = {part for part in cookie.split("; ")[1:] if not part.startswith("Max-Age=")}
        assert attributes == {"Path=/", "HttpOnly", "SameSite=Lax", "Secure"}
    assert "; Max-Age=0; " in over
    assert set(visitor.cookies) == {SESSION}
    for reply in (begun, finished):
        assert reply.header("cache-control") == "no-store"


def test_lost_group_counts_at_the_next_sign_in(site: Site) -> None:
    site.provider.put_into(ada=[sites.ADMINISTRATORS], bob=[sites.ADMINISTRATORS])
    before, after = Visitor(site), Visitor(site)
    before.sign_in("bob")
    site.provider.put_into(ada=[sites.ADMINISTRATORS])
    assert before.call("GET", WEBHOOKS)[0] == 200
    after.sign_in("bob")
    assert after.call("GET", WEBHOOKS)[0] == 403


def test_ended_session_is_worth_nothing(visitor: Visitor) -> None:
    visitor.sign_in("ada")
    stolen = dict(visitor.cookies)
    assert visitor.name() == "ada@example.org"
    leaving = visitor.send("GET", "/logout")
    assert leaving.header("location").startswith(f"{visitor.site.provider.issuer}/session/end?")
    assert fields_of(leaving.header("location"))["post_logout_redirect_uri"] == (
        f"{visitor.site.url}/logout?done"
    )
    assert visitor.cookies == {}
    visitor.cookies = stolen
    assert visitor.name() is None
    assert visitor.cookies == {}, "the page of an ended session loses its cookie"


@pytest.mark.parametrize("headers", SPOOFED, ids=str)
def test_forged_headers_change_no_address(
    site: Site, visitor: Visitor, headers: dict[str, str]
) -> None:
    through = visitor.begin(headers={**PAGE, **headers})
    assert fields_of(through)["redirect_uri"] == f"{site.url}/login/callback"
    # Past CloudFront, with its word, nothing that a viewer sent has been removed.
    behind = site.behind("GET", "/login", {**PAGE, **headers, **site.distribution.word})
    assert behind.status == 302
    assert fields_of(behind.header("location"))["redirect_uri"] == f"{site.url}/login/callback"
    assert behind.cookies[0].startswith(f"{ATTEMPT}=")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("/login", "/login/callback?state=x&code=y", "/logout")),
        *(("GET", path) for path in (CURRENT, "/api/2.0/mlflow/users/current", "/version")),
        *(("GET", path) for path in ("/health", "/", "/ajax-api/3.0/mlflow/server-info")),
        *(("POST", path) for path in ("/graphql", CREATE, "/v1/traces", KEYS)),
    ],
)
def test_api_gateway_refuses(site: Site, ada: Visitor, method: str, path: str) -> None:
    """OnlyThroughUi: with a good session, without a word and with wrong ones."""
    session = {"cookie": f"{SESSION}={ada.cookies[SESSION]}"}
    for word in ({}, {"x-mlflow-origin": ""}, {"x-mlflow-origin": site.stack.name}):
        reply = site.behind(method, path, {**CALL, **session, **word})
        assert reply.status == 403, (word, reply)
        assert reply.cookies == ()
        assert reply.header("location") == ""


def test_caches_keep_nothing_of_anybody(site: Site, ada: Visitor, eve: Visitor) -> None:
    """Files are kept for everybody; pages of the sign-in, answers and errors for nobody."""
    file = "/static-files/lib/notebook-trace-renderer/index.html"
    hits = [visitor.send("GET", file).header("x-cache") for visitor in (ada, Visitor(site))]
    assert hits[1] == edge_cache.HIT, hits
    for _ in range(2):
        for visitor, name in ((ada, "ada@example.org"), (eve, "eve@example.org")):
            assert visitor.name() == name
        assert Visitor(site).name() is None
    # An anonymous page leads to the sign-in also after somebody has seen it.
    assert ada.send("GET", "/").status == 200
    assert Visitor(site).send("GET", "/").header("location") == "/login?return=%2F"
    states = [fields_of(Visitor(site).begin())["state"] for _ in range(2)]
    assert states[0] != states[1]
    # What was missing or forbidden is seen as soon as it is not.
    path = "/ajax-api/2.0/mlflow/experiments/get-by-name?experiment_name=late"
    assert ada.call("GET", path)[0] == 404
    assert ada.call("POST", CREATE, {"name": "late"})[0] == 200
    assert ada.call("GET", path)[0] == 200
    assert eve.call("GET", WEBHOOKS)[0] == 403
    assert ada.call("GET", WEBHOOKS)[0] == 200


def test_foreign_pages_write_nothing(site: Site, ada: Visitor) -> None:
    name = {"name": "by a foreign page"}
    for headers in (
        {"sec-fetch-site": "cross-site", "origin": f"https://{EVIL}"},
        {"sec-fetch-site": "same-site", "origin": "https://other.cloudfront.net"},
        {"sec-fetch-site": "same-origin, cross-site"},
        {"sec-fetch-site": "cross-site", "origin": site.url, "host": site.domain},
    ):
        status, _ = ada.call("POST", CREATE, name, **headers)
        assert status in (401, 403), headers
    # Behind CloudFront the origin is no host that the functions know.
    old = {key: value for key, value in CALL.items() if key != "sec-fetch-site"}
    assert ada.send("POST", CREATE, name, {**old, "origin": site.url}).status == 403
    assert ada.name() == "ada@example.org", "and end no session"
    status, _ = ada.call("POST", CREATE, name)
    assert status == 200


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__.strip("_"))
def test_attack_fails(site: Site, attack: Attack) -> None:
    assert not attack(Visitor(site), Visitor(site))


@pytest.mark.parametrize(
    "address",
    [f"//{EVIL}", f"/\\{EVIL}", f"https://{EVIL}", f"/\t/{EVIL}", "javascript:alert(1)", "/login"],
)
def test_no_redirect_leads_elsewhere(visitor: Visitor, address: str) -> None:
    reply = visitor.sign_in("ada", address)
    assert reply.header("location") == "/"


def test_session_enters_no_foreign_workspace(site: Site, ada: Visitor, eve: Visitor) -> None:
    made, _ = ada.call("POST", "/ajax-api/3.0/mlflow/workspaces", {"name": "team-of-ada"})
    assert made == 201
    team = {"x-mlflow-workspace": "team-of-ada"}
    assert ada.call("POST", CREATE, {"name": "of the team"}, **team)[0] == 200
    search = ("POST", "/ajax-api/2.0/mlflow/experiments/search", {"max_results": 10})
    assert [experiment["name"] for experiment in ada.call(*search, **team)[1]["experiments"]] == [
        "of the team"
    ]
    status, body = eve.call(*search, **team)
    assert "of the team" not in json.dumps(body)
    assert status in (200, 403, 404)
    assert eve.call("POST", CREATE, {"name": "of eve"}, **team)[0] in (403, 404)
