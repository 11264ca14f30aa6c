"""Searches of MCP servers, versions and access endpoints: filters, orders, pages."""

from __future__ import annotations

import pytest

from tests.differential.calls import name
from tests.differential.mcp_requests import create, endpoint, read, send, status, version
from tests.differential.pair import Pair

pytestmark = pytest.mark.e2e


def test_searches(both: Pair) -> None:
    token = name()
    named = [f"com.example/{token}-{letter}" for letter in "abcd"]
    calls = [create(named[0], description="d"), create(named[1])]
    calls += [version(named[2], "1.0.0", "active"), version(named[3], "2.0.0")]
    calls += [send("PATCH", f"/{named[0]}", {"display_name": "Alpha"})]
    calls += [send("POST", f"/{each}/tags", {"key": "team", "value": each[-1]}) for each in named]
    calls += [endpoint(named[2], server_alias="latest"), endpoint(named[3], server_version="2.0.0")]
    both.send_all(calls)
    mine = f"name LIKE '%{token}%'"
    filters = [
        *("status = 'active'", "status != 'active'", "status IN ('active', 'draft')"),
        *("status NOT IN ('active')", "status LIKE 'dr%'", "name ILIKE '%-A'", "name > 'd'"),
        *("has_access_endpoints = 'true'", "has_access_endpoints = 'FALSE'", "created_at > 1"),
        *("has_access_endpoints != 'true'", "has_access_endpoints = 'x'", "display_name = 'Alpha'"),
        *("display_name != 'x'", "tags.team = 'a'", "tag.team != 'a'", "tags.none = 'a'"),
        *("tags.team = 'a' AND tags.team = 'b'", "attributes.name != 'x'", "last_updated_at < 5"),
        *(
            "metrics.x > 1",
            "params.x = 'a'",
            "nothing = 'x'",
            "name = 5",
            "name",
            "created_at = 'x'",
        ),
        *("display_name IN ('Alpha')", "status = 'active' OR status = 'draft'", "name = a"),
        "tags.team IN ('a')",
    ]
    both.send_all(
        [
            *(read("", filter_string=f"{mine} AND {each}") for each in filters),
            *(
                read("", filter_string=mine, order_by=order)
                for order in (
                    *("name DESC", "name", ["created_at DESC", "name"], "last_updated_at ASC"),
                    *(["name", "name DESC"], "status", "name UP", "", "name, created_at"),
                )
            ),
            *(read("", max_results=size) for size in (0, -1, 1001, 50001, "x", "", "1.5", 2**70)),
            read("", filter_string=mine, max_results="2.0"),
            read("", page_token="zz", max_results=1),
            *(
                read("/endpoints", filter_string=each, order_by="created_at", max_results=9)
                for each in (
                    f"server_name LIKE '%{token}%'",
                    f"server_name IN ('{named[2]}')",
                    f"server_name LIKE '%{token}%' AND status = 'active'",
                    f"server_name LIKE '%{token}%' AND transport_type = 'sse'",
                    f"server_name LIKE '%{token}%' AND created_at > 5",
                    "url = 'x'",
                    "tags.a = 'b'",
                )
            ),
            *(
                read("/endpoints", filter_string="status = 'x'", **more)
                for more in (
                    {"order_by": "url"},
                    {"max_results": 0},
                    {"order_by": ["id", "id DESC"]},
                )
            ),
        ]
    )
    versioned = f"com.example/{token}-versions"
    numbers = (
        *("1.0.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.10.0"),
        *("1.0.0-beta.11", "1.0.0-rc.1", "1.2.0", "1.0.0-Alpha", "1.0.0-1", "1.0.0-a-b", "0.9.9"),
    )
    path = f"/{versioned}/versions"
    both.send_all(
        [
            *(version(versioned, number) for number in numbers),
            status(versioned, "1.2.0", "active"),
            *(
                read(path, order_by=order)
                for order in ("`version` DESC", "`version` ASC", "`version`", "created_at DESC")
            ),
            *(
                read(path, filter_string=f"version {sign} '{number}'", order_by="created_at")
                for sign in ("=", "!=", "<", "<=", ">", ">=", "LIKE")
                for number in ("1.0.0", "1.0.0-beta.3", "x")
            ),
            *(
                read(path, filter_string=each, order_by="created_at")
                for each in (
                    *("status = 'active'", "status IN ('active')", "name = 'x'", "tags.a = 'b'"),
                    *("version IN ('1.0.0')", "source = 'x'", "created_at > 5", "status"),
                )
            ),
            *(
                read(path, order_by=order)
                for order in ("name", ["`version` ASC", "`version` DESC"])
            ),
            read(path, max_results=0),
            read(f"/{versioned}-none/versions"),
        ]
    )


def test_pages(both: Pair) -> None:
    """Page by page each server, version and endpoint is shown once, in order."""
    token = name()
    named = [f"com.example/{token}-{number}" for number in range(5)]
    both.send_all([version(each, "1.0.0") for each in named])
    both.send_all([version(named[0], f"1.{number}.0") for number in range(1, 5)])
    both.send_all([endpoint(each, server_version="1.0.0") for each in named])
    searches: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("", "mcp_servers", {"filter_string": f"name LIKE '%{token}%'", "order_by": "name DESC"}),
        (f"/{named[0]}/versions", "mcp_server_versions", {"order_by": "`version` DESC"}),
        (
            "/endpoints",
            "mcp_access_endpoints",
            {"filter_string": f"server_name LIKE '%{token}%'", "order_by": "`server_name` ASC"},
        ),
    )
    for path, key, query in searches:
        shown = []
        for side in (both.stock, both.product):
            rows, page = [], ""
            while True:
                more = {"page_token": page} if page else {}
                reply = side.send(read(path, max_results=2, **query, **more))
                rows += [
                    (row.get("name"), row.get("version"), row.get("server_name"))
                    for row in reply.body[key]
                ]
                page = reply.body["next_page_token"]
                if not page:
                    break
            shown.append(rows)
        assert shown[0] == shown[1]
        assert len(shown[1]) == 5
