"""Compares what two versions of MLflow offer, and what this product serves of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

from mlcore.http import Rpc
from mlcore.http.routes import Route
from tests.engines import ROOT
from tests.parity.known import reason

Surfaces = Mapping[str, Mapping[str, str]]


class Difference(NamedTuple):
    surface: str
    kind: str
    """``new``, ``changed``, ``gone`` (against the version that the product follows) or ``lacking``
    (of this product)."""
    name: str
    detail: str
    reason: str
    """Why it needs no counterpart; empty if nobody has explained it."""


def served() -> set[str]:
    """``METHOD path`` of each route of this product, with nameless variables."""
    return {
        f"{route.method} {prefix}{re.sub(r'{[^}]*}', '{}', route.path)}"
        for domain in sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
        for route in _routes(domain)
        for prefix in _prefixes(route)
    }


def _routes(domain: str) -> tuple[Route, ...]:
    app = import_module(f"{domain}.app")
    return (*getattr(app, "RPCS", ()), *getattr(app, "PLAIN_ROUTES", ()))


def _prefixes(route: Route) -> tuple[str, ...]:
    if not isinstance(route, Rpc):
        return ("",)
    return ("/ajax-api",) if route.ajax_only else ("/api", "/ajax-api")


def lacking(routes: Mapping[str, str]) -> list[Difference]:
    """Returns the routes of a version that this product does not serve. A route ``* path`` is one
    whose methods are not known; any method of ours serves it."""
    ours = served()
    ours |= {f"* {route.partition(' ')[2]}" for route in ours} | {"* /"}
    return [
        Difference("routes", "lacking", route, "", reason("routes", route))
        for route in sorted(set(routes) - ours)
    ]


def between(followed: Surfaces, other: Surfaces) -> list[Difference]:
    """Returns how another version differs from the one that the product follows. Only what is new
    or changed in it needs an explanation."""
    results = []
    for surface, names in other.items():
        before = followed.get(surface, {})
        for name in sorted({*before, *names}):
            if name not in before:
                kind, detail = "new", names[name]
            elif name not in names:
                kind, detail = "gone", before[name]
            elif names[name] != before[name]:
                kind, detail = "changed", f"{before[name]} → {names[name]}"
            else:
                continue
            results.append(Difference(surface, kind, name, detail, reason(surface, name)))
    return results
