"""The server's own endpoints, and paths that lead nowhere."""

from __future__ import annotations

import pytest

from tests.differential.pair import Pair
from tests.differential.rest import Call

pytestmark = pytest.mark.e2e


def test_server_endpoints_and_unknown_routes(both: Pair) -> None:
    both.send_all(
        [
            Call("GET", "/health"),
            Call("GET", "/version"),
            *(
                Call(method, path)
                for method in ("GET", "POST")
                for path in (
                    "/api/2.0/mlflow/nonsense",
                    "/ajax-api/2.0/mlflow/users/current",
                    "/api/9.9/x",
                )
            ),
            Call("POST", "/api/2.0/mlflow/runs/get", {}),
            Call("PUT", "/api/2.0/mlflow/runs/create", {}),
            Call("DELETE", "/api/2.0/mlflow/runs/delete", {}),
            Call("GET", "/ajax-api/2.0/mlflow/experiments/get", query={"experiment_id": "0"}),
        ]
    )
