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


def info() -> dict[str, Any]:
    answered: dict[str, Any] = json.loads(call("GET", "/api/3.0/mlflow/server-info")["body"])
    return answered


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
    assert info["features_enabled"] == {"gateway": True, "scheduled_issue_detection": True}
    assert info["artifacts_presigned_only"] is False
    assert info["tracking_auth"] == ""


def test_where_files_are_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTIFACT_BUCKET", "files")
    assert info()["artifacts_presigned_only"] is True
    monkeypatch.setenv("ARTIFACT_FOLDER", "/files")
    assert info()["artifacts_presigned_only"] is False


def test_a_skill_that_fits_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert info()["skill_content_max_size"] == 26_214_400
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "server")
    assert info()["skill_content_max_size"] == 4_000_000
    monkeypatch.setenv("MLFLOW_SKILL_CONTENT_MAX_DECOMPRESSED_SIZE", "1000")
    assert info()["skill_content_max_size"] == 1000


def test_everything_else_is_mlflows_404() -> None:
    answer = call("POST", "/api/2.0/mlflow/nothing")
    assert answer["statusCode"] == 404
    assert json.loads(answer["body"])["error_code"] == "ENDPOINT_NOT_FOUND"
