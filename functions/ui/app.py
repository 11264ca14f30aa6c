"""The routes that only the web UI calls: GraphQL, and features that this server lacks."""

from __future__ import annotations

import functools

from mlcore.http import PlainRoute, decoded, lambda_handler
from mlcore.http import get as rpc_get
from mlcore.http import post as rpc_post
from ui import absent_features
from ui import messages as m
from ui.graphql import execution

get = functools.partial(rpc_get, message=m.Nothing, ajax_only=True)
post = functools.partial(rpc_post, message=m.Nothing, ajax_only=True)

RPCS = (
    get(
        "/mlflow/gateway-proxy",
        function=absent_features.proxy_to_gateway,
        policy="shared_rules.anybody",
        cost=0,
        deviation="The route `gateway-proxy` answers like an MLflow server without "
        "MLFLOW_DEPLOYMENTS_TARGET.",
    ),
    post(
        "/mlflow/gateway-proxy",
        function=absent_features.proxy_to_gateway,
        policy="shared_rules.anybody",
        cost=0,
        deviation="The route `gateway-proxy` answers like an MLflow server without "
        "MLFLOW_DEPLOYMENTS_TARGET.",
    ),
    get(
        "/mlflow/ui-telemetry",
        function=absent_features.get_telemetry_settings,
        version="3.0",
        policy="shared_rules.anybody",
        since="3.8",
        cost=0,
        deviation="Telemetry is off.",
    ),
    post(
        "/mlflow/ui-telemetry",
        function=absent_features.report_telemetry,
        version="3.0",
        policy="shared_rules.anybody",
        since="3.8",
        cost=0,
        deviation="Telemetry is off.",
        reads=True,
    ),
    get(
        "/mlflow/assistant/config",
        function=absent_features.get_assistant_config,
        version="3.0",
        policy="shared_rules.anybody",
        since="3.9",
        cost=0,
        deviation="There is no assistant.",
    ),
    get(
        "/mlflow/assistant/providers",
        function=absent_features.list_assistant_providers,
        version="3.0",
        policy="shared_rules.anybody",
        since="3.15",
        cost=0,
        deviation="There is no assistant.",
    ),
)
PLAIN_ROUTES = (
    PlainRoute(
        "GET",
        "/graphql",
        decoded(m.GraphQlRequest),
        execution.answer,
        policy="shared_rules.anybody",
        since="2.11",
        deviation="GraphQL queries may use the directives @include and @skip; a query that cannot "
        "be parsed gets 200 with errors, not 500.",
    ),
    PlainRoute(
        "POST",
        "/graphql",
        decoded(m.GraphQlRequest),
        execution.answer,
        policy="shared_rules.anybody",
        reads=True,
        since="2.11",
        deviation="GraphQL queries may use the directives @include and @skip; a query that cannot "
        "be parsed gets 200 with errors, not 500.",
    ),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)
