"""Who may ask what only the web UI asks."""

from __future__ import annotations

from mlcore.policies.requests import Policy, Route, anybody

POLICIES: dict[Route, Policy] = {
    # What GraphQL shows is chosen field by field.
    ("GET", "/graphql"): anybody,
    ("POST", "/graphql"): anybody,
    ("GET", "/version"): anybody,
    ("GET", "/2.0/mlflow/gateway-proxy"): anybody,
    ("POST", "/2.0/mlflow/gateway-proxy"): anybody,
    ("GET", "/3.0/mlflow/ui-telemetry"): anybody,
    ("POST", "/3.0/mlflow/ui-telemetry"): anybody,
    ("GET", "/3.0/mlflow/assistant/config"): anybody,
    ("GET", "/3.0/mlflow/assistant/providers"): anybody,
}
