"""What only the web UI asks for: GraphQL, and a few calls that have nothing behind them."""

from __future__ import annotations

import functools

from mlcore.http import PlainRoute, lambda_handler
from mlcore.http import get as rpc_get
from mlcore.http import post as rpc_post
from ui import execution, service
from ui import messages as m

get = functools.partial(rpc_get, message=m.Nothing, ajax_only=True)
post = functools.partial(rpc_post, message=m.Nothing, ajax_only=True)

RPCS = (
    get("/mlflow/gateway-proxy", function=service.proxy_to_gateway, policy="requests.anybody"),
    post("/mlflow/gateway-proxy", function=service.proxy_to_gateway, policy="requests.anybody"),
    get(
        "/mlflow/ui-telemetry",
        function=service.get_telemetry_settings,
        version="3.0",
        policy="requests.anybody",
    ),
    post(
        "/mlflow/ui-telemetry",
        function=service.report_telemetry,
        version="3.0",
        policy="requests.anybody",
    ),
    get(
        "/mlflow/assistant/config",
        function=service.get_assistant_config,
        version="3.0",
        policy="requests.anybody",
    ),
    get(
        "/mlflow/assistant/providers",
        function=service.list_assistant_providers,
        version="3.0",
        policy="requests.anybody",
    ),
)
PLAIN_ROUTES = (
    PlainRoute("GET", "/graphql", execution.answer, policy="requests.anybody"),
    PlainRoute("POST", "/graphql", execution.answer, policy="requests.anybody"),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)
