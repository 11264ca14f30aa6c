"""The server's own endpoints, through its handler."""

import json
from typing import Any

import pytest

from server_info.app import handler


def call(method: str, path: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    return handler(
        {
            "requestContext": {"http": {"method": method}, "requestId": "r"},
            "rawPath": path,
            "headers": headers or {},
        },
        None,
    )


@pytest.mark.parametrize(("path", "text"), [("/health", "OK"), ("/version", "3.18.0")])
def test_texts(path: str, text: str) -> None:
    answer = call("GET", path)
    assert (answer["statusCode"], answer["body"]) == (200, text)
    assert answer["headers"]["content-type"].startswith("text/plain")


@pytest.mark.parametrize("prefix", ["/api", "/ajax-api"])
def test_server_info(prefix: str) -> None:
    info = json.loads(call("GET", f"{prefix}/3.0/mlflow/server-info")["body"])
    assert info["store_type"] == "SqlStore"
    assert info["workspaces_enabled"] is False
    assert info["features_enabled"] == {"gateway": True, "scheduled_issue_detection": False}
    assert info["artifacts_presigned_only"] is False
    assert info["tracking_auth"] == ""


def test_everything_else_is_mlflows_404() -> None:
    answer = call("POST", "/api/2.0/mlflow/nothing")
    assert answer["statusCode"] == 404
    assert json.loads(answer["body"])["error_code"] == "ENDPOINT_NOT_FOUND"
