"""The routes of all functions."""

from __future__ import annotations

import importlib

from mlcore.http.routes import Route
from tests.arch import project

ROUTES: list[Route] = [
    route
    for domain in project.DOMAINS
    for name in ("RPCS", "PLAIN_ROUTES")
    for route in getattr(importlib.import_module(f"{domain}.app"), name, ())
]
