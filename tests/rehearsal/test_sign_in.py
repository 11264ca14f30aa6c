"""People sign in behind CloudFront, in AWS's shape: at an issuer that others wrote, with the
deployed functions, keys and distribution. Nobody gets in by a forged request or by another's
cookie, and an erased person leaves nothing behind."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import sync_playwright

from tests.browser import chromium
from tests.browser.conftest import visiting
from tests.browser.provider import FONT, sign_in
from tests.browser.visitor import SCREENSHOTS
from tests.rehearsal import edge_cache, stored
from tests.rehearsal import site as sites
from tests.rehearsal.layer_builds import build as built_layer
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
from tests.rehearsal.stack import Stack, interpreter
from tests.servers import environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SQL: Final = "/ajax-api/3.0/mlflow-serverless/sql"
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


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("signing-in")
    machine = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    layer = built_layer("TokensLayer", "layers/tokens", interpreter(), folder, machine)
    tokens = Path(shutil.make_archive(str(folder / "tokens"), "zip", layer))
    with sites.signing_in(stack, tokens, folder) as served:
        served.provider.put_into(ada=[sites.ADMINISTRATORS])
        yield served


@pytest.fixture
def visitor(site: Site) -> Visitor:
    return Visitor(site)


@pytest.fixture(scope="module")
def ada(site: Site) -> Visitor:
    """An administrator, who has signed in."""
    visitor = Visitor(site)
    visitor.sign_in("ada")
    return visitor


@pytest.fixture(scope="module")
def eve(site: Site) -> Visitor:
    """A user without rights, who has signed in."""
    visitor = Visitor(site)
    visitor.sign_in("eve")
    return visitor


def test_people_sign_in_and_out(site: Site) -> None:
    program = chromium.executable()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    rule = f"--host-resolver-rules=MAP {site.domain} 127.0.0.1:{site.port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(program),
            args=[*chromium.ARGUMENTS, rule, "--ignore-certificate-errors"],
            env=chromium.environment(program),
        )
        with visiting(browser, site.url) as visitor:
            page = visitor.page
            page.route(FONT, lambda route: route.fulfill(status=204))
            # Its engine is built for Lambda's processors.
            page.route(f"**{SQL}", lambda route: route.abort("aborted"))
            begun: list[str] = []
            page.on("request", lambda request: begun.append(request.url))
            page.goto(f"{site.url}/dashboards")
            [address] = [one for one in begun if one.startswith(f"{site.provider.issuer}/auth?")]
            assert fields_of(address)["redirect_uri"] == f"{site.url}/login/callback"
            sign_in(page, "ada")
            page.wait_for_url(f"{site.url}/dashboards")
            assert page.title() == "MLflow dashboards"
            visitor.open("/experiments")
            visitor.looks("rehearsal-signed-in", "Default", "ada@example.org")
            assert not [one for one in begun if "execute-api" in one]
            assert page.evaluate("document.cookie") == ""
            [cookie] = page.context.cookies(site.url)
            kept = ("name", "domain", "path", "secure", "httpOnly", "sameSite")
            assert [cookie[one] for one in kept] == [SESSION, site.domain, "/", True, True, "Lax"]
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
        browser.close()


def test_cookies_are_as_promised(visitor: Visitor) -> None:
    begun = visitor.send("GET", "/login")
    [attempt] = begun.cookies
    finished = visitor.finish(visitor.site.provider.answer(begun.header("location"), "ada"))
    session, over = finished.cookies
    for cookie, name in ((attempt, ATTEMPT), (session, SESSION), (over, ATTEMPT)):
        assert cookie.startswith(f"{name}=")
        attributes = {one for one in cookie.split("; ")[1:] if not one.startswith("Max-Age=")}
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
    assert [one["name"] for one in ada.call(*search, **team)[1]["experiments"]] == ["of the team"]
    status, body = eve.call(*search, **team)
    assert "of the team" not in json.dumps(body)
    assert status in (200, 403, 404)
    assert eve.call("POST", CREATE, {"name": "of eve"}, **team)[0] in (403, 404)


PROGRAM: Final = """
import os, sys, mlflow
url, *logins = sys.argv[1:]
mlflow.set_tracking_uri(url)
for number, login in enumerate(logins):
    os.environ["MLFLOW_TRACKING_TOKEN"] = login
    experiment = mlflow.create_experiment(f"by a program {number}")
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_metric("loss", 0.5)
    assert mlflow.get_run(run.info.run_id).data.metrics == {"loss": 0.5}
print("ok")
"""


def _key_of_account(ada: Visitor, name: str, **fields: Any) -> Any:
    """A key of a new service account, which is an administrator."""
    account = {"username": name}
    path = "/ajax-api/3.0/mlflow-serverless/service-accounts"
    assert ada.call("POST", path, account)[0] == 200
    path = "/ajax-api/2.0/mlflow/users/update-admin"
    assert ada.call("PATCH", path, {**account, "is_admin": True})[0] == 200
    status, made = ada.call("POST", KEYS, {**account, "name": "key", **fields})
    assert status == 200, made
    return made


def test_programs_use_tokens_and_keys(site: Site, ada: Visitor, tmp_path: Path) -> None:
    made, token = _key_of_account(ada, "ci"), site.token("ada")
    key = made["token"]
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script), site.here, token, key],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=environment(
            MLFLOW_TRACKING_SERVER_CERT_PATH=str(site.certificate),
            MLFLOW_HTTP_REQUEST_MAX_RETRIES="1",
        ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout
    program = Visitor(site)
    for login, name in ((key, "ci"), (token, "ada@example.org")):
        bearer = {"authorization": f"Bearer {login}"}
        assert program.call("GET", CURRENT, **bearer)[1]["user"]["username"] == name
        assert site.behind("GET", CURRENT, {**CALL, **bearer}).status == 403
        assert program.call("GET", CURRENT, authorization=f"Bearer {login}x")[0] == 401
    reply = program.send("GET", CURRENT, None, {"accept": "*/*"})
    assert (reply.status, reply.header("x-amzn-remapped-www-authenticate")) == (
        401,
        'Bearer realm="mlflow"',
    )
    identity = made["key"]["key_id"]
    assert ada.call("DELETE", KEYS, {"key_id": identity})[0] == 200
    assert program.call("GET", CURRENT, authorization=f"Bearer {key}")[0] == 401
    # The right to administrate is the session's, and so no key's.
    own = ada.call("POST", KEYS, {"name": "own"})[1]["token"]
    assert program.call("GET", WEBHOOKS, authorization=f"Bearer {own}")[0] == 403


def test_directory_is_told_the_address_of_cloudfront(site: Site, ada: Visitor) -> None:
    made = _key_of_account(ada, "directory", scopes=["scim"])
    bearer = {"authorization": f"Bearer {made['token']}"}
    program, path = Visitor(site), "/scim/v2/ServiceProviderConfig"
    for forged in ({}, {"x-forwarded-host": EVIL}):
        status, config = program.call("GET", path, **bearer, **forged)
        assert (status, config["meta"]["location"]) == (200, site.url + path)
    assert site.behind("GET", path, bearer).status == 403


def test_erased_person_is_nowhere(site: Site, ada: Visitor) -> None:
    """The last test, as the runs and tables of all others are searched."""
    stack, name = site.stack, "zoe.quill@example.org"
    administrators = [sites.ADMINISTRATORS]
    site.provider.put_into(ada=administrators, **{"zoe.quill": administrators})
    zoe = Visitor(site)
    zoe.sign_in("zoe.quill")
    created, body = zoe.call("POST", CREATE, {"name": "of somebody who leaves"})
    assert created == 200, body
    run = {"experiment_id": body["experiment_id"], "user_id": name, "start_time": 1}
    run["tags"] = [{"key": "mlflow.user", "value": name}]
    created, made = zoe.call("POST", "/ajax-api/2.0/mlflow/runs/create", run)
    assert created == 200, made
    run_id = made["run"]["info"]["run_id"]
    key = zoe.call("POST", KEYS, {"name": "of zoe"})[1]["token"]
    assert stored.deliver_audit(stack) > 0
    _publish_until(
        stack, lambda: {"runs_latest", "audit_log"} <= {*stored.tables_with(stack, name)}
    )
    assert len([text for text in stored.items(stack) if name in text]) > 5

    erased = stack.operate("erase-user", name)
    assert erased.returncode == 0, erased.stdout + erased.stderr
    assert zoe.name() is None
    assert Visitor(site).call("GET", CURRENT, authorization=f"Bearer {key}")[0] == 401
    _publish_until(stack, lambda: not stored.tables_with(stack, name))
    stored.remove_former_files(stack)
    assert [text for text in stored.items(stack) if name in text] == []
    for output in ("SystemTablesBucketName", "ArtifactBucketName"):
        assert [key for key, text in stored.files(stack, output) if name in key + text] == []
    found = ada.call("GET", f"/ajax-api/2.0/mlflow/runs/get?run_id={run_id}")[1]["run"]
    assert found["info"]["user_id"].startswith("person-")
    verified = stack.operate("audit", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def _publish_until(stack: Stack, is_there: Callable[[], bool]) -> None:
    """Publishes system tables, as the publisher's schedule does, until the stream has followed."""
    deadline = time.monotonic() + 90
    while not is_there():
        assert time.monotonic() < deadline, stored.tables_with(stack, "")
        published = stack.operate("system-tables", "publish")
        assert published.returncode == 0, published.stdout + published.stderr
