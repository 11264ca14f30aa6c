"""Routes of the Lambda function ``demo``: the UI's "Start demo" creates sample data, and an
administrator deletes it."""

from __future__ import annotations

from demo import service
from mlcore.http import PlainRoute, lambda_handler, nothing

RPCS = ()
PLAIN_ROUTES = (
    PlainRoute(
        "POST",
        "/ajax-api/3.0/mlflow/demo/generate",
        service.parse_features,
        service.generate,
        "shared_rules.anybody",
        since="3.10",
        cost=0,
    ),
    PlainRoute(
        "POST",
        "/ajax-api/3.0/mlflow/demo/delete",
        nothing,
        service.delete,
        "shared_rules.administrators",
        since="3.10",
        cost=0,
    ),
)

handler = lambda_handler(RPCS, PLAIN_ROUTES)
