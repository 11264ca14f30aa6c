"""Lists and returns the MCP servers of the model catalog, their tools and their logos."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from catalog import entry_json, sorting, sources
from catalog.calls import CatalogCall, descending, page
from catalog.generations import Generation
from catalog.models import filter_options_of
from mlcore.catalog import filter_fields
from mlcore.catalog.entry import SERVER, CatalogEntry
from mlcore.errors import MlflowError, ResourceDoesNotExist
from mlcore.http import Response
from mlcore.kubeflow.errors import invalid
from mlcore.search import kubeflow_filter
from mlcore.search.like import ilike

_TEXTS: Final = ("description", "provider", "displayName")
_DEFAULT_TOOLS: Final = 10
_IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
_NO_SCRIPT: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"
}


class UnsupportedImage(MlflowError):
    """Raised (415) if the logo of an MCP server is neither a URL of http or https, nor a ``data:``
    URL with one of the known types of images in valid Base64."""

    error_code = "INVALID_PARAMETER_VALUE"
    http_status = 415


def list_servers(call: CatalogCall) -> Any:
    arguments = call.arguments()
    node = kubeflow_filter.parse_node(arguments.get("filterQuery", ""), filter_fields.SERVERS)
    words = arguments.get("q", "").lower()
    name = arguments.get("name", "")
    fits = ilike(name if "%" in name else f"%{name}%") if name else None
    tools = _tool_limit(call)
    by, down = arguments.get("orderBy", ""), descending(arguments)
    generation, after = call.pinned_generation()
    keys = sources.requested_source_keys(call, generation, "mcp_servers")
    query, named = _named_query(call, generation)
    test = kubeflow_filter.compile_test(kubeflow_filter.AllOf((node, named)), filter_fields.SERVERS)

    def in_order() -> list[CatalogEntry]:
        return sorting.sort_entries(generation.servers, by, descending=down)

    def find() -> list[CatalogEntry]:
        return [
            entry
            for entry in generation.cached(("order of servers", by, down), in_order)
            if entry.source in keys
            and (fits is None or fits(entry.name))
            and (not words or _contains_words(entry, words))
            and test(entry)
        ]

    cache_key = (
        *("servers", keys, arguments.get("filterQuery", ""), words),
        *(name, query, generation.owner_of_queries(call.workspace), by, down),
    )
    return page(
        call,
        generation.cached(cache_key, find),
        lambda chunk: [entry_json.server_json(entry, tools) for entry in chunk],
        generation,
        after,
        identity=lambda entry: entry.id,
    )


def _tool_limit(call: CatalogCall) -> int | None:
    """Returns the maximum number of tools to include for each server; None if the request does not
    ask for tools. Raises InvalidParameterValue."""
    limit = call.number("toolLimit", 0, 100)
    if not call.flag("includeTools"):
        return None
    return _DEFAULT_TOOLS if limit is None else limit


def _contains_words(entry: CatalogEntry, words: str) -> bool:
    return words in entry.name.lower() or any(
        words in str(entry.fields.get(name, "")).lower() for name in _TEXTS
    )


def _named_query(call: CatalogCall, generation: Generation) -> tuple[str, kubeflow_filter.Node]:
    """Returns the name and the conditions of the request's ``namedQuery``; ``""`` and no conditions
    if it has none. Raises InvalidParameterValue for an unknown query."""
    name = call.arguments().get("namedQuery")
    if name is None:
        return "", kubeflow_filter.NOTHING
    queries = generation.queries(call.workspace, "mcp_servers")
    if name not in queries:
        raise invalid(f"unknown named query: {name[:100]}")
    query = queries[name]
    if any(condition.get("value") in ("min", "max") for condition in query.values()):
        query = _filter_options(call, generation)["namedQueries"][name]
    conditions = (
        (field, condition["operator"], condition.get("value", ""))
        for field, condition in query.items()
    )
    return name, kubeflow_filter.all_of(conditions, filter_fields.SERVERS)


def _filter_options(call: CatalogCall, generation: Generation) -> Any:
    return filter_options_of(generation, call.workspace, "mcp_servers", SERVER)


def filter_options(call: CatalogCall) -> Any:
    return _filter_options(call, call.current_generation())


def get_server(call: CatalogCall) -> Any:
    return entry_json.server_json(_find(call, call.current_generation()), _tool_limit(call))


def _find(call: CatalogCall, generation: Generation) -> CatalogEntry:
    text = call.parameter("server_id")
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise invalid(f"invalid server id: {text[:50]!r} is not a number")
    entry = generation.server(call.workspace, int(text))
    if entry is None:
        raise ResourceDoesNotExist(f"no MCP server found for id {text}: not found")
    return entry


def get_logo(call: CatalogCall) -> Response:
    """Returns the logo of an MCP server of the catalog: a redirect if the logo is a URL of http or
    https, the image itself if it is a ``data:`` URL.

    Raises:
        InvalidParameterValue: the server's id in the path is not a number.
        ResourceDoesNotExist: the server does not exist or has no logo.
        UnsupportedImage: the logo is neither.
    """
    server = _find(call, call.current_generation())
    logo = str(server.fields.get("logo") or "")
    if not logo:
        raise ResourceDoesNotExist(f"no logo found for MCP server {server.id}: not found")
    if logo.startswith(("https://", "http://")) and logo.isascii() and logo.isprintable():
        return Response(302, "", headers={"location": logo})
    kind, mark, data = logo.removeprefix("data:").partition(";base64,")
    if not logo.startswith("data:") or not mark or kind not in _IMAGE_TYPES:
        raise UnsupportedImage(f"the logo of MCP server {server.id} is not an image")
    try:
        picture = base64.b64decode(data, validate=True)
    except binascii.Error:
        raise UnsupportedImage(f"the logo of MCP server {server.id} is not Base64") from None
    return Response(200, picture, kind, _NO_SCRIPT)


def list_tools(call: CatalogCall) -> Any:
    arguments = call.arguments()
    test = kubeflow_filter.parse_test(arguments.get("filterQuery", ""), filter_fields.TOOLS)
    by, down = arguments.get("orderBy", ""), descending(arguments)
    generation, after = call.pinned_generation()
    server = _find(call, generation)
    return page(
        call,
        sorting.sort_entries(filter(test, server.children), by, descending=down),
        lambda chunk: [entry_json.tool_json(tool) for tool in chunk],
        generation,
        after,
        identity=lambda tool: tool.id,
    )


def get_tool(call: CatalogCall) -> Any:
    server = _find(call, call.current_generation())
    name = call.parameter("tool_name")
    for tool in server.children:
        if tool.name == name:
            return {
                **entry_json.tool_json(tool),
                "serverId": str(server.id),
                "serverName": server.name,
            }
    raise ResourceDoesNotExist(f"no tool {name} found for MCP server {server.id}: not found")
