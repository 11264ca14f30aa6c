"""What only the web UI asks for: GraphQL, and a few calls that have nothing behind them."""

from __future__ import annotations

from mlcore.http import PlainRoute, get, lambda_handler, post
from ui import execution, service
from ui import messages as m

RPCS = (
    get("/mlflow/gateway-proxy", m.GatewayProxy, service.proxy_to_gateway, ajax_only=True),
    post("/mlflow/gateway-proxy", m.GatewayProxy, service.proxy_to_gateway, ajax_only=True),
    get(
        "/mlflow/ui-telemetry",
        m.UiTelemetry,
        service.get_telemetry_settings,
        version="3.0",
        ajax_only=True,
    ),
    post(
        "/mlflow/ui-telemetry",
        m.UiTelemetry,
        service.report_telemetry,
        version="3.0",
        ajax_only=True,
    ),
)
PLAIN_ROUTES = (
    PlainRoute("GET", "/graphql", execution.answer),
    PlainRoute("POST", "/graphql", execution.answer),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)
