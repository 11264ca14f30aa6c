"""The rules of MCP servers and their tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from catalog import options, orders, shown, sources
from catalog.answers import Call, descending, page
from catalog.generation import Generation
from mlcore.catalog import filters
from mlcore.catalog.entry import Entry
from mlcore.errors import ResourceDoesNotExist
from mlcore.kubeflow.errors import bad
from mlcore.search import filter_query
from mlcore.search.like import ilike

_TEXTS: Final = ("description", "provider", "displayName")
_TOOLS: Final = 10


def list_servers(call: Call) -> Any:
    arguments = call.arguments()
    read, after = call.reading()
    keys = sources.chosen(call, read, "mcp_servers")
    test = filter_query.parse(arguments.get("filterQuery", ""), filters.SERVERS)
    named = _named(call, read)
    words = arguments.get("q", "").lower()
    name = arguments.get("name", "")
    fits = ilike(name if "%" in name else f"%{name}%") if name else None
    tools = _tools(call)
    found = [
        entry
        for entry in _in_order(call, read.servers, "NAME")
        if entry.source in keys
        and (fits is None or fits(entry.name))
        and (not words or _says(entry, words))
        and test(entry)
        and named(entry)
    ]
    return page(call, found, lambda one: shown.server(one, tools), read, after, lambda one: one.id)


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


def _named(call: Call, read: Generation) -> filter_query.Test:
    """The test of a named query. Raises InvalidParameterValue: there is none of the name."""
    name = call.arguments().get("namedQuery")
    if name is None:
        return lambda _: True
    queries = read.state.get("queries", {}).get("mcp_servers", {})
    if name not in queries:
        raise bad(f"unknown named query: {name[:100]}")
    query = queries[name]
    if any(condition.get("value") in ("min", "max") for condition in query.values()):
        query = _options(call, read)["namedQueries"][name]
    return filter_query.all_of(
        ((field, one["operator"], one.get("value", "")) for field, one in query.items()),
        filters.SERVERS,
    )


def _options(call: Call, read: Generation) -> dict[str, Any]:
    keys = read.keys(call.workspace, "mcp_servers")
    entries = [entry for entry in read.servers if entry.source in keys]
    return options.of_servers(entries, read.state.get("queries", {}).get("mcp_servers", {}))


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


def list_tools(call: Call) -> Any:
    read, after = call.reading()
    server = _find(call, read)
    test = filter_query.parse(call.arguments().get("filterQuery", ""), filters.TOOLS)
    found = [tool for tool in _in_order(call, server.children, "NAME") if test(tool)]
    return page(call, found, shown.tool, read, after, lambda one: one.id)


def get_tool(call: Call) -> Any:
    server = _find(call, call.current())
    name = call.parameter("tool_name")
    for tool in server.children:
        if tool.name == name:
            return {**shown.tool(tool), "serverId": str(server.id), "serverName": server.name}
    raise ResourceDoesNotExist(f"no tool {name} found for MCP server {server.id}: not found")


def _in_order(call: Call, entries: Iterable[Entry], default: str) -> list[Entry]:
    arguments = call.arguments()
    return orders.ordered(
        entries,
        arguments.get("orderBy", ""),
        descending=descending(arguments),
        default=default,
    )
