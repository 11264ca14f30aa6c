"""The rules of MCP servers and their tools."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from catalog import orders, shown, sources
from catalog.answers import Call, descending, page
from catalog.generation import Generation
from catalog.models import options_of
from mlcore.catalog import filters
from mlcore.catalog.entry import SERVER, Entry
from mlcore.errors import MlflowError, ResourceDoesNotExist
from mlcore.http import Response
from mlcore.kubeflow.errors import bad
from mlcore.search import filter_query
from mlcore.search.like import ilike

_TEXTS: Final = ("description", "provider", "displayName")
_TOOLS: Final = 10
_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
_NO_SCRIPT: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"
}


class UnsupportedPicture(MlflowError):
    """415: what a server gives as its picture is none."""

    error_code = "INVALID_PARAMETER_VALUE"
    http_status = 415


def list_servers(call: Call) -> Any:
    arguments = call.arguments()
    node = filter_query.read(arguments.get("filterQuery", ""), filters.SERVERS)
    words = arguments.get("q", "").lower()
    name = arguments.get("name", "")
    fits = ilike(name if "%" in name else f"%{name}%") if name else None
    tools = _tools(call)
    by, down = arguments.get("orderBy", ""), descending(arguments)
    read, after = call.reading()
    keys = sources.chosen(call, read, "mcp_servers")
    query, named = _named(call, read)
    test = filter_query.compiled(filter_query.Every((node, named)), filters.SERVERS)

    def in_order() -> list[Entry]:
        return orders.ordered(read.servers, by, descending=down)

    def find() -> list[Entry]:
        return [
            entry
            for entry in read.remembered(("order of servers", by, down), in_order)
            if entry.source in keys
            and (fits is None or fits(entry.name))
            and (not words or _says(entry, words))
            and test(entry)
        ]

    question = (
        *("servers", keys, arguments.get("filterQuery", ""), words),
        *(name, query, by, down),
    )
    return page(
        call,
        read.remembered(question, find),
        lambda some: [shown.server(one, tools) for one in some],
        read,
        after,
        identity=lambda one: one.id,
    )


def _tools(call: Call) -> int | None:
    """How many tools of each server are shown; None for none. Raises InvalidParameterValue."""
    limit = call.number("toolLimit", 0, 100)
    if not call.flag("includeTools"):
        return None
    return _TOOLS if limit is None else limit


def _says(entry: Entry, words: str) -> bool:
    return words in entry.name.lower() or any(
        words in str(entry.fields.get(name, "")).lower() for name in _TEXTS
    )


def _named(call: Call, read: Generation) -> tuple[str, filter_query.Node]:
    """A named query: its name, and what it says. Raises InvalidParameterValue: there is none of the
    name."""
    name = call.arguments().get("namedQuery")
    if name is None:
        return "", filter_query.NOTHING
    queries = read.state.get("queries", {}).get("mcp_servers", {})
    if name not in queries:
        raise bad(f"unknown named query: {name[:100]}")
    query = queries[name]
    if any(condition.get("value") in ("min", "max") for condition in query.values()):
        query = _options(call, read)["namedQueries"][name]
    conditions = ((field, one["operator"], one.get("value", "")) for field, one in query.items())
    return name, filter_query.all_of(conditions, filters.SERVERS)


def _options(call: Call, read: Generation) -> Any:
    return options_of(read, read.keys(call.workspace, "mcp_servers"), "mcp_servers", SERVER)


def filter_options(call: Call) -> Any:
    return _options(call, call.current())


def get_server(call: Call) -> Any:
    return shown.server(_find(call, call.current()), _tools(call))


def _find(call: Call, read: Generation) -> Entry:
    text = call.parameter("server_id")
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise bad(f"invalid server id: {text[:50]!r} is no number")
    entry = read.server(call.workspace, int(text))
    if entry is None:
        raise ResourceDoesNotExist(f"no MCP server found for id {text}: not found")
    return entry


def get_logo(call: Call) -> Response:
    """The picture of a server: a redirection to where it is, or itself where the server brings it.

    Raises:
        ResourceDoesNotExist: the server, or its picture.
        UnsupportedPicture: it is no picture that a browser shows.
    """
    server = _find(call, call.current())
    logo = str(server.fields.get("logo") or "")
    if not logo:
        raise ResourceDoesNotExist(f"no logo found for MCP server {server.id}: not found")
    if logo.startswith(("https://", "http://")) and logo.isascii() and logo.isprintable():
        return Response(302, "", headers={"location": logo})
    kind, mark, data = logo.removeprefix("data:").partition(";base64,")
    if not logo.startswith("data:") or not mark or kind not in _PICTURES:
        raise UnsupportedPicture(f"the logo of MCP server {server.id} is no picture")
    try:
        picture = base64.b64decode(data, validate=True)
    except binascii.Error:
        raise UnsupportedPicture(f"the logo of MCP server {server.id} is no Base64") from None
    return Response(200, picture, kind, _NO_SCRIPT)


def list_tools(call: Call) -> Any:
    arguments = call.arguments()
    test = filter_query.parse(arguments.get("filterQuery", ""), filters.TOOLS)
    by, down = arguments.get("orderBy", ""), descending(arguments)
    read, after = call.reading()
    server = _find(call, read)
    return page(
        call,
        orders.ordered(filter(test, server.children), by, descending=down),
        lambda some: [shown.tool(tool) for tool in some],
        read,
        after,
        identity=lambda one: one.id,
    )


def get_tool(call: Call) -> Any:
    server = _find(call, call.current())
    name = call.parameter("tool_name")
    for tool in server.children:
        if tool.name == name:
            return {**shown.tool(tool), "serverId": str(server.id), "serverName": server.name}
    raise ResourceDoesNotExist(f"no tool {name} found for MCP server {server.id}: not found")
