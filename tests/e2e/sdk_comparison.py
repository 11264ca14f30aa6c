"""Compares what an SDK returns, and what a provider is asked, at the provider itself and through
the gateway."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import requests

from tests.doubles import detailed_anthropic, detailed_gemini, detailed_openai_files
from tests.doubles.providers import Asked, Provider, serving
from tests.e2e import clients
from tests.e2e.gateway_configuration import KEYS, Configuration
from tests.e2e.sdk_outcomes import SCRIPTS, difference, lasting
from tests.engines import ROOT
from tests.servers import ADMIN

GPT, CLAUDE, GEMINI = "gpt-4o", "claude-opus-4-8", "gemini-2.5-flash"
DIRECT, NATIVE, PROXY = "direct", "native", "proxy"
TARGET: Final = "x-target"
"""The header by which a request to a provider is known."""
SDKS: Final = ("openai", "anthropic", "google_genai", "litellm", "langchain", "pydantic_ai")
"""Each has a script in the folder ``sdks``."""
BOUNDARY: Final = re.compile(r"boundary=\S+")
OF_CONNECTION: Final = frozenset(
    ("host", "connection", "content-length", "accept-encoding", TARGET, "x-mlflow-authorization")
)
CREDENTIALS: Final = frozenset(("authorization", "x-api-key", "x-goog-api-key"))


class Gateway(NamedTuple):
    providers: dict[str, Provider]
    targets: list[dict[str, Any]]


@contextlib.contextmanager
def configured(api: str, calls: str) -> Iterator[Gateway]:
    """Providers on this machine, with an endpoint for each.

    Args:
        api: the address of the server where the endpoints are made.
        calls: the address at which they are called.
    """
    with (
        serving(detailed_openai_files.answer) as openai,
        serving(detailed_anthropic.answer) as anthropic,
        serving(detailed_gemini.answer) as gemini,
    ):
        made = Configuration(api)
        made.endpoint(GPT, made.model("openai", "openai", f"{openai.url}/v1", GPT))
        made.endpoint(CLAUDE, made.model("anthropic", "anthropic", f"{anthropic.url}/v1", CLAUDE))
        made.endpoint(GEMINI, made.model("gemini", "gemini", f"{gemini.url}/v1beta", GEMINI))
        root = f"{calls}/gateway"
        login = "Basic " + base64.b64encode(":".join(ADMIN).encode()).decode()
        own = {"X-MLflow-Authorization": login}
        key = requests.post(
            f"{api}/api/3.0/mlflow-serverless/keys", json={"name": "sdk"}, auth=ADMIN, timeout=30
        ).json()["token"]
        yield Gateway(
            {"openai": openai, "anthropic": anthropic, "gemini": gemini},
            [
                _target(DIRECT, f"{openai.url}/v1", anthropic.url, gemini.url),
                # Here the SDK's own key is the login, in the header that the SDK has for it.
                _target(
                    NATIVE,
                    *(f"{root}/openai/v1", f"{root}/anthropic", f"{root}/gemini"),
                    key=key,
                ),
                _target(
                    PROXY,
                    *(f"{root}/proxy/{GPT}/v1", f"{root}/proxy/{CLAUDE}", f"{root}/proxy/{GEMINI}"),
                    own,
                ),
            ],
        )


def _target(
    name: str,
    openai: str,
    anthropic: str,
    gemini: str,
    headers: dict[str, str] | None = None,
    *,
    key: str = "own",
) -> dict[str, Any]:
    return {
        **{"name": name, "openai": openai, "anthropic": anthropic, "gemini": gemini},
        "headers": {**(headers or {}), TARGET: name},
        "key": key,
        "is_everything": name != NATIVE,
    }


def compare(gateway: Gateway, sdk: str, folder: Path) -> None:
    """Runs the script of an SDK and asserts that it sees no difference.

    Args:
        folder: where the script runs.
    """
    for provider in gateway.providers.values():
        provider.asked.clear()
    script = SCRIPTS / f"{sdk}_calls.py"
    done = clients.ran(
        script,
        clients.SDKS,
        folder,
        json.dumps(gateway.targets),
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        PYTHONPATH=str(ROOT),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    direct = told[DIRECT]
    assert len(direct) > 25
    for name, outcome in direct.items():
        failure = re.search(r"fails with (\d+)", name)
        assert ("error" in outcome) == (failure is not None or "timeout" in name), (name, outcome)
        if failure is not None:
            assert outcome["status"] == int(failure[1]), (name, outcome)
    assert told[PROXY].keys() == direct.keys() >= told[NATIVE].keys()
    for target in (NATIVE, PROXY):
        different = [
            (name, *found)
            for name, outcome in told[target].items()
            if (found := difference(lasting(direct[name]), lasting(outcome)))
        ]
        assert different == [], target
        for name, provider in gateway.providers.items():
            _compare_requests(provider.asked, target, name)


def _compare_requests(asked: list[Asked], target: str, provider: str) -> None:
    """The provider is asked the same by the gateway as by the SDK itself."""
    direct = [request for request in asked if request.headers[TARGET] == DIRECT]
    through = [request for request in asked if request.headers[TARGET] == target]
    if target == NATIVE:
        direct = [request for request in direct if _is_native(request)]
    assert len(direct) == len(through), provider
    for sent, received in zip(direct, through, strict=True):
        expected = sent.body
        path = sent.path
        if target == NATIVE:
            # The gateway must know the tokens of each chat; and it calls one version of Gemini.
            if sent.body.get("stream") and "/chat/completions" in path:
                options = {**(expected.get("stream_options") or {}), "include_usage": True}
                expected = {**expected, "stream_options": options}
            path = path.replace("/v1/models/", "/v1beta/models/")
        assert received.path == path
        assert lasting(received.body) == lasting(expected)
        assert received.method == sent.method
        assert _own_form(received) == _own_form(sent)
        assert _own_headers(received) == _own_headers(sent)
        keys = {received.headers.get(name, "") for name in CREDENTIALS} - {""}
        assert {key.removeprefix("Bearer ") for key in keys} == {KEYS[provider]}


def _is_native(request: Asked) -> bool:
    """Whether one of MLflow's routes is for this request of a provider."""
    return not re.search(
        r":(countTokens|embedContent|batchEmbedContents)$|/v1/(files|batches|images|audio)\b"
        r"|/v1/models(/[\w-]+)?$",
        request.path,
    )


def _own_headers(request: Asked) -> dict[str, str]:
    kept = request.headers.keys() - OF_CONNECTION - CREDENTIALS
    return {name: BOUNDARY.sub("boundary", request.headers[name]) for name in kept}


def _own_form(request: Asked) -> bytes:
    """The bytes of a body that is not JSON, with a boundary that is always the same."""
    boundary = BOUNDARY.search(request.headers.get("content-type", ""))
    if request.body or boundary is None:
        return b"" if request.body else request.raw
    return request.raw.replace(boundary[0].partition("=")[2].encode(), b"")
