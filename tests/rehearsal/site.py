"""The deployment as people meet it who sign in: at CloudFront's address, over HTTPS, with an issuer
in the internet; and a visitor of it without a browser's pages."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.browser.provider import CLIENT, Provider
from tests.rehearsal import certificate, front
from tests.rehearsal.reply import Reply
from tests.rehearsal.stack import Stack

ADMINISTRATORS: Final = "admins"
SESSION: Final = "__Host-mlflow-session"
ATTEMPT: Final = "__Host-mlflow-sign-in"
CURRENT: Final = "/ajax-api/2.0/mlflow/users/current"
CREATE: Final = "/ajax-api/2.0/mlflow/experiments/create"
WEBHOOKS: Final = "/ajax-api/2.0/mlflow/webhooks"
KEYS: Final = "/ajax-api/3.0/mlflow-serverless/keys"
PAGE: Final[Mapping[str, str]] = {
    "accept": "text/html,*/*",
    "sec-fetch-mode": "navigate",
    "sec-fetch-site": "none",
}
"""What a browser sends when somebody opens a page."""
CALL: Final[Mapping[str, str]] = {
    "accept": "*/*",
    "sec-fetch-mode": "cors",
    "sec-fetch-site": "same-origin",
    "content-type": "application/json",
}
"""What a browser sends when a page calls its own server."""


class Site(NamedTuple):
    url: str
    """CloudFront's address, ``https://d….cloudfront.net``."""
    port: int
    """Where this machine answers for it."""
    certificate: Path
    provider: Provider
    distribution: front.Distribution
    stack: Stack

    @property
    def domain(self) -> str:
        return self.url.removeprefix("https://")

    @property
    def here(self) -> str:
        """The same server for programs that find no other name."""
        return f"https://{certificate.ADDRESS}:{self.port}"

    def behind(self, method: str, target: str, headers: Mapping[str, str]) -> Reply:
        """What API Gateway's own address answers."""
        return self.distribution.call(method, target, headers, b"{}" if method == "POST" else b"")

    def token(self, name: str) -> str:
        """An ID token, as a program gets it by the code flow on its user's machine."""
        verifier = "v" * 43
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": CLIENT,
            "redirect_uri": f"{self.url}/login/callback",
            "scope": "openid email profile",
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        address = f"{self.provider.issuer}/auth?{urlencode(query)}"
        answer = fields_of(self.provider.answer(address, name))
        grant = {"code_verifier": verifier, "redirect_uri": query["redirect_uri"]}
        return str(self.provider.tokens(code=answer["code"], **grant)["id_token"])


class Visitor:
    """Keeps cookies as browsers do, and follows no redirect."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.cookies: dict[str, str] = {}
        self._trusted = ssl.create_default_context(cafile=str(site.certificate))

    def send(
        self, method: str, target: str, fields: Any = None, headers: Mapping[str, str] = PAGE
    ) -> Reply:
        """Sends a request to CloudFront, with this visitor's cookies."""
        sent = dict(headers)
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = http.client.HTTPSConnection(self.site.domain, timeout=60)
        connection.sock = self._trusted.wrap_socket(
            socket.create_connection((certificate.ADDRESS, self.site.port), 60),
            server_hostname=self.site.domain,
        )
        with contextlib.closing(connection):
            content = None if fields is None else json.dumps(fields)
            connection.request(method, target, content, sent)
            response = connection.getresponse()
            named = response.getheaders()
            cookies = tuple(value for name, value in named if name.lower() == "set-cookie")
            reply = Reply(response.status, dict(named), response.read(), cookies)
        for cookie in cookies:
            self._take(cookie)
        return reply

    def _take(self, cookie: str) -> None:
        pair, *attributes = cookie.split("; ")
        name, _, value = pair.partition("=")
        if name.startswith("__Host-"):
            assert {"Path=/", "Secure"} <= set(attributes), cookie
            assert not any(attribute.startswith("Domain") for attribute in attributes), cookie
        self.cookies.pop(name, None)
        if value:
            self.cookies[name] = value

    def call(self, method: str, path: str, fields: Any = None, **headers: str) -> tuple[int, Any]:
        """What a page of the site calls: status and body, decoded if it is JSON."""
        reply = self.send(method, path, fields, {**CALL, **headers})
        try:
            return reply.status, json.loads(reply.content)
        except ValueError:
            return reply.status, reply.content.decode()

    def name(self) -> str | None:
        """As whom the site knows this visitor."""
        status, body = self.call("GET", CURRENT)
        assert status in (200, 401), (status, body)
        return str(body["user"]["username"]) if status == 200 else None

    def begin(self, return_to: str = "", headers: Mapping[str, str] = PAGE) -> str:
        """Begins a sign-in. Returns the address of the issuer."""
        query = f"?{urlencode({'return': return_to})}" if return_to else ""
        reply = self.send("GET", f"/login{query}", None, headers)
        assert reply.status == 302, reply
        address = reply.header("location")
        assert address.startswith(f"{self.site.provider.issuer}/"), address
        return address

    def finish(self, address: str) -> Reply:
        """Comes back from the issuer."""
        assert address.startswith(f"{self.site.url}/login/callback?"), address
        return self.send("GET", address.removeprefix(self.site.url))

    def sign_in(self, name: str, return_to: str = "") -> Reply:
        """Signs in without any trick."""
        reply = self.finish(self.site.provider.answer(self.begin(return_to), name))
        assert reply.status == 302, reply
        return reply


def fields_of(address: str) -> dict[str, str]:
    """The query of an address."""
    return dict(parse_qsl(urlsplit(address).query))


@contextlib.contextmanager
def signing_in(stack: Stack, issuer: Provider, tokens: Path, folder: Path) -> Iterator[Site]:
    """The stack with sign-in of browsers; afterwards it is as it was.

    Args:
        issuer: the same for each call, because a name belongs to the first account that it had.
        tokens: the layer that verifies tokens, for this machine.
    """
    url = stack.outputs["UiUrl"]
    before = stack.template()
    stack.publish_ui()
    chosen = {
        "Authentication": "oidc",
        "OidcIssuer": issuer.issuer,
        "OidcAudience": CLIENT,
        "OidcClientId": CLIENT,
        "OidcAdminGroup": ADMINISTRATORS,
        "OnlyThroughUi": "true",
        "Workspaces": "true",
    }
    former = stack.change(with_tokens(before, stack.upload(tokens)), chosen)
    try:
        stack.allow_what_a_context_allows()
        distribution = front.Distribution(stack)
        file = certificate.write(distribution.domain, folder)
        with front.listening(distribution, certificate.served(file)) as port:
            yield Site(url, port, file, issuer, distribution, stack)
    finally:
        stack.change(before, former)


def with_tokens(template: str, address: str) -> str:
    """A template whose issuer may be on this machine, which has no certificate, and whose layer of
    tokens is another file."""
    assert template.count("(https://[^ ]+)?") >= 1
    open_to_http = template.replace("(https://[^ ]+)?", "(https?://[^ ]+)?")
    changed, count = re.subn(
        r"(\n  TokensLayer:\n(?:    .*\n)*?      ContentUri: )\S+", rf"\g<1>{address}", open_to_http
    )
    assert count == 1
    return changed
