"""Routes of the Lambda function ``catalog``: the catalog of models and MCP servers, under both
versions of its API (``v1`` and ``v1alpha1``); a server's logo has a route in ``v1alpha1`` only."""

from __future__ import annotations

from typing import Final

from catalog import models, registration, servers, sources
from catalog.calls import (
    MODELS_API,
    RESPONSE_STYLE,
    SERVERS_API,
    V1,
    V1ALPHA1,
    Function,
    parse,
    route_function,
)
from mlcore.http import PlainRoute, lambda_handler

_MODEL: Final = "/sources/{source_id}/models/{model_name+}"

_EVERYONE: Final = "shared_rules.anybody"
_MODELS: Final[tuple[tuple[str, str, Function, str, int], ...]] = (
    ("GET", "/sources", sources.list_sources, _EVERYONE, 1),
    ("GET", "/labels", sources.list_labels, _EVERYONE, 1),
    ("GET", "/models", models.list_models, _EVERYONE, 3),
    ("GET", "/models/filter_options", models.filter_options, _EVERYONE, 2),
    ("GET", f"{_MODEL}/artifacts/performance", models.list_performance, _EVERYONE, 3),
    ("GET", f"{_MODEL}/artifacts", models.list_artifacts, _EVERYONE, 3),
    ("GET", _MODEL, models.get_model, _EVERYONE, 3),
    ("POST", f"{_MODEL}:register", registration.register, "catalog.register", 21),
)
_SERVER: Final = "/mcp_servers/{server_id}"
_SERVERS: Final[tuple[tuple[str, str, Function, str, int], ...]] = (
    ("GET", "/mcp_servers", servers.list_servers, _EVERYONE, 2),
    ("GET", "/mcp_servers/filter_options", servers.filter_options, _EVERYONE, 2),
    ("GET", _SERVER, servers.get_server, _EVERYONE, 2),
    ("GET", f"{_SERVER}/tools", servers.list_tools, _EVERYONE, 2),
    ("GET", f"{_SERVER}/tools/{{tool_name}}", servers.get_tool, _EVERYONE, 2),
)

PLAIN_ROUTES: Final = (
    *(
        PlainRoute(
            method,
            f"{api}/{version}{path}",
            registration.parse_registration if function is registration.register else parse,
            route_function(function),
            policy,
            cost=cost,
        )
        for api, table in ((MODELS_API, _MODELS), (SERVERS_API, _SERVERS))
        for version in (V1, V1ALPHA1)
        for method, path, function, policy, cost in table
    ),
    # This route exists in v1alpha1 only.
    PlainRoute(
        "GET",
        f"{SERVERS_API}/{V1ALPHA1}{_SERVER}/logo",
        parse,
        route_function(servers.get_logo),
        _EVERYONE,
        cost=2,
    ),
)

handler = lambda_handler((), PLAIN_ROUTES, RESPONSE_STYLE)
