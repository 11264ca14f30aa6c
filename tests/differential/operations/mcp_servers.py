# Much is given wrongly on purpose.
# mypy: disable-error-code="arg-type, assignment, dict-item, abstract"
"""The registry of MCP servers: servers, versions, access endpoints, aliases, tags, searches."""

from __future__ import annotations

from typing import Any

from mlflow import MlflowClient

from .record import Record

FILTERS = (
    *("name LIKE '{}%'", "status = 'active'", "foo = 'x'", "name > 'a'", "tags.team = 'a'", "name"),
    *("name ILIKE '{}%' AND status != 'draft'", "display_name = 'Weather'", "status IN ('active')"),
)
ORDERS = ("name", "name DESC", "foo", "created_at DESC", "last_updated_at", "name SIDEWAYS")


def _described(name: str, version: str, **more: Any) -> dict[str, Any]:
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-09-29/server.schema.json",
        "name": name,
        "description": "The weather",
        "version": version,
        **more,
    }


def registry(record: Record, client: MlflowClient, prefix: str) -> None:
    do, name = record.do, f"com.example/{prefix}"
    do("create_mcp_server", client.create_mcp_server, name, "weather")
    do("create_mcp_server again", client.create_mcp_server, name)
    for bad in ("", "no-slash", "a b/c", "a/b/c", "x" * 300, "é/x", "com.example/"):
        do(f"create_mcp_server {bad[:5]}", client.create_mcp_server, bad)
    remotes = [{"type": "streamable-http", "url": "https://93.184.216.34/mcp"}]
    for version in ("1.0.0", "1.0.1", "2.0.0-beta", "1.0.0", "latest", "", "x" * 300, "A", "a"):
        for more in ({}, {"remotes": remotes}):
            described = _described(name, version, **more)
            do(f"version {version[:9]} {bool(more)}", client.create_mcp_server_version, described)
    for wrong in ({}, {"name": name}, {"version": "1"}, _described("bad name", "1"), {"name": 1}):
        do(f"version of {wrong}"[:60], client.create_mcp_server_version, wrong)
    _change(record, client, name)
    _search(record, client, name)
    for alias in ("prod", "prod", "latest"):
        do(f"delete_alias {alias}", client.delete_mcp_server_alias, name, alias)
    for version in ("1.0.1", "1.0.1", "9"):
        do(f"delete {version}", client.delete_mcp_server_version, name, version)
    for _ in range(2):
        do("delete", client.delete_mcp_server, name)


def _change(record: Record, client: MlflowClient, name: str) -> None:
    do = record.do
    for server_name in (name, "com.example/none"):
        what = "none" if server_name.endswith("none") else "mine"
        do(f"get {what}", client.get_mcp_server, server_name)
        do(f"latest {what}", client.get_latest_mcp_server_version, server_name)
        do(
            f"update {what}",
            client.update_mcp_server,
            server_name,
            display_name="Weather",
            description=None,
        )
        for version in ("1.0.0", "1.0.1", "9"):
            do(f"get {version} {what}", client.get_mcp_server_version, server_name, version)
            for status in ("draft", "active", "deprecated", "bogus", "deleted"):
                update = client.update_mcp_server_version
                do(f"update {version} {status} {what}", update, server_name, version, status=status)
        for alias, version in (
            ("prod", "1.0.0"),
            ("latest", "1.0.0"),
            ("a b", "1.0.0"),
            ("x", "9"),
        ):
            do(
                f"set_alias {alias} {what}",
                client.set_mcp_server_alias,
                server_name,
                alias,
                version,
            )
            do(
                f"by alias {alias} {what}",
                client.get_mcp_server_version_by_alias,
                server_name,
                alias,
            )
        for key, value in (("team", "a"), ("a/b", ""), ("", "v"), ("x" * 300, "v")):
            do(f"tag {key[:5]} {what}", client.set_mcp_server_tag, server_name, key, value)
            tag = client.set_mcp_server_version_tag
            do(f"version tag {key[:5]} {what}", tag, server_name, "1.0.0", key, value)
        for key in ("a/b", "a/b"):
            do(f"delete tag {key} {what}", client.delete_mcp_server_tag, server_name, key)
            delete = client.delete_mcp_server_version_tag
            do(f"delete version tag {key} {what}", delete, server_name, "1.0.0", key)
        _endpoints(record, client, server_name, what)


def _search(record: Record, client: MlflowClient, name: str) -> None:
    do = record.do
    for text in FILTERS:
        filled = text.replace("{}", name)
        scoped = filled if name in filled or "foo" in text else f"name LIKE '{name}%' AND {filled}"
        do(f"search {text}", client.search_mcp_servers, scoped)
        do(f"search versions {text}", client.search_mcp_server_versions, name, text)
    for order in ORDERS:
        do(f"order {order}", client.search_mcp_servers, f"name LIKE '{name}%'", order_by=[order])
        do(f"order versions {order}", client.search_mcp_server_versions, name, order_by=[order])
    for most in (0, 1, 1001):
        do(f"most {most}", client.search_mcp_servers, f"name LIKE '{name}%'", max_results=most)


def _endpoints(record: Record, client: MlflowClient, name: str, what: str) -> None:
    do, url = record.do, "https://93.184.216.34/mcp"
    made = []
    for given in (
        *({"server_version": "1.0.0"}, {"server_alias": "prod"}, {}, {"server_version": "9"}),
        *({"server_version": "1.0.0", "server_alias": "prod"}, {"server_alias": "none"}),
        *({"url": "http://93.184.216.34"}, {"url": "no"}, {"transport_type": "bogus"}),
    ):
        fields = {"url": url, **given}
        create = client.create_mcp_access_endpoint
        endpoint = do(f"create endpoint {given} {what}", create, name, **fields)
        made += [endpoint.endpoint_id] if endpoint else []
    for endpoint_id in (*made[:1], "none"):
        do(f"get endpoint {what}", client.get_mcp_access_endpoint, name, endpoint_id)
        for change in (
            {"url": url + "/x"},
            {"server_alias": "prod"},
            {"transport_type": "sse"},
            {},
        ):
            update = client.update_mcp_access_endpoint
            do(f"update endpoint {change} {what}", update, name, endpoint_id, **change)
    do(f"search endpoints {what}", client.search_mcp_access_endpoints, name)
    for endpoint_id in (*made[:1], *made[:1], "none"):
        do(f"delete endpoint {what}", client.delete_mcp_access_endpoint, name, endpoint_id)
