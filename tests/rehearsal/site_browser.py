"""Chromium at the deployment's own address, which no name server of the internet knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from playwright.sync_api import sync_playwright

from tests.browser import chromium
from tests.browser.conftest import visiting
from tests.browser.provider import FONT
from tests.browser.visitor import SCREENSHOTS, Visitor
from tests.rehearsal.site import Site

SQL: Final = "**/ajax-api/3.0/mlflow-serverless/sql"
"""Queries of the dashboards. Their engine is built for Lambda's processors."""


@contextlib.contextmanager
def browsing(site: Site) -> Iterator[Visitor]:
    """A new profile of a browser that finds the site."""
    program = chromium.executable()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    there = f"MAP {site.domain} 127.0.0.1:{site.port}"
    rule = f"--host-resolver-rules={there}, {chromium.NO_OTHER_MACHINE}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(program),
            args=[*chromium.ARGUMENTS, rule, "--ignore-certificate-errors"],
            env=chromium.environment(program),
        )
        with visiting(browser, site.url) as visitor:
            visitor.page.route(FONT, lambda route: route.fulfill(status=204))
            visitor.page.route(SQL, lambda route: route.abort("aborted"))
            yield visitor
        browser.close()
