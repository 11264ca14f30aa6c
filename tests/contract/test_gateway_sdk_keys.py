"""API keys of this server in the headers in which the SDKs of providers send theirs: what they
open, with which other logins they are refused, and that no provider, trace or log sees them."""

from __future__ import annotations

import itertools
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import gateway_calls.app
from authorizer import app as authorizer
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.auth.passwords import hash_password
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.http.handler import Handler
from mlcore.repos.users import api_keys, users
from tests.contract.conftest import Store
from tests.contract.gateway_requests import SAID
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.doubles.providers import Provider, anthropic, gemini, openai, serving

Json = dict[str, Any]

CHAT = {"model": "gpt", "messages": SAID}
MESSAGE = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
CALLS: Mapping[str, Json] = {
    "mlflow/v1/chat/completions": CHAT,
    "openai/v1/chat/completions": CHAT,
    "anthropic/v1/messages": MESSAGE,
    "gemini/v1beta/models/gemini:generateContent": CONTENTS,
    "proxy/gpt/v1/chat/completions": CHAT,
    "proxy/claude/v1/messages": MESSAGE,
    "proxy/gemini/v1beta/models/x:generateContent": CONTENTS,
}
HEADERS = ("x-api-key", "x-goog-api-key")
AGENTS = ("python", "claude-cli/2.1 (external)", "codex_cli_rs/0.4", "GeminiCLI/1")
PASSWORD = "correct horse battery"


class Site:
    """The gateway behind its authorizer, with three providers."""

    def __init__(self, handler: Handler, providers: list[Provider]) -> None:
        self.handler = handler
        self.providers = providers
        self.ada = self.key_of("ada")
        self.bob = self.key_of("bob")

    @staticmethod
    def key_of(name: str, scopes: tuple[str, ...] | None = None) -> str:
        user = users.find(name)
        assert user is not None
        return api_keys.create(user, "sdk", "default", scopes, None).token

    def ask(
        self, path: str, body: Json, headers: Mapping[str, str], *, query: str = ""
    ) -> tuple[int, str]:
        about: Json = {"http": {"method": "POST", "sourceIp": "192.0.2.1"}, "requestId": "test"}
        event: Json = {
            "version": "2.0",
            "rawPath": f"/gateway/{path}",
            "rawQueryString": query,
            "headers": {"content-type": "application/json", "host": "localhost", **headers},
            "requestContext": about,
        }
        about["authorizer"] = {"lambda": authorizer.handler(event, None)["context"]}
        sent = {**event, "isBase64Encoded": False, "body": json.dumps(body)}
        answer = self.handler(sent, None)
        return answer["statusCode"], answer["body"]

    def asked(self) -> str:
        """All that the providers were sent."""
        return repr([request for provider in self.providers for request in provider.asked])

    def count(self) -> int:
        return sum(len(provider.asked) for provider in self.providers)


@pytest.fixture
def site(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(openai) as gpt, serving(anthropic) as claude, serving(gemini) as google:
        for name, provider, url in (
            ("gpt", "openai", f"{gpt.url}/v1"),
            ("claude", "anthropic", f"{claude.url}/v1"),
            ("gemini", "gemini", f"{google.url}/v1beta"),
        ):
            endpoint(name, [model(name, provider, url)], usage_tracking=True)
        monkeypatch.setenv(AUTHENTICATION, "basic")
        monkeypatch.setenv("DEFAULT_PERMISSION", "USE")
        handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
        for name in ("ada", "bob"):
            users.create(name, hash_password(PASSWORD), is_admin=False)
        yield Site(handler, [gpt, claude, google])


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def context(path: str, headers: Mapping[str, str], **about: str) -> Json:
    event = {
        "rawPath": path,
        "headers": headers,
        "requestContext": {"http": {"method": "POST", "sourceIp": "192.0.2.1"}, **about},
    }
    known: Json = authorizer.handler(event, None)["context"]
    return known


@pytest.mark.parametrize("header", HEADERS)
def test_a_key_opens_the_gateway_and_stays_here(
    site: Site, store: Store, capfd: pytest.CaptureFixture[str], header: str
) -> None:
    """On each path, also for programs whose own credentials are sent on."""
    for (path, body), agent in itertools.product(CALLS.items(), AGENTS):
        for more in ({}, {"authorization": f"Bearer {site.ada}"}):
            headers = {header: site.ada, "user-agent": agent, "x-note": f"see {site.ada}", **more}
            status, text = site.ask(path, body, headers)
            assert status == 200, (path, text)
            assert site.ada not in text
    assert site.count() == len(CALLS) * len(AGENTS) * 2
    secret = site.ada.split("_", 2)[2]
    assert secret not in site.asked()
    assert site.asked().count(KEY) >= site.count(), "the endpoint's key is sent instead"
    assert secret not in json.dumps(store.items(), default=str)
    assert secret not in "".join(capfd.readouterr())


def test_two_logins_are_refused(site: Site) -> None:
    """Whoever sends them, and in whichever of the headers; a provider's own key is no login."""
    logins = (f"Bearer {site.ada}", basic("ada", site.ada), basic("ada", PASSWORD), "Bearer x")
    cases: list[Json] = [
        {name: login, header: site.bob}
        for name in ("authorization", "x-mlflow-authorization")
        for login in logins
        for header in HEADERS
    ]
    cases += [
        {"x-api-key": site.ada, "x-goog-api-key": site.bob},
        {"x-api-key": site.ada, "x-goog-api-key": "AIza-of-somebody"},
        {"x-api-key": f"{site.ada},{site.bob}"},
        {"x-api-key": f"{site.ada},{site.ada}"},
        {"x-mlflow-authorization": f"Bearer {site.ada}", "authorization": f"Bearer {site.bob}"},
        {"x-mlflow-authorization": basic("ada", PASSWORD), "x-goog-api-key": site.ada},
    ]
    for headers in cases:
        for agent in AGENTS[:2]:
            for path, body in CALLS.items():
                status, text = site.ask(path, body, {**headers, "user-agent": agent})
                assert status == 401, (path, headers)
                assert "two different logins" in text
                assert "mlk_" not in text
    assert site.count() == 0


def test_credentials_for_a_provider_beside_a_login(site: Site) -> None:
    """They mean what they did: the endpoint's replace them, unless one of the programs calls."""
    login = {"x-mlflow-authorization": f"Bearer {site.ada}"}
    path, body = "proxy/claude/v1/messages", MESSAGE
    for agent, expected in ((AGENTS[0], KEY), (AGENTS[1], "sk-ant-own")):
        headers = {**login, "x-api-key": "sk-ant-own", "user-agent": agent}
        assert site.ask(path, body, headers)[0] == 200
        assert site.providers[1].asked[-1].headers["x-api-key"] == expected
    for header in HEADERS:
        plain = {"authorization": f"Bearer {site.ada}", header: "unused"}
        assert site.ask(path, body, plain)[0] == 200
        assert site.providers[1].asked[-1].headers["x-api-key"] == KEY
    assert site.ask(path, body, {"x-api-key": "sk-ant-own"})[0] == 401


def test_an_empty_header_for_the_login_changes_nothing(site: Site) -> None:
    """The login is then in ``authorization``, and no program's provider gets it."""
    login = basic("ada", PASSWORD)
    for agent in AGENTS:
        headers = {"x-mlflow-authorization": "", "authorization": login, "user-agent": agent}
        for path, body in CALLS.items():
            assert site.ask(path, body, headers)[0] == 200
    assert login.split()[1] not in site.asked()


def test_what_is_no_login(site: Site) -> None:
    """Keys that are revoked, cut, spelled otherwise or elsewhere; a key's limits stay."""
    path, body = "anthropic/v1/messages", MESSAGE
    token = site.ada
    revoked, limited = site.key_of("ada"), site.key_of("ada", ("read",))
    api_keys.delete(revoked.split("_")[1])
    wrong = (revoked, token[:-1], token + "A", token.upper(), f"Bearer {token}", token[4:], "")
    for header in HEADERS:
        assert [text for text in wrong if site.ask(path, body, {header: text})[0] != 401] == []
        assert site.ask(path, body, {header: limited})[0] == 403
    for header in ("api-key", "x-api_key", "x-mlflow-api-key", "cookie"):
        assert site.ask(path, body, {header: token})[0] == 401
    assert site.count() == 0
    for other in ("/api/2.0/mlflow/users/current", "/api/3.0/mlflow/gateway/secrets/create", "/"):
        assert "key_user" not in context(other, {"x-api-key": token})


def test_no_key_in_addresses(site: Site) -> None:
    """A key of ours is refused there, one for the provider is dropped."""
    path = "proxy/gemini/v1beta/models/x:generateContent"
    login = {"x-goog-api-key": site.ada}
    assert site.ask(path, CONTENTS, {}, query=f"key={site.ada}")[0] == 401
    coded = f"alt=json&%6bey=%6d{site.ada[1:]}"
    for query in (f"key={site.ada}", f"key={site.bob}", f"a={site.ada}", coded):
        status, text = site.ask(path, CONTENTS, login, query=query)
        assert (status, "in a header" in text) == (401, True)
        assert "mlk_" not in text
    assert site.count() == 0
    query = "alt=json&key=own&KEY=own&%6bey=own&$key=own&access_token=own"
    assert site.ask(path, CONTENTS, login, query=query)[0] == 200
    assert site.providers[2].asked[-1].path.endswith(":generateContent?alt=json")
    assert site.ask(f"proxy/gemini/v1beta/{site.bob}", CONTENTS, login)[0] == 401
    assert site.ask(path, CONTENTS, login, query="key=own")[0] == 200
    assert site.providers[2].asked[-1].path.endswith(":generateContent")


def test_each_front_reads_the_same_header(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A domain with a base path, and the REST API for streams."""
    monkeypatch.setenv("API_BASE_PATH", "ml")
    key = {"x-api-key": site.ada}
    own = {"apiId": "abc", "domainPrefix": "abc"}
    domain = {"apiId": "abc", "domainPrefix": "models"}
    assert context("/ml/gateway/openai/v1/x", key, **domain)["key_user"] == "ada"
    assert context("/gateway/openai/v1/x", key, **own)["key_user"] == "ada"
    for path in ("/ml/x/gateway/y", "/mlx/gateway/y", "/ml/api/gateway/y"):
        assert "key_user" not in context(path, key, **domain)
    for value, expected in ((site.ada, "key_user"), (f"{site.ada},{site.bob}", "two_logins")):
        event = {
            "type": "REQUEST",
            "methodArn": "arn:aws:execute-api:eu-west-1:1:api/live/POST/gateway/x",
            "httpMethod": "POST",
            "path": "/gateway/anthropic/v1/messages",
            "headers": {"X-Api-Key": value.rpartition(",")[2]},
            "multiValueHeaders": {"X-Api-Key": value.split(",")},
            "requestContext": {"identity": {"sourceIp": "192.0.2.1"}, **own},
        }
        answer = authorizer.handler(event, None)
        assert expected in answer["context"]
        kinds = {type(member) for member in answer["context"].values()}
        assert kinds <= {str, bool}, "a REST API takes nothing else"
