"""The MCP registry: servers, versions, aliases, tags, access endpoints, searches, and every body that
MLflow's server refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import name
from tests.differential.pair import Pair
from tests.differential.rest import Call

pytestmark = pytest.mark.e2e
ROOT = "/api/3.0/mlflow/mcp-servers"
ICON = {"src": "https://8.8.8.8/icon.png"}


def send(method: str, path: str, body: Any = None, **more: Any) -> Call:
    return Call(method, ROOT + path, body, **more)


def read(path: str, **query: Any) -> Call:
    return Call("GET", ROOT + path, query=query or None)


def create(server: str, **more: Any) -> Call:
    return send("POST", "", {"name": server, **more})


def version(server: str, number: str, status: str | None = None, **more: Any) -> Call:
    body: dict[str, Any] = {"server_json": {"name": server, "version": number, **more}}
    if status is not None:
        body["status"] = status
    return send("POST", f"/{server}/versions", body)


def status(server: str, number: str, following: Any) -> Call:
    return send("PATCH", f"/{server}/versions/{number}", {"status": following})


def endpoint(server: str, saved: str = "endpoint", **body: Any) -> Call:
    return send("POST", f"/{server}/endpoints", {"url": "https://a", **body}, saves={saved: "id"})


def new_server() -> str:
    return f"com.example/{name()}"


def seen(server: str, *numbers: str) -> list[Call]:
    return [
        read(f"/{server}"),
        read(f"/{server}/versions", order_by="created_at"),
        read(f"/{server}/endpoints", order_by="created_at"),
        read(f"/{server}/aliases/latest"),
        *(read(f"/{server}/versions/{number}") for number in numbers),
    ]


def test_servers(both: Pair) -> None:
    server, missing = new_server(), new_server()
    icons = [{**ICON, "sizes": None, "x": {"y": None}, "mimeType": " IMAGE/PNG "}]
    both.send_all(
        [
            create(server, description=None, icons=icons),
            create(server),
            *seen(server, "1.0.0"),
            *seen(missing, "1.0.0"),
            *(
                send("PATCH", f"/{each}", body)
                for each in (server, missing)
                for body in (
                    {"display_name": "Shown", "description": "about"},
                    {"icons": [{**ICON, "source": "server", "theme": "dark"}]},
                    {"icons": [{**ICON, "source": "version"}]},
                    {"latest_version": "1.0.0"},
                    {"icons": []},
                    {"display_name": None, "description": None, "icons": None},
                    {},
                )
            ),
            send("PATCH", f"/{server}", {"description": "", "display_name": ""}),
            read(f"/{server}"),
            *(
                call
                for each in (server, missing)
                for call in (
                    send("POST", f"/{each}/tags", {"key": "a/b", "value": "1"}),
                    send("POST", f"/{each}/tags", {"key": "a/b", "value": "2"}),
                    send("POST", f"/{each}/tags", {"key": "", "value": ""}),
                    read(f"/{each}"),
                    send("DELETE", f"/{each}/tags/a/b"),
                    send("DELETE", f"/{each}/tags/a%2Fb"),
                    send("DELETE", f"/{each}"),
                    send("DELETE", f"/{each}"),
                )
            ),
            read(f"/{server}"),
            *(read(f"/{odd}") for odd in ("foo", "a/b/c", f"{server}/tags", "a%23b/c")),
            send("DELETE", "/foo"),
            send("PATCH", "/a/b/c", {}),
            version("a/b/c", "1.0.0"),
        ]
    )


@pytest.mark.parametrize(
    "server",
    [
        *("", "a", "a/b", "/", "ab/", "/ab", "a b/cd", "com.ex/versions", "com.ex/tags", "-a/bc"),
        *("com.ex/a/b", "com.ex/a_b", "com_ex/ab", "com.ex/ab.", "com.ex/a#b", "co/m\u00e4x"),
    ],
)
def test_names(both: Pair, server: str) -> None:
    both.send_all([create(server), send("POST", "/ab/cd/versions", _said(server, "1.0.0"))])


def _said(server: str, number: Any) -> dict[str, Any]:
    return {"server_json": {"name": server, "version": number}}


def test_versions(both: Pair) -> None:
    server, missing = new_server(), new_server()
    full = {
        "title": None,
        "description": "said by the version",
        "icons": [{**ICON, "theme": "dark"}, {"src": "https://8.8.4.4/"}],
        "packages": [
            {
                "registryType": "npm",
                "identifier": "x",
                "transport": None,
                "environmentVariables": [{"name": "A", "isSecret": "yes", "isRequired": 0}],
                "more": 1,
            }
        ],
        "remotes": [{"url": "https://r"}],
        "repository": {"url": "u", "source": "github", "id": None},
        "meta": {"a": None},
        "other": {"kept": [1, None]},
    }
    tools = [
        {"name": "t", "title": None, "inputSchema": {"a": None}, "dropped": 1, "icons": [ICON]},
        {"name": "u", "icons": None},
    ]
    options = {"a": {"hidden": "true", "dropped": 1}, "b": {}}
    path = f"/{server}/versions"
    both.send_all(
        [
            version(server, "1.0.0", **full),
            version(server, "1.0.0"),
            send(
                "POST",
                path,
                {
                    **_said(server, "1.1.0"),
                    "tools": tools,
                    "connect_options": options,
                    "source": "s",
                    "status": "active",
                },
            ),
            send("POST", path, {"server_json": {"server": _said(server, "1.2.0")["server_json"]}}),
            send("POST", path, {**_said(server, "1.3.0"), "tools": None, "connect_options": None}),
            send("POST", path, {**_said(server, "1.4.0"), "tools": [], "connect_options": {}}),
            *seen(server, "1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "9.9.9"),
            *(
                version(server, number)
                for number in (
                    *("1", "1.0", "01.0.0", "1.0.0-01", "1.0.0-", "v1.0.0", "1.0.0+", "", "latest"),
                    *(f"{2**31}.0.0", f"0.{2**31}.0", f"0.0.{2**31}", "1.0.0-" + "a" * 130),
                    *("1.0.0-alpha", "1.0.0+build.1", f"{2**31 - 1}.0.0-rc.1+x"),
                )
            ),
            *(status(server, "1.0.0", each) for each in (None, "", "gone", "deprecated", "draft")),
            *(version(server, "7.0.0", each) for each in ("deprecated", "deleted", "", "X")),
            send("POST", f"/{missing}/versions", _said(server, "1.0.0")),
            *(
                send("PATCH", f"/{each}/versions/1.1.0", body)
                for each in (server, missing)
                for body in (
                    {"tools": None},
                    {"tools": tools[:1], "connect_options": {"c": {"hidden": True}}},
                    {"connect_options": None},
                    {"tools": [{"name": "t", "icons": [{**ICON, "source": "version"}]}]},
                    {},
                )
            ),
            *(
                call
                for number in ("1.1.0", "8.0.0")
                for call in (
                    send("POST", f"{path}/{number}/tags", {"key": "k/l", "value": "v"}),
                    read(f"{path}/{number}"),
                    send("DELETE", f"{path}/{number}/tags/k/l"),
                    send("DELETE", f"{path}/{number}/tags/k/l"),
                )
            ),
            send("DELETE", f"/{server}"),
            *seen(server, "1.1.0"),
        ]
    )


def test_states(both: Pair) -> None:
    """Every state followed by every other; what ``latest`` means; a version that is deleted."""
    server = new_server()
    ways: dict[str, tuple[str, ...]] = {
        "draft": (),
        "active": ("active",),
        "deprecated": ("active", "deprecated"),
        "deleted": ("deleted",),
    }
    calls = []
    for number, way in enumerate(ways.values()):
        for other, following in enumerate(ways):
            one = f"{number}.{other}.0"
            calls += [version(server, one), *(status(server, one, each) for each in way)]
            calls += [status(server, one, following), *seen(server, one)]
            calls += [
                send("DELETE", f"/{server}/versions/{one}"),
                read(f"/{server}/versions/{one}"),
            ]
            calls += [version(server, one), send("DELETE", f"/{server}/versions/{one}")]
    both.send_all([*calls, *seen(server), send("DELETE", f"/{server}"), *seen(server)])


def test_aliases_and_endpoints(both: Pair) -> None:
    server, other = new_server(), new_server()

    def alias(word: Any, number: Any, of: str = server) -> Call:
        return send("POST", f"/{of}/aliases", {"alias": word, "version": number})

    where = f"/{server}/endpoints/{{{{endpoint}}}}"
    both.send_all(
        [
            alias("a", "1.0.0"),
            endpoint(server, server_alias="latest"),
            create(server),
            endpoint(server, server_alias="latest"),
            version(server, "1.0.0"),
            version(server, "2.0.0"),
            version(other, "1.0.0"),
            *(alias(word, "1.0.0") for word in ("a", "b/c", "latest", "")),
            alias("a", "3.0.0"),
            alias("a", "2.0.0"),
            *(read(f"/{server}/aliases/{word}") for word in ("a", "b/c", "none", "latest")),
            read(f"/{server}-none/aliases/a"),
            read(f"/{server}-none/aliases/latest"),
            *(
                endpoint(server, f"made-{index}", **body)
                for index, body in enumerate(
                    (
                        {},
                        {"server_version": "1.0.0", "server_alias": "a"},
                        {"server_version": "3.0.0"},
                        {"server_alias": "none"},
                        {"server_alias": "a", "url": " "},
                        {"server_alias": "a", "transport_type": "carrier"},
                        {"server_alias": "a", "transport_type": "sse"},
                        {"server_version": "1.0.0"},
                        {"server_alias": "latest", "url": "x"},
                        {"server_alias": "b/c"},
                    )
                )
            ),
            endpoint(server, server_version="1.0.0"),
            endpoint(other, "elsewhere", server_version="1.0.0"),
            *seen(server),
            read(where),
            *(
                send(method, f"/{each}/endpoints/{found}", {} if method == "PATCH" else None)
                for each in (server, other)
                for found in ("none", "{{elsewhere}}")
                for method in ("GET", "PATCH")
            ),
            *(
                send("DELETE", f"/{server}/endpoints/{found}")
                for found in ("none", "{{elsewhere}}")
            ),
            *(
                send("PATCH", where, body)
                for body in (
                    {},
                    {"url": None},
                    {"url": ""},
                    {"url": "https://b"},
                    {"transport_type": "sse"},
                    {"transport_type": None},
                    {"transport_type": "carrier"},
                    {"server_alias": "a"},
                    {"server_alias": "none"},
                    {"server_alias": None, "server_version": None},
                    {"server_version": "2.0.0", "server_alias": None},
                    {"server_version": "2.0.0", "server_alias": "a"},
                    {"server_version": "3.0.0"},
                    {"server_alias": "latest"},
                )
            ),
            *(
                read(
                    "/endpoints",
                    filter_string=f"server_name = '{server}'",
                    order_by="created_at",
                    **selection,
                )
                for selection in (
                    {},
                    {"server_version": "1.0.0"},
                    {"server_alias": "a"},
                    {"server_alias": "latest"},
                    {"server_version": "1.0.0", "server_alias": "a"},
                    {"server_alias": ""},
                )
            ),
            read(f"/{server}/endpoints", server_alias="a", order_by="created_at"),
            status(server, "2.0.0", "active"),
            send("DELETE", f"/{server}"),
            send("DELETE", f"/{server}/versions/2.0.0"),
            status(server, "2.0.0", "deprecated"),
            send("DELETE", f"/{server}/versions/2.0.0"),
            *seen(server),
            endpoint(server, "none", server_version="2.0.0"),
            alias("a", "2.0.0"),
            send("PATCH", where, {"server_version": "2.0.0"}),
            alias("c", "1.0.0"),
            send("DELETE", f"/{server}/aliases/b/c"),
            send("DELETE", f"/{server}/aliases/b/c"),
            send("DELETE", f"/{server}/aliases/latest"),
            *seen(server),
            status(server, "1.0.0", "deleted"),
            *seen(server),
            read(f"/{server}/aliases/c"),
            endpoint(server, "none", server_alias="c"),
            send("DELETE", where),
            send("DELETE", where),
            send("DELETE", f"/{server}"),
            *seen(server),
        ]
    )


BODIES: tuple[tuple[str, str, Any], ...] = (
    *(("POST", "", body) for body in ([], "x", 5, {}, {"name": 5}, {"name": None})),
    *(
        ("POST", "", {"name": "com.ex/icons", "icons": icons})
        for icons in (
            *("x", [5], [{}], [{"src": 5, "sizes": "x", "theme": 5}], [ICON] * 101),
            *([{"src": "http://8.8.8.8"}], [{"src": " "}], [{"src": "https://"}]),
            *([{"src": "https://a:b@8.8.8.8"}], [{"src": "https://127.0.0.1"}]),
            *([{"src": "https://127.1"}], [{"src": "https://[::1]/"}], [{"src": "ftp:x"}]),
            *([{**ICON, "mimeType": "text/css"}], [{**ICON, "mimeType": "image/"}]),
            *([{**ICON, "mimeType": 5}], [{"mimeType": "x"}], [{"src": "https://[x"}]),
        )
    ),
    *(("PATCH", "/com.ex/ab", body) for body in ([], {"icons": 5}, {"description": 5})),
    *(
        ("POST", "/com.ex/ab/versions", body)
        for body in (
            *({}, {"server_json": 5}, {"server_json": None}, {"server_json": {}}),
            *({"server_json": {"server": 5}}, {"server_json": {"server": {"name": "x"}}}),
            *(
                {**_said("com.ex/ab", "1.0.0"), **more}
                for more in (
                    *({"tools": 5}, {"tools": [5]}, {"tools": [{}]}, {"status": None}),
                    *({"tools": [{"name": "x"}] * 1001}, {"source": 5}, {"connect_options": []}),
                    *({"connect_options": {"a": value}} for value in (5, None, {"hidden": "x"})),
                    *(
                        {"connect_options": {"a": {"hidden": value}}}
                        for value in (2, [], None, 1.0)
                    ),
                    {"tools": [{"name": 5, "inputSchema": [], "execution": "x", "icons": [{}]}]},
                )
            ),
            *(
                {"server_json": {**_said("com.ex/ab", "1.0.0")["server_json"], **more}}
                for more in (
                    {"packages": [{"registryType": 5, "environmentVariables": [{"isSecret": 5}]}]},
                    *({"packages": 5}, {"remotes": [{"type": 5}]}, {"repository": {}}),
                    *({"meta": 5}, {"_meta": 5}, {"meta": {}, "_meta": {"a": 1}, "version": "x"}),
                    *({"icons": [{"src": "x"}]}, {"title": 5, "websiteUrl": []}),
                )
            ),
        )
    ),
    *(("PATCH", "/com.ex/ab/versions/1.0.0", body) for body in ([], {"status": 5}, {"tools": 5})),
    *(("POST", f"/com.ex/ab/{what}", {}) for what in ("tags", "aliases", "endpoints")),
    ("POST", "/com.ex/ab/versions/1.0.0/tags", {"key": 5}),
    ("POST", "/com.ex/ab/endpoints", {"url": 5, "server_alias": 5, "transport_type": None}),
    ("PATCH", "/com.ex/ab/endpoints/x", {"url": 5}),
)


def test_refused_bodies(both: Pair) -> None:
    both.send_all([send(*parts) for parts in BODIES])
    both.send_all(
        [
            send("POST", "", raw=b"no JSON"),
            send("POST", "", raw=b'{"name": "com.ex/ab"} x'),
            send("POST", "", raw=b'{"name":'),
            send("POST", "", raw=b""),
            send("POST", "", raw=b"null"),
            send("POST", "", raw=b'{"name": "com.ex/type"}', content_type="text/plain"),
            send("POST", "", raw=b'{"name": "x"}', content_type="application/x+json; charset=u"),
        ]
    )


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
            *(read(path, order_by=order) for order in ("name", ["`version` ASC", "`version` DESC"])),
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
    for path, key, query in (
        ("", "mcp_servers", {"filter_string": f"name LIKE '%{token}%'", "order_by": "name DESC"}),
        (f"/{named[0]}/versions", "mcp_server_versions", {"order_by": "`version` DESC"}),
        (
            "/endpoints",
            "mcp_access_endpoints",
            {"filter_string": f"server_name LIKE '%{token}%'", "order_by": "server_name"},
        ),
    ):
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
