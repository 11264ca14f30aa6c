"""Declarations of a function's routes, and the routing of paths to them. A route is an *RPC*, one
of MLflow's calls with a JSON message and answer, or a *plain route*, which parses and answers in
its own way.

An RPC is served under ``/api`` and ``/ajax-api``. Routing uses dicts: a router with middleware
would cost more CPU at cold start than all code of a function.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from mlcore.errors import EndpointNotFound
from mlcore.http.raw_request import Parse
from mlcore.http.request import Request
from mlcore.http.response import Response
from mlcore.wire import Message

RpcFunction = Callable[[Any, Request], dict[str, Any] | Response]
"""Returns the JSON object of the answer, or a Response that is not JSON."""

OLDEST: Final = "2.9"
"""The oldest supported version of MLflow's clients; default of ``since``."""


class Rpc(NamedTuple):
    method: str
    path: str
    """Path below ``/api``, with the version. ``{name}`` matches one segment, ``@{name}`` one that
    begins with ``@``; ``{name+}`` matches the rest at the end of a path, any text elsewhere. Each
    sets the field with its name."""
    message: type[Message]
    function: RpcFunction
    policy: str
    """Policy that the caller must meet: ``runs.update_run`` is in :mod:`mlcore.policies.runs`."""
    follow: str = ""
    """Updates grants after success; a name like that of ``policy``."""
    hides: str = ""
    """Redaction of the answer, in :mod:`mlcore.policies.hidden_references`."""
    ajax_only: bool = False
    """Only under ``/ajax-api``: for the UI; not in MLflow's service definition."""
    status: int = 200
    """Status of a success; 204 has no body."""
    since: str = OLDEST
    """First version of MLflow with this route; "" for a route that MLflow does not have."""
    until: str = ""
    """Last version of MLflow with this route, if newer ones removed it."""
    cost: int | None = None
    """Sequential round trips to DynamoDB of a minimal request with warm caches and without login,
    as measured by a test; None if not measured."""
    read_units: float | None = None
    """Maximum capacity of a typical request, checked by tests/contract/test_budgets.py."""
    write_units: float | None = None
    deviation: str = ""
    """Difference from MLflow's server, except those of errors in docs/architecture.md."""
    twin_of: str = ""
    """Path of the RPC of which this is an alias."""
    reads: bool = False
    """Whether a POST only reads. Every GET does."""


class PlainRoute(NamedTuple):
    """A route with a parser and a response of its own, in contrast to an RPC. Its path may have
    variables."""

    method: str
    path: str
    parse: Parse
    """Parses the request into the message for policy and function."""
    function: Callable[[Any, Request], Response]
    policy: str
    follow: str = ""
    hides: str = ""
    since: str = OLDEST
    until: str = ""
    cost: int | None = None
    deviation: str = ""
    reads: bool = False
    """As of :class:`Rpc`."""


Route = Rpc | PlainRoute


def _rpc(
    method: str,
    path: str,
    message: type[Message],
    function: RpcFunction,
    policy: str,
    *,
    follow: str = "",
    hides: str = "",
    version: str = "2.0",
    ajax_only: bool = False,
    status: int = 200,
    since: str = OLDEST,
    until: str = "",
    cost: int | None = None,
    read_units: float | None = None,
    write_units: float | None = None,
    deviation: str = "",
    reads: bool = False,
) -> Rpc:
    return Rpc(
        method,
        f"/{version}{path}",
        message,
        function,
        policy,
        follow,
        hides,
        ajax_only,
        status,
        since,
        until,
        cost,
        read_units,
        write_units,
        deviation,
        reads=reads,
    )


get: Final = functools.partial(_rpc, "GET")
post: Final = functools.partial(_rpc, "POST")
put: Final = functools.partial(_rpc, "PUT")
patch: Final = functools.partial(_rpc, "PATCH")
delete: Final = functools.partial(_rpc, "DELETE")


def preview(rpc: Rpc) -> Rpc:
    """Returns the same RPC with ``/preview`` in its path, for MLflow clients before 2.0."""
    version, path = rpc.path[1:].split("/", 1)
    return rpc._replace(path=f"/{version}/preview/{path}", twin_of=rpc.path)


def only_reads(route: Route) -> bool:
    """Whether a route changes no data: its method is GET, or it is declared so (``reads``)."""
    return route.reads or route.method == "GET"


ByMethod = dict[str, Route]


class Routes:
    """Finds the route of a path among the routes of one function.

    Exact paths are in a dict, templates by their number of segments, paths with ``{name+}`` at the
    end by their prefix. Of paths with ``{name+}`` elsewhere, and of all paths of a function that
    has a path with ``@{name}``, the first match of each method is used.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._by_path: dict[str, ByMethod] = {}
        self._templates: dict[int, dict[tuple[str, ...], ByMethod]] = {}
        self._greedy: dict[str, tuple[str, ByMethod]] = {}
        self._texts: list[tuple[re.Pattern[str], Route]] = []
        declared = list(routes)
        in_order = any("@{" in route.path for route in declared)
        for route in declared:
            for prefix in _prefixes(route):
                path = prefix + route.path
                is_last = path.endswith("+}") and path.count("{") == 1
                if ("+}" in path and not is_last) or in_order:
                    self._texts.append((_pattern(path), route))
                else:
                    self._methods_of(path)[route.method] = route

    def _methods_of(self, path: str) -> ByMethod:
        if "{" not in path:
            return self._by_path.setdefault(path, {})
        if path.endswith("+}"):
            start, _, name = path[:-2].rpartition("{")
            return self._greedy.setdefault(start, (name, {}))[1]
        segments = tuple(path.split("/"))
        return self._templates.setdefault(len(segments), {}).setdefault(segments, {})

    def find(self, path: str, method: str) -> tuple[ByMethod, dict[str, str]]:
        """Returns the routes of a percent-decoded path by method, and the path parameters for
        ``method``. Raises EndpointNotFound if no route has this path."""
        methods = self._by_path.get(path)
        if methods is not None:
            return methods, {}
        segments = path.split("/")
        for template, methods in self._templates.get(len(segments), {}).items():
            parameters: dict[str, str] = {}
            for expected, actual in zip(template, segments, strict=True):
                if expected.startswith("{") and actual:
                    parameters[expected[1:-1]] = actual
                elif expected != actual:
                    break
            else:
                return methods, parameters
        routes: ByMethod = {}
        parameters = {}
        for pattern, route in self._texts:
            match = pattern.fullmatch(path)
            if match is not None and routes.setdefault(route.method, route) is route:
                parameters = match.groupdict() if route.method == method else parameters
        for start, (name, methods) in self._greedy.items():
            if path.startswith(start):
                if method not in routes:
                    parameters = {name: path[len(start) :]}
                return {**methods, **routes}, parameters
        if not routes:
            raise EndpointNotFound(f"No endpoint has the path {path}.")
        return routes, parameters


def _pattern(path: str) -> re.Pattern[str]:
    """Returns a regular expression that matches the paths of a template; a variable ``{name+}``
    takes as much as possible."""
    parts = []
    for part in path.split("/"):
        name, is_greedy, verb = part.partition("+}")
        if is_greedy:  # may be followed by a verb such as :register
            parts.append(f"(?P<{name[1:]}>.*){re.escape(verb)}")
        elif part.startswith(("{", "@{")):
            before, _, name = part.partition("{")
            parts.append(f"{before}(?P<{name[:-1]}>[^/]+)")
        else:
            parts.append(re.escape(part))
    return re.compile("/".join(parts), re.DOTALL)


def _prefixes(route: Route) -> Sequence[str]:
    if isinstance(route, PlainRoute):
        return ("",)
    return ("/ajax-api",) if route.ajax_only else ("/api", "/ajax-api")


def allowed_methods(methods: Iterable[str]) -> str:
    """Returns the value of the Allow header: these methods, OPTIONS, and HEAD if GET is allowed."""
    return ", ".join(sorted({*methods, "OPTIONS", *(["HEAD"] if "GET" in methods else [])}))
