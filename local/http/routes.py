"""Chooses the route of a request by API Gateway's precedence.

Never looks into the request's body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from local.definitions import RouteDefinition, TemplateError

_VARIABLE = re.compile(r"^\{([A-Za-z0-9._-]+)(\+?)\}$")
_CACHED_PATHS = 4096


class Match(NamedTuple):
    """The chosen route and the values of its path variables."""

    key: str
    function: str
    path_parameters: dict[str, str]
    authorizer: str | None = None


class _Route:
    """One route, taken apart. ``rank`` orders routes from the most specific path to the least."""

    __slots__ = ("authorizer", "function", "key", "method", "rank", "segments")

    def __init__(self, definition: RouteDefinition) -> None:
        self.key = definition.key
        self.function = definition.function
        self.authorizer = definition.authorizer
        method, _, path = definition.key.partition(" ")
        if not path.startswith("/"):
            raise TemplateError(f"route key {definition.key!r} is not METHOD /path")
        self.method = method
        self.segments: list[tuple[str, bool, bool]] = []
        for segment in path[1:].split("/"):
            variable = _VARIABLE.match(segment)
            if variable is None:
                self.segments.append((segment, False, False))
            else:
                self.segments.append((variable.group(1), True, variable.group(2) == "+"))
        if any(greedy for _, _, greedy in self.segments[:-1]):
            raise TemplateError(f"route key {definition.key!r}: only the last variable is greedy")
        # Segment by segment a literal wins over a variable, and a variable over the greedy one; on
        # the same path the named method wins over ANY.
        self.rank = (
            tuple(2 if greedy else int(variable) for _, variable, greedy in self.segments),
            method == "ANY",
        )

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """The path variables, or None when the path is another one."""
        values: dict[str, str] = {}
        for position, (name, variable, greedy) in enumerate(self.segments):
            if greedy:
                rest = "/".join(segments[position:])
                if not rest:
                    return None
                values[name] = rest
                return values
            if position >= len(segments):
                return None
            if variable:
                if not segments[position]:
                    return None
                values[name] = segments[position]
            elif segments[position] != name:
                return None
        return values if len(segments) == len(self.segments) else None


class Router:
    """All routes of the API.

    A request takes the most specific path that has its method; ``$default`` is the last.
    """

    def __init__(self, definitions: Iterable[RouteDefinition]) -> None:
        self._default: Match | None = None
        self._routes: list[_Route] = []
        keys: set[str] = set()
        for definition in definitions:
            if definition.key in keys:
                raise TemplateError(f"route key {definition.key!r} is declared twice")
            keys.add(definition.key)
            if definition.key == "$default":
                self._default = Match("$default", definition.function, {}, definition.authorizer)
            else:
                self._routes.append(_Route(definition))
        self._routes.sort(key=lambda route: route.rank)
        self._cache: dict[tuple[str, str], Match | None] = {}

    def match(self, method: str, path: str) -> Match | None:
        """The route of a request, or None where API Gateway answers 404.

        The path is already percent-decoded.
        """
        try:
            return self._cache[method, path]
        except KeyError:
            pass
        found = self._find(method, path)
        if len(self._cache) >= _CACHED_PATHS:
            self._cache.clear()
        self._cache[method, path] = found
        return found

    def _find(self, method: str, path: str) -> Match | None:
        segments = path.removeprefix("/").split("/")
        for route in self._routes:
            if route.method not in {method, "ANY"}:
                continue
            values = route.match(segments)
            if values is not None:
                return Match(route.key, route.function, values, route.authorizer)
        return self._default
