"""Chooses the route of a request by API Gateway's precedence, from method and path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from local.template_definitions import RouteDefinition, TemplateError

_VARIABLE = re.compile(r"^\{([A-Za-z0-9._-]+)(\+?)\}$")


class Match(NamedTuple):
    """The route that was chosen for a request, and the values of its path variables."""

    key: str
    function: str
    path_parameters: dict[str, str]
    authorizer: str | None = None


class _Leaf(NamedTuple):
    """A route of the template, stored at the tree node where its path ends."""

    definition: RouteDefinition
    variables: tuple[str, ...]
    """The names of its path variables, from left to right."""


class _Node:
    """A node of the tree: the children for literal segments and for a variable, and by method the
    routes that end here or in a greedy variable.
    """

    __slots__ = ("ending", "greedy", "literal", "variable")

    def __init__(self) -> None:
        self.literal: dict[str, _Node] = {}
        self.variable: _Node | None = None
        self.greedy: dict[str, _Leaf] = {}
        self.ending: dict[str, _Leaf] = {}

    def find(
        self, method: str, segments: list[str], at: int, values: tuple[str, ...]
    ) -> tuple[_Leaf, tuple[str, ...]] | None:
        """Returns the most specific route for the segments from ``at`` on, with the values of its
        variables appended to ``values``. A literal wins over a variable, and a variable over a
        greedy one; at the same path the named method wins over ANY."""
        if at == len(segments):
            leaf = _of(method, self.ending)
            return leaf and (leaf, values)
        segment = segments[at]
        node, route = self.literal.get(segment), None
        if node:
            route = node.find(method, segments, at + 1, values)
        if not route and segment and self.variable:
            route = self.variable.find(method, segments, at + 1, (*values, segment))
        if route or not self.greedy:
            return route
        leaf, rest = _of(method, self.greedy), "/".join(segments[at:])
        return (leaf, (*values, rest)) if leaf and rest else None


def _of(method: str, leaves: dict[str, _Leaf]) -> _Leaf | None:
    return leaves.get(method) or leaves.get("ANY")


class Router:
    """All routes of the API as a tree of path segments.
    A request gets the most specific path that has its method; ``$default`` comes last.
    """

    def __init__(self, definitions: Iterable[RouteDefinition]) -> None:
        self._default: Match | None = None
        self._root = _Node()
        keys: set[str] = set()
        for definition in definitions:
            if definition.key in keys:
                raise TemplateError(f"route key {definition.key!r} is declared twice")
            keys.add(definition.key)
            if definition.key == "$default":
                self._default = Match("$default", definition.function, {}, definition.authorizer)
            else:
                self._add(definition)

    def _add(self, definition: RouteDefinition) -> None:
        method, _, path = definition.key.partition(" ")
        if not path.startswith("/"):
            raise TemplateError(f"route key {definition.key!r} is not METHOD /path")
        node, names, greedy = self._root, [], False
        for segment in path[1:].split("/"):
            if greedy:
                raise TemplateError(
                    f"route key {definition.key!r}: only the last variable is greedy"
                )
            variable = _VARIABLE.match(segment)
            if variable is None:
                node = node.literal.setdefault(segment, _Node())
                continue
            names.append(variable.group(1))
            greedy = variable.group(2) == "+"
            if not greedy:
                node.variable = node.variable or _Node()
                node = node.variable
        leaves = node.greedy if greedy else node.ending
        leaves.setdefault(method, _Leaf(definition, tuple(names)))

    def match(self, method: str, path: str) -> Match | None:
        """Returns the route of a request, with the values of its path variables; None if there is
        none, for which API Gateway answers 404. ``path`` is percent-decoded.
        """
        leaf_and_values = self._root.find(method, path.removeprefix("/").split("/"), 0, ())
        if leaf_and_values is None:
            return self._default
        leaf, values = leaf_and_values
        route = leaf.definition
        given = dict(zip(leaf.variables, values, strict=True))
        return Match(route.key, route.function, given, route.authorizer)
