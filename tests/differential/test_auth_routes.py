"""Every route of the product, asked for nonsense by somebody without a grant and by nobody."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

import pytest

from tests.arch import project
from tests.differential.auth_pair import Both
from tests.differential.rest import Call, Side

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


def _routes() -> Iterator[tuple[str, str]]:
    for domain in project.DOMAINS:
        app = importlib.import_module(f"{domain}.app")
        for rpc in getattr(app, "RPCS", ()):
            yield rpc.method, ("/ajax-api" if rpc.ajax_only else "/api") + rpc.path
        for route in getattr(app, "PLAIN_ROUTES", ()):
            yield route.method, route.path


BODIES = (b"{}", b'{"run_id": "x", "experiment_id": "x", "name": "x", "key": 5}')
OURS = re.compile(
    r"/mlflow-serverless/|/preview/|/(experiments|registered-models|scorers)/permissions/"
    r"|/(experiments|registered-models)/list"
)
"""Routes that stock does not have, or (those from before 2.0) keeps from all but administrators."""

KUBEFLOW = ("/readyz/", "/api/model_registry/", "/api/model_catalog/", "/api/mcp_catalog/")
"""Of a system that stock knows nothing of; its own tests hold who may do what there."""

PROVISIONING = ("/scim/v2/",)
"""Of a protocol with an error form of its own; its own tests hold who may do what there."""

SIGN_IN = ("/login", "/logout")
"""Public, and missing here, where there is no issuer. Stock refuses unknown paths."""

SWITCHED_OFF = "/mlflow/workspaces"

DEMO = "/demo/generate"
"""It makes a demo of whatever it is told, for seconds; nobody is refused it, and this is told to
make nothing."""


def test_every_route_with_anything(guarded: list[Side]) -> None:
    """Nobody gets in and nothing fails; and where stock refuses, a nonsensical or malformed request
    changes nothing."""
    both = Both(guarded)
    (reader,) = both.users("reader")
    let_in, failed, seen = [], [], 0
    for method, path in _routes():
        if path.startswith((*KUBEFLOW, *PROVISIONING, *SIGN_IN)):
            continue
        where = re.sub(r"\{\w+\+?\}", "x", path)
        bodies = (b'{"features": []}',) if DEMO in where else BODIES
        for raw in bodies if method != "GET" else (None,):
            call = Call(method, where, raw=raw)
            stock, ours = both.replies(reader, call)
            if ours.status >= 500 and SWITCHED_OFF not in path:
                failed.append((str(call), ours))
            refused = stock.status == 403 and not OURS.search(path)
            if refused and ours.status < 400:
                let_in.append((str(call), stock, ours))
            seen += 1
        nobody = both.replies(None, call)
        if 401 in {reply.status for reply in nobody} and nobody[0] != nobody[1]:
            let_in.append((f"nobody: {call}", nobody[0], nobody[1]))
    assert (let_in, failed) == ([], [])
    assert seen > 200
