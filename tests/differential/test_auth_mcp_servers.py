"""Who may do what in the MCP registry: each request by users whose grants differ, against stock."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.differential.auth_pair import Both
from tests.differential.mcp_requests import endpoint, read, send, server_body, version
from tests.differential.rest import Call, Reply, Side
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
Login = tuple[str, str]
LEVELS = ("READ", "USE", "EDIT", "MANAGE", "DENY")


def _plain(reply: Reply) -> tuple[int, str]:
    """Without times, ids and tokens."""
    text = re.sub(r"ae-[0-9a-f]{32}", "<id>", repr(_sorted(reply.body)))
    text = re.sub(r"'next_page_token': '[^']+'", "<token>", text)
    return reply.status, re.sub(r"\b1[0-9]{12}\b", "<time>", text)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(part) for part in value] if isinstance(value, list) else value


def _requests(server: str, mine: str) -> list[Call]:
    """Reads first, then what changes, at last what takes away."""
    endpoint_path = f"/{server}/endpoints/{{{{{mine}}}}}"
    return [
        read("", filter_string=f"name = '{server}'"),
        read(f"/{server}"),
        read(f"/{server}/versions"),
        read(f"/{server}/versions/1.0.0"),
        read(f"/{server}/aliases/champion"),
        read(f"/{server}/endpoints"),
        *(read(f"/{server}/endpoints", **{word: "1.0.0"}) for word in ("server_version",)),
        *(
            read("/endpoints", filter_string=f"server_name = '{server}'", **more)
            for more in ({}, {"server_alias": "champion"})
        ),
        read("/endpoints", filter_string="status = 'none'"),
        read(endpoint_path),
        send("PATCH", f"/{server}", {"display_name": "x"}),
        send("PATCH", endpoint_path, {"transport_type": "sse"}),
        send("PATCH", endpoint_path, {"server_alias": "champion"}),
        send("POST", f"/{server}/tags", {"key": "k", "value": "v"}),
        send("POST", f"/{server}/aliases", {"alias": "a", "version": "1.0.0"}),
        send("POST", f"/{server}/versions/1.0.0/tags", {"key": "k", "value": "v"}),
        send("PATCH", f"/{server}/versions/1.0.0", {"connect_options": None}),
        send("POST", f"/{server}/versions", server_body(server, "9.0.0")),
        send("DELETE", f"/{server}/tags/k"),
        send("DELETE", f"/{server}/aliases/a"),
        send("DELETE", f"/{server}/versions/1.0.0/tags/k"),
        send("DELETE", f"/{server}/versions/9.0.0"),
        send("DELETE", endpoint_path),
        send("DELETE", f"/{server}"),
    ]


@pytest.mark.parametrize("on_versions", [None, "READ", "MANAGE", "DENY"])
def test_rights(guarded: list[Side], on_versions: str | None) -> None:
    both = Both(guarded)
    owner, *others = both.users("owner", *LEVELS, "nobody")
    differences = []

    def compare(login: Login, call: Call) -> None:
        stock, ours = map(_plain, both.replies(login, call))
        if stock != ours:
            differences.append(f"{login[0]}: {call}\n  {stock}\n  {ours}")

    def grant(user: Login, kind: str, pattern: str, level: str) -> None:
        path = "/api/3.0/mlflow/users/permissions/grant"
        fields = {"username": user[0], "resource_type": kind, "resource_id": pattern}
        replies = both.replies(ADMIN, Call("POST", path, {**fields, "permission": level}))
        assert [reply.status for reply in replies] == [200, 200], replies

    for number, other in enumerate(others):
        server = f"com.example/{both.name}-{number}"
        compare(owner, version(server, "1.0.0"))
        compare(
            owner, send("POST", f"/{server}/aliases", {"alias": "champion", "version": "1.0.0"})
        )
        compare(owner, endpoint(server, server_version="1.0.0"))
        if number < len(LEVELS):
            grant(other, "mcp_server", server, LEVELS[number])
        if on_versions:
            grant(other, "mcp_server_version", "*", on_versions)
        for call in _requests(server, "endpoint"):
            compare(other, call)
        compare(owner, send("DELETE", f"/{server}"))
        compare(owner, send("POST", "", {"name": server}))
        compare(other, read(f"/{server}"))
        compare(other, send("POST", "", {"name": f"{server}-own"}))
        compare(other, send("DELETE", f"/{server}-own"))
    both.check()
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences)
