"""The UI's files: what each path gets, what browsers may keep, and what happens without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from local.http.application import Application
from local.http.connection import SENT_BYTES
from local.http.routes import Router
from local.http.ui_files import ASK_EACH_TIME, FOLDER, FOR_A_YEAR, Website
from local.template_definitions import RouteDefinition
from tests.local.http_server import answers, request, served

BIG = bytes(range(256)) * (SENT_BYTES // 100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("outside")
    ui = tmp_path / "ui"
    (ui / "static/js").mkdir(parents=True)
    (ui / "index.html").write_text("<html>page</html>")
    (ui / "favicon.ico").write_bytes(b"icon")
    (ui / "static/js/main.0123abcd.js").write_bytes(BIG)
    (ui / "static/js/empty.89abcdef.chunk.css").write_bytes(b"")
    return ui


def ask(
    website: Website, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request through the runner's application, whose API has no function."""
    app = Application(Router([RouteDefinition("GET /api", "none")]), {}, website)
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    ((status, answered, body),) = answers(served(app, request(method, path, *lines)), method)
    return status, answered, body


def test_page_is_asked_for_each_time(folder: Path) -> None:
    status, headers, body = ask(Website(folder), "/")
    assert (status, body) == (200, b"<html>page</html>")
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == ASK_EACH_TIME
    assert headers["x-frame-options"] == "SAMEORIGIN"
    again = ask(Website(folder), "/", if_none_match=headers["etag"])
    assert again[0] == 304
    assert again[2] == b""


def test_hashed_files_are_kept_for_a_year(folder: Path) -> None:
    status, headers, body = ask(Website(folder), "/static-files/static/js/main.0123abcd.js")
    assert (status, body) == (200, BIG)
    assert headers["content-length"] == str(len(BIG))
    assert headers["content-type"] == "text/javascript; charset=utf-8"
    assert headers["cache-control"] == FOR_A_YEAR
    assert headers["x-content-type-options"] == "nosniff"


def test_head_and_empty_files(folder: Path) -> None:
    website = Website(folder)
    assert ask(website, "/", "HEAD")[1]["content-length"] == "17"
    assert ask(website, "/", "HEAD")[2] == b""
    status, headers, body = ask(website, "/static-files/static/js/empty.89abcdef.chunk.css")
    assert (status, headers["content-length"], body) == (200, "0", b"")


@pytest.mark.parametrize(
    "path",
    [
        "/static-files/../secret.txt",
        "/static-files/%2e%2e/secret.txt",
        "/static-files//etc/passwd",
        "/static-files/",
        "/static-files/static",
        "/static-files/none.js",
        "/build/",
        "/build/none.js",
        "/build/../secret.txt",
    ],
)
def test_only_files_of_the_folder(folder: Path, path: str) -> None:
    assert ask(Website(folder), path)[0] == 404


def test_other_paths_and_methods_are_the_apis(folder: Path) -> None:
    for method, path in (("POST", "/"), ("GET", "/api/2.0"), ("GET", "/static-filesx")):
        assert b'{"message":"Not Found"}' in ask(Website(folder), path, method)[2]


def test_without_files_the_page_says_so(tmp_path: Path) -> None:
    status, headers, body = ask(Website(tmp_path / "none"), "/")
    assert status == 404
    assert headers["content-type"].startswith("text/plain")
    assert b"make setup" in body


def test_installed_ui_is_whole() -> None:
    """`make setup` brings the UI; every file that its page names is there."""
    website = Website(FOLDER)
    status, _, body = ask(website, "/")
    assert status == 200
    named = re.findall(r'(?:src|href)="(?:\./)?([^"]+)"', body.decode())
    assert len(named) >= 4
    for path in named:
        assert ask(website, f"/{path}")[0] == 200
