"""The OpenID provider of the tests, oidc-provider from npm, as a process; and what people do at its
pages."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin

import requests

from tests.engines import ROOT, free_port
from tests.servers import environment

PROGRAM: Final = Path(__file__).with_name("provider.mjs")
CLIENT: Final = "mlflow"
FONT: Final = "https://fonts.googleapis.com/**"
"""The provider's own pages ask for a font of another machine."""


class Provider(NamedTuple):
    issuer: str
    groups: Path

    def put_into(self, **groups: list[str]) -> None:
        """Says which account is in which groups from now on."""
        self.groups.write_text(json.dumps(groups))

    def answer(self, address: str, name: str) -> str:
        """Signs in without a browser. Returns the address to which the provider sends a browser
        that came to it with ``address``."""
        with requests.Session() as session:
            reply = session.get(address, allow_redirects=False, timeout=30)
            for _ in range(10):
                if reply.is_redirect:
                    location = urljoin(reply.url, reply.headers["location"])
                    if not location.startswith(f"{self.issuer}/"):
                        return location
                    reply = session.get(location, allow_redirects=False, timeout=30)
                else:
                    assert reply.status_code == 200, reply.text
                    prompt = "login" if 'name="login"' in reply.text else "consent"
                    form = {"prompt": prompt, "login": name, "password": "any"}
                    reply = session.post(reply.url, form, allow_redirects=False, timeout=30)
        raise AssertionError(reply.url)

    def tokens(self, **grant: str) -> Any:
        """What the token endpoint answers to a code."""
        form = {"grant_type": "authorization_code", "client_id": CLIENT, **grant}
        reply = requests.post(f"{self.issuer}/token", form, timeout=30)
        assert reply.status_code == 200, reply.text
        return reply.json()


@contextlib.contextmanager
def running(folder: Path, product: str) -> Iterator[Provider]:
    """A provider that knows the product, by its address, as the client ``mlflow``."""
    port = free_port()
    groups, log = folder / "groups.json", folder / "provider.log"
    groups.write_text("{}")
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["node", str(PROGRAM), str(port), product, str(groups)],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=output,
        )
    try:
        assert process.stdout is not None
        assert b"ready" in process.stdout.readline(), log.read_text()
        yield Provider(f"http://127.0.0.1:{port}", groups)
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def sign_in(page: Any, name: str) -> None:
    """What a person does at the provider's pages."""
    page.locator("input[name=login]").fill(name)
    page.locator("input[name=password]").fill("any")
    page.locator("button[type=submit]").click()
    page.get_by_text("Authorize").first.wait_for()
    page.locator("button[type=submit]").click()
