"""The routes for health, version and capabilities. The Lambda function ``server_info``
also gets all requests to unknown paths, and answers 404."""

from __future__ import annotations

from mlcore.http import PlainRoute, get, lambda_handler, nothing
from server_info import messages as m
from server_info import service

RPCS = (
    get(
        "/mlflow/server-info",
        m.GetServerInfo,
        service.get_server_info,
        "shared_rules.public",
        version="3.0",
        since="3.10",
        cost=0,
    ),
)
PLAIN_ROUTES = (
    PlainRoute("GET", "/health", nothing, service.health, "shared_rules.public", cost=0),
    PlainRoute("GET", "/version", nothing, service.version, "shared_rules.anybody", cost=0),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)
