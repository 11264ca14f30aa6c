"""The MCP registry: servers, versions, aliases, tags, access endpoints, searches, and every body
that MLflow's server refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import name
from tests.differential.mcp_requests import (
    ICON,
    create,
    endpoint,
    read,
    send,
    server_body,
    status,
    version,
)
from tests.differential.pair import Pair
from tests.differential.rest import Call

pytestmark = pytest.mark.e2e


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
    both.send_all([create(server), send("POST", "/ab/cd/versions", server_body(server, "1.0.0"))])


def test_versions(both: Pair) -> None:
    server, missing = new_server(), new_server()
    full: dict[str, Any] = {
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
                    **server_body(server, "1.1.0"),
                    "tools": tools,
                    "connect_options": options,
                    "source": "s",
                    "status": "active",
                },
            ),
            send(
                "POST",
                path,
                {"server_json": {"server": server_body(server, "1.2.0")["server_json"]}},
            ),
            send(
                "POST",
                path,
                {**server_body(server, "1.3.0"), "tools": None, "connect_options": None},
            ),
            send(
                "POST", path, {**server_body(server, "1.4.0"), "tools": [], "connect_options": {}}
            ),
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
            send("POST", f"/{missing}/versions", server_body(server, "1.0.0")),
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
            version_number = f"{number}.{other}.0"
            calls += [
                version(server, version_number),
                *(status(server, version_number, each) for each in way),
            ]
            calls += [status(server, version_number, following), *seen(server, version_number)]
            calls += [
                send("DELETE", f"/{server}/versions/{version_number}"),
                read(f"/{server}/versions/{version_number}"),
            ]
            calls += [
                version(server, version_number),
                send("DELETE", f"/{server}/versions/{version_number}"),
            ]
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
                send(method, f"/{each}/endpoints/{endpoint_id}", {} if method == "PATCH" else None)
                for each in (server, other)
                for endpoint_id in ("none", "{{elsewhere}}")
                for method in ("GET", "PATCH")
            ),
            *(
                send("DELETE", f"/{server}/endpoints/{endpoint_id}")
                for endpoint_id in ("none", "{{elsewhere}}")
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
