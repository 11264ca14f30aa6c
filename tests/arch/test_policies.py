"""Every route that callers can reach is judged by a policy."""

from __future__ import annotations

import importlib

from mlcore.policies.guard import PUBLIC_PATHS
from mlcore.policies.routes import AFTERWARDS, POLICIES
from tests.arch import project


def _declared() -> set[tuple[str, str]]:
    found = set()
    for domain in project.DOMAINS:
        app = importlib.import_module(f"{domain}.app")
        for name in ("RPCS", "PLAIN_ROUTES"):
            found |= {(route.method, route.path) for route in getattr(app, name, ())}
    return found


PUBLIC = {("GET", path.removeprefix("/api").removeprefix("/ajax-api")) for path in PUBLIC_PATHS}


def test_every_route_has_a_policy() -> None:
    assert _declared() - PUBLIC - set(POLICIES) == set()


def test_every_policy_has_a_route() -> None:
    preview = {route for route in POLICIES if "/preview/" in route[1]}
    assert set(POLICIES) - preview - _declared() == set()
    assert set(AFTERWARDS) <= set(POLICIES)
