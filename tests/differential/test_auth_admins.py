"""Who may do what with webhooks; and routes that MLflow's server had once and has no more."""

from __future__ import annotations

import pytest

from tests.differential.auth_pair import Both, v3
from tests.differential.rest import API, Call, Side, get, post
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e]
EVENT = {"entity": "REGISTERED_MODEL", "action": "CREATED"}
VERBS = ("create", "get", "update", "delete")


def test_webhooks_are_for_administrators(guarded: list[Side]) -> None:
    """Whatever else is granted; word for word as stock refuses it."""
    both = Both(guarded)
    owner, nobody = both.users("owner", "nobody")
    hook = {"name": f"hook-{both.name}", "url": "https://8.8.8.8/hook", "events": [EVENT]}
    (made, *_) = both.replies(ADMIN, post("webhooks", hook, saves={"hook": "webhook.webhook_id"}))
    assert made.status == 200, made
    grant = {"username": owner[0], "permission": "MANAGE", "resource_id": "*"}
    for kind in ("workspace", "experiment", "registered_model"):
        both.ask(ADMIN, v3("POST", "users/permissions/grant", {**grant, "resource_type": kind}))
    path = f"{API}webhooks/{{{{hook}}}}"
    calls = [
        get("webhooks"),
        post("webhooks", {**hook, "name": f"{both.name}-own"}),
        Call("GET", path),
        Call("GET", f"{API}webhooks/nothing"),
        Call("PATCH", path, {"description": "d"}),
        Call("POST", f"{path}/test", {}),
        Call("DELETE", path),
    ]
    for login in (owner, nobody, None):
        for call in calls:
            stock, ours = both.replies(login, call)
            assert stock.status in (401, 403), stock
            assert (ours.status, ours.body) == (stock.status, stock.body), call
    for verb, status in (("DELETE", 200), ("GET", 404)):
        assert [reply.status for reply in both.replies(ADMIN, Call(verb, path))] == [status] * 2
    both.check()


@pytest.mark.parametrize("kind", ["endpoints", "secrets", "model-definitions"])
def test_permissions_of_the_gateway_have_no_routes_of_their_own(
    guarded: list[Side], kind: str
) -> None:
    """Clients of 3.11 call them; since 3.13 the gateway's grants are like all others."""
    both = Both(guarded)
    (user,) = both.users("user")
    fields = {"username": user[0], "secret_id": "s-0", "permission": "USE"}
    for verb, method in zip(VERBS, ("POST", "GET", "PATCH", "DELETE"), strict=True):
        call = v3(method, f"gateway/{kind}/permissions/{verb}", fields)
        stock, ours = both.replies(ADMIN, call)
        assert (stock.status, ours.status) == (404, 404)
        assert ours.code == "ENDPOINT_NOT_FOUND"
        # Stock refuses others whatever it does not know.
        assert [reply.status for reply in both.replies(user, call)] == [403, 404]
    both.check()
