"""RPCs, plain routes, and how a path finds them; calls none of them.

An RPC answers under ``/api`` and ``/ajax-api``. The dispatch is a dict: a resolver with middleware
would cost more CPU at a cold start than all of a domain's own code.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from mlcore.errors import EndpointNotFound
from mlcore.http.request import Request
from mlcore.http.response import Response
from mlcore.http.sent import Parse
from mlcore.wire import Message

RpcFunction = Callable[[Any, Request], dict[str, Any] | Response]
"""A response is for what is no JSON."""

OLDEST: Final = "2.9"
"""The oldest MLflow whose clients must work: what it had needs no date."""


class Rpc(NamedTuple):
    method: str
    path: str
    """Below ``/api``, with the version; ``{name}`` stands for one segment, ``{name+}`` at the end
    for all that is left, anywhere else for any text, and each sets the field of that name."""
    message: type[Message]
    function: RpcFunction
    policy: str
    """What is demanded of the caller: ``runs.update_run`` is in :mod:`mlcore.policies.runs`."""
    follow: str = ""
    """What a success means for grants, named likewise."""
    hides: str = ""
    """What the caller may not learn from the answer: in :mod:`mlcore.policies.redactions`."""
    ajax_only: bool = False
    """Only under ``/ajax-api``: made for the UI, no RPC in MLflow's service definition."""
    status: int = 200
    """Of a success; 204 has no body."""
    since: str = OLDEST
    """The first MLflow whose server answers here; "" is a route of ours alone."""
    until: str = ""
    """The last one, where newer servers have dropped it."""
    cost: int | None = None
    """Round trips to DynamoDB one after another, of the smallest sensible request of a process that
    knows where things are, without a login. Measured: none where a test cannot tell."""
    read_units: float | None = None
    """Capacity that a typical request takes at most; tests/contract/test_budgets.py has it."""
    write_units: float | None = None
    deviation: str = ""
    """What MLflow's server answers otherwise, beyond what docs/architecture.md says of errors."""
    twin_of: str = ""
    """The path of the RPC that this is another spelling of."""


class PlainRoute(NamedTuple):
    """A route that is no RPC. Its path may have variables."""

    method: str
    path: str
    parse: Parse
    """Makes the message of a request, which policy and function get."""
    function: Callable[[Any, Request], Response]
    policy: str
    follow: str = ""
    hides: str = ""
    since: str = OLDEST
    until: str = ""
    cost: int | None = None
    deviation: str = ""


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
    )


get: Final = functools.partial(_rpc, "GET")
post: Final = functools.partial(_rpc, "POST")
put: Final = functools.partial(_rpc, "PUT")
patch: Final = functools.partial(_rpc, "PATCH")
delete: Final = functools.partial(_rpc, "DELETE")


def preview(rpc: Rpc) -> Rpc:
    """The same RPC below ``/preview``, as clients before 2.0 spell it."""
    version, path = rpc.path[1:].split("/", 1)
    return rpc._replace(path=f"/{version}/preview/{path}", twin_of=rpc.path)


ByMethod = dict[str, Route]


class Routes:
    """The routes of a handler: exact paths in a dict, templates by their number of segments, those
    that take all that is left by what comes before. Of those with any text in between the first
    that fits a path counts, for each method by itself."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._by_path: dict[str, ByMethod] = {}
        self._templates: dict[int, dict[tuple[str, ...], ByMethod]] = {}
        self._greedy: dict[str, tuple[str, ByMethod]] = {}
        self._texts: list[tuple[re.Pattern[str], Route]] = []
        for route in routes:
            for prefix in _prefixes(route):
                path = prefix + route.path
                is_last = path.endswith("+}") and path.count("{") == 1
                if "+}" in path and not is_last:
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
        """The routes of a percent-decoded path by method, and the values of its path parameters for
        one of them.

        Raises:
            EndpointNotFound: nothing has this path.
        """
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
        found: ByMethod = {}
        parameters = {}
        for pattern, route in self._texts:
            match = pattern.fullmatch(path)
            if match is not None and found.setdefault(route.method, route) is route:
                parameters = match.groupdict() if route.method == method else parameters
        for start, (name, methods) in self._greedy.items():
            if path.startswith(start):
                if method not in found:
                    parameters = {name: path[len(start) :]}
                return {**methods, **found}, parameters
        if not found:
            raise EndpointNotFound(f"No endpoint has the path {path}.")
        return found, parameters


def _pattern(path: str) -> re.Pattern[str]:
    """What fits a path with any text in between; each of its texts takes as much as it can."""
    parts = []
    for part in path.split("/"):
        name, is_greedy, verb = part.partition("+}")
        if is_greedy:  # with a verb behind it, such as :register
            parts.append(f"(?P<{name[1:]}>.*){re.escape(verb)}")
        elif part.startswith("{"):
            parts.append(f"(?P<{part[1:-1]}>[^/]+)")
        else:
            parts.append(re.escape(part))
    return re.compile("/".join(parts), re.DOTALL)


def _prefixes(route: Route) -> Sequence[str]:
    if isinstance(route, PlainRoute):
        return ("",)
    return ("/ajax-api",) if route.ajax_only else ("/api", "/ajax-api")


def allowed_methods(methods: Iterable[str]) -> str:
    """The Allow header of a path with these methods."""
    return ", ".join(sorted({*methods, "OPTIONS", *(["HEAD"] if "GET" in methods else [])}))
