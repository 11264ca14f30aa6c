"""Searches MCP servers, their versions and access endpoints. All items of a workspace or a server
are read with consistent reads and filtered in memory."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from mcp_servers import messages as m
from mcp_servers import servers
from mlcore import errors, paging
from mlcore.auth.permissions import MCP_SERVER
from mlcore.entities.mcp_servers import AccessEndpoint, MCPServer, MCPServerVersion
from mlcore.http import Request
from mlcore.limits import mcp_servers as limits
from mlcore.limits.shared_checks import check_max_results
from mlcore.repos import mcp_servers
from mlcore.responses import mcp_servers as responses
from mlcore.search import grammar, mcp_fields, sort_keys
from mlcore.search.fields import ATTRIBUTE, TAG, SearchableEntity
from mlcore.search.grammar import Comparison, OrderBy
from mlcore.search.match import Predicate, predicate

T = TypeVar("T")

_SEARCH = m.SearchMCPServers | m.SearchMCPServerVersions | m.SearchMCPAccessEndpoints

_TIMES: Final = {"created_at": "created_at", "last_updated_at": "last_updated_at"}
_SERVER_ORDER: Final = {"name": "name", **_TIMES}
_VERSION_ORDER: Final = {"version": "precedence", **_TIMES}
_ENDPOINT_ORDER: Final = {"id": "endpoint_id", "server_name": "server_name", **_TIMES}

_BY_PRECEDENCE: Final = frozenset(("<", "<=", ">", ">="))


class _ServerRow(NamedTuple):
    """The fields of a server that filters and orders use."""

    server: MCPServer
    name: str
    display_name: str | None
    status: str | None
    has_access_endpoints: str
    created_at: int
    last_updated_at: int
    tags: dict[str, str]


def search_mcp_servers(message: m.SearchMCPServers, request: Request) -> dict[str, Any]:
    check_max_results(message.max_results)
    if message.max_results > limits.MAX_SERVERS_PER_PAGE:
        raise errors.InvalidParameterValue(
            f"Invalid value for max_results. It must be at most {limits.MAX_SERVERS_PER_PAGE}, "
            f"but got {message.max_results}"
        )
    entity = mcp_fields.MCP_SERVER
    comparisons = _comparisons(message.filter_string, entity, (ATTRIBUTE, TAG))
    matches = predicate(list(map(_checked_has_endpoints, comparisons)), entity)
    page = _Page(message, entity, _SERVER_ORDER, [request.workspace])
    rows = map(_server_row, _readable(request))
    return page.answer("mcp_servers", filter(matches, rows), _server_responses)


def search_mcp_server_versions(
    message: m.SearchMCPServerVersions, request: Request
) -> dict[str, Any]:
    """Returns a page of the matching versions of an MCP server; an empty page for a missing
    server."""
    check_max_results(message.max_results)
    entity = mcp_fields.MCP_SERVER_VERSION
    matches = _version_predicate(_comparisons(message.filter_string, entity, (ATTRIBUTE,)))
    page = _Page(message, entity, _VERSION_ORDER, [request.workspace, message.name])
    server, versions = mcp_servers.find_with_versions(request.workspace, message.name)
    rows = [version._replace(precedence=limits.precedence(version.version)) for version in versions]

    def responses_of(versions: Sequence[MCPServerVersion]) -> list[dict[str, Any]]:
        if server is None:
            return []
        return [responses.version(version, server) for version in versions]

    return page.answer("mcp_server_versions", filter(matches, rows), responses_of)


def search_mcp_access_endpoints(
    message: m.SearchMCPAccessEndpoints, request: Request
) -> dict[str, Any]:
    """Returns a page of the matching access endpoints of one MCP server or of all servers. Omits
    endpoints that resolve to no version."""
    check_max_results(message.max_results)
    entity = mcp_fields.MCP_ACCESS_ENDPOINT
    matches = predicate(_comparisons(message.filter_string, entity, (ATTRIBUTE,)), entity)
    selected = [message.server_version, message.server_alias]
    page = _Page(message, entity, _ENDPOINT_ORDER, [request.workspace, message.name, *selected])
    by_name = {server.name: server for server in _servers_to_search(message.name, request)}
    rows = [
        endpoint._replace(status=server.versions[number].status)
        for server in by_name.values()
        for endpoint in server.endpoints.values()
        if _is_selected(endpoint, message) and (number := servers.resolve_target(server, endpoint))
    ]

    def responses_of(endpoints: Sequence[AccessEndpoint]) -> list[dict[str, Any]]:
        owners = [by_name[endpoint.server_name] for endpoint in endpoints]
        targets = [
            (server, servers.resolve_target(server, endpoint) or "")
            for server, endpoint in zip(owners, endpoints, strict=True)
        ]
        versions = mcp_servers.find_versions(targets)
        return [
            responses.endpoint(endpoint, version, server)
            for endpoint, version, server in zip(endpoints, versions, owners, strict=True)
            if version is not None
        ]

    return page.answer("mcp_access_endpoints", filter(matches, rows), responses_of)


class _Page:
    """A page of a search: its order, and the position after which it begins."""

    def __init__(
        self, message: _SEARCH, entity: SearchableEntity, names: dict[str, str], scope: list[Any]
    ) -> None:
        """
        Args:
            names: the fields that ``order_by`` may name, and their names in ``entity``.
            scope: identifies the searched list; a page token of another list is refused.
        """
        self._ordering = _ordering(message.order_by, names, entity.words)
        self._query = [entity.name, *scope, message.filter_string, list(message.order_by)]
        self._key_of = sort_keys.sort_key(self._ordering, entity)
        self._limit = message.max_results
        position = paging.position_of(message.page_token, self._query)
        self._after: sort_keys.Key | None = None
        if position is not None:
            self._after = sort_keys.restore_key(position, self._ordering, entity)

    def answer(
        self,
        name: str,
        rows: Iterable[T],
        responses_of: Callable[[Sequence[T]], list[dict[str, Any]]],
    ) -> dict[str, Any]:
        """Returns the rows after the position, up to ``max_results`` and the size of a response,
        and a token if more follow.

        Args:
            name: the field of the answer that holds the rows.
        """
        keyed = ((self._key_of(row), row) for row in rows)
        following = (pair for pair in keyed if self._after is None or pair[0] > self._after)
        next_rows = heapq.nsmallest(self._limit + 1, following, key=lambda pair: pair[0])
        row_responses = responses_of([row for _, row in next_rows[: self._limit]])
        fitting = paging.fitting(row_responses, lambda row: len(json.dumps(row)))
        token = None
        if len(fitting) < len(row_responses) or len(next_rows) > self._limit:
            token = paging.token(self._key_of(next_rows[len(fitting) - 1][1]), self._query)
        return {name: fitting, "next_page_token": token}


def _ordering(texts: Iterable[str], names: dict[str, str], words: Container[str]) -> list[OrderBy]:
    """Parses the orderings in a request's ``order_by``. Raises InvalidParameterValue."""
    ordering: dict[str, OrderBy] = {}
    for text in texts:
        key, ascending = grammar.parse_direction(text, words)
        if key not in names:
            raise errors.InvalidParameterValue(
                f"Invalid order_by key '{key}'. Valid keys: {sorted(names)}"
            )
        if key in ordering:
            raise errors.InvalidParameterValue(f"Duplicate order_by field: '{key}'")
        ordering[key] = OrderBy(ATTRIBUTE, names[key], ascending)
    return list(ordering.values())


def _comparisons(text: str, entity: SearchableEntity, kinds: Sequence[str]) -> list[Comparison]:
    """Parses a filter. Raises InvalidParameterValue if it is malformed, has a comparator that MCP
    servers lack, or compares something of a kind (attribute, tag, …) that is not in ``kinds``."""
    comparisons = grammar.parse_filter(text, entity)
    for comparison in comparisons:
        if comparison.kind not in kinds:
            kind = "parameter" if comparison.kind == "param" else comparison.kind
            raise errors.InvalidParameterValue(f"Invalid filter type '{kind}'.")
        if comparison.operator not in mcp_fields.OPERATORS:
            raise errors.InvalidParameterValue(
                f"Invalid comparator '{comparison.operator}' for {comparison.kind} "
                f"'{comparison.key}'."
            )
    return list(comparisons)


def _checked_has_endpoints(comparison: Comparison) -> Comparison:
    """Checks a comparison of ``has_access_endpoints`` and writes its value in lower case; returns
    others unchanged. Raises InvalidParameterValue."""
    if comparison[:2] != (ATTRIBUTE, "has_access_endpoints"):
        return comparison
    value = str(comparison.value).lower()
    if comparison.operator != "=" or value not in ("true", "false"):
        raise errors.InvalidParameterValue(
            "has_access_endpoints only supports '= true' or '= false'"
        )
    return comparison._replace(value=value)


def _version_predicate(comparisons: Iterable[Comparison]) -> Predicate:
    """Builds the predicate of a filter on versions. ``=`` and ``!=`` compare version numbers as
    texts, ``<`` and ``>`` by the precedence of semantic versions. Raises
    InvalidParameterValue."""
    converted = []
    for comparison in comparisons:
        if comparison.key != "version" or comparison.operator in ("=", "!="):
            converted.append(comparison)
            continue
        if comparison.operator not in _BY_PRECEDENCE:
            raise errors.InvalidParameterValue(
                "version only supports semantic comparators '=', '!=', '<', '<=', '>', and '>='"
            )
        version = limits.semantic_version(str(comparison.value), "filter_string version")
        converted.append(comparison._replace(key="precedence", value=version.precedence()))
    return predicate(converted, mcp_fields.MCP_SERVER_VERSION_MATCHED)


def _server_row(server: MCPServer) -> _ServerRow:
    number = servers.latest_version(server)
    has_endpoints = any(
        servers.resolve_target(server, endpoint) for endpoint in server.endpoints.values()
    )
    return _ServerRow(
        server=server,
        name=server.name,
        display_name=server.display_name,
        status=None if number is None else server.versions[number].status,
        has_access_endpoints="true" if has_endpoints else "false",
        created_at=server.created_at,
        last_updated_at=server.last_updated_at,
        tags=server.tags,
    )


def _server_responses(rows: Sequence[_ServerRow]) -> list[dict[str, Any]]:
    return servers.responses_of([row.server for row in rows])


def _servers_to_search(name: str | None, request: Request) -> list[MCPServer]:
    if name is not None:
        server = mcp_servers.find(request.workspace, name)
        return [] if server is None else [server]
    return _readable(request)


def _readable(request: Request) -> list[MCPServer]:
    """Returns the servers of the workspace that the caller may read."""
    may_read = request.may_read(MCP_SERVER)
    return [
        server for server in mcp_servers.of_workspace(request.workspace) if may_read(server.name)
    ]


def _is_selected(endpoint: AccessEndpoint, message: m.SearchMCPAccessEndpoints) -> bool:
    """Whether the endpoint names the requested version and alias. An endpoint names either a
    version or an alias, so a request with both selects none."""
    if message.server_version is not None and endpoint.server_version != message.server_version:
        return False
    return message.server_alias is None or endpoint.server_alias == message.server_alias
