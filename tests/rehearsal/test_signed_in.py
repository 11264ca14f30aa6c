"""What people and programs do who are signed in behind CloudFront; and that an erased person leaves
nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.browser.provider import sign_in
from tests.rehearsal import site as sites
from tests.rehearsal import stored
from tests.rehearsal.sign_in_attacks import EVIL
from tests.rehearsal.site import CALL, CREATE, CURRENT, KEYS, WEBHOOKS, Site, Visitor
from tests.rehearsal.site_browser import browsing
from tests.rehearsal.stack import Stack
from tests.servers import environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_people_see_the_ui(site: Site) -> None:
    with browsing(site) as visitor:
        page = visitor.page
        page.goto(f"{site.url}/")
        sign_in(page, "ada")
        page.wait_for_url(f"{site.url}/**")
        visitor.looks("rehearsal-signed-in", "Welcome to MLflow", "ada@example.org")


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
    kept_run = ada.call("GET", f"/ajax-api/2.0/mlflow/runs/get?run_id={run_id}")[1]["run"]
    assert kept_run["info"]["user_id"].startswith("person-")
    verified = stack.operate("audit", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def _publish_until(stack: Stack, is_there: Callable[[], bool]) -> None:
    """Publishes system tables, as the publisher's schedule does, until the stream has followed."""
    deadline = time.monotonic() + 90
    while not is_there():
        assert time.monotonic() < deadline, stored.tables_with(stack, "")
        published = stack.operate("system-tables", "publish")
        assert published.returncode == 0, published.stdout + published.stderr
