"""Which requests of web pages are refused, and what responses tell browsers."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore.http import PlainRoute, Response, lambda_handler, nothing, post
from mlcore.wire import Message

RPC = "/api/2.0/things/create"
HOST = "mlflow.example.com"
EVIL = "https://evil.example"
ORIGINS = "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS"


def ask(method: str = "POST", path: str = RPC, **headers: str) -> dict[str, Any]:
    """Headers by their names with underscores. The environment is read when the handler is
    made."""
    handler = lambda_handler(
        (post("/things/create", Message, lambda *_: {}, "shared_rules.anybody"),),
        (
            PlainRoute(
                "GET", "/health", nothing, lambda _, __: Response(200, "OK"), "shared_rules.public"
            ),
            PlainRoute(
                "POST",
                "/outside",
                nothing,
                lambda _, __: Response(200, "OK"),
                "shared_rules.public",
            ),
        ),
    )
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return handler(
        {
            "requestContext": {"http": {"method": method}},
            "rawPath": path,
            "headers": {"host": HOST, "content-type": "application/json", **named},
            "body": "{}",
        },
        None,
    )


def status(method: str = "POST", path: str = RPC, **headers: str) -> int:
    number: int = ask(method, path, **headers)["statusCode"]
    return number


def test_a_request_without_origin_is_no_web_page() -> None:
    assert status() == 200


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "https://LOCALHOST", "http://127.0.0.1:5", "http://[::1]:80"],
)
def test_pages_of_this_machine_are_trusted(origin: str) -> None:
    answer = ask(origin=origin)
    assert answer["statusCode"] == 200
    shared = answer["headers"].get("access-control-allow-origin")
    assert shared == (origin if origin.startswith("http://") else None)


@pytest.mark.parametrize(
    "origin",
    [EVIL, "null", "x", "http://localhost.evil.example", "file://", "http://[::1",
     f"https://{HOST}.evil.example", f"https://x@{HOST}", f"https://{HOST}:8443", "http://"],
)  # fmt: skip
def test_other_pages_change_nothing(origin: str) -> None:
    answer = ask(origin=origin)
    assert (answer["statusCode"], answer["body"]) == (403, "Cross-origin request blocked")
    assert answer["headers"]["content-type"].startswith("text/plain")
    assert "access-control-allow-origin" not in answer["headers"]
    assert status(path="/ajax-api/2.0/nothing", origin=origin) == 403


def test_what_changes_no_state_is_not_refused() -> None:
    assert status("GET", "/health", origin=EVIL) == 200
    assert status("OPTIONS", origin=EVIL) == 204
    assert status(path="/outside", origin=EVIL) == 200


def test_our_own_pages_are_trusted() -> None:
    assert status(origin=f"https://{HOST}") == 200
    assert status(origin=f"https://{HOST.upper()}") == 200
    # Behind a CDN that sends its own Host header.
    assert status(origin="https://cdn.example", sec_fetch_site="same-origin") == 200
    assert status(origin="https://cdn.example", sec_fetch_site="same-site") == 403
    assert status(origin=f"http://{HOST}", sec_fetch_site="cross-site") == 403
    assert status(origin="https://", host="") == 403


def test_listed_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ORIGINS, "https://ui.example, https://*.team.example")
    assert status(origin="https://ui.example") == 200
    assert status(origin="https://a.team.example", sec_fetch_site="cross-site") == 200
    assert status(origin="http://ui.example") == 403
    answer = ask("GET", "/health", origin="https://ui.example")
    assert answer["headers"]["access-control-allow-credentials"] == "true"
    assert answer["headers"]["vary"] == "Origin"


def test_any_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ORIGINS, "*")
    answer = ask(origin=EVIL)
    assert answer["statusCode"] == 200
    assert answer["headers"]["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer["headers"]


def test_preflights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ORIGINS, "https://ui.example")
    wanted = {"access_control_request_method": "POST", "access_control_request_headers": "x-a, x-b"}
    answer = ask("OPTIONS", origin="https://ui.example", **wanted)
    assert (answer["statusCode"], answer["body"]) == (200, "OK")
    assert answer["headers"]["access-control-allow-origin"] == "https://ui.example"
    assert answer["headers"]["access-control-allow-headers"] == "x-a, x-b"
    assert "POST" in answer["headers"]["access-control-allow-methods"]
    answer = ask("OPTIONS", origin=EVIL, **wanted)
    assert (answer["statusCode"], answer["body"]) == (400, "Disallowed CORS origin")


def test_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert status(host="rebound.example") == 200
    monkeypatch.setenv("MLFLOW_SERVER_ALLOWED_HOSTS", f"localhost,{HOST},*.team.example")
    assert status(host=HOST) == status(host="a.team.example") == 200
    assert status("GET", "/health", host="rebound.example") == 200
    answer = ask(host="rebound.example")
    assert answer["statusCode"] == status(host="") == 403
    assert answer["body"] == "Invalid Host header - possible DNS rebinding attack detected"
    monkeypatch.setenv("MLFLOW_SERVER_ALLOWED_HOSTS", "*")
    assert status(host="rebound.example") == 200


def test_headers_of_every_response(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (RPC, "/health", "/nothing"):
        headers = ask(path=path)["headers"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "SAMEORIGIN"
    monkeypatch.setenv("MLFLOW_SERVER_X_FRAME_OPTIONS", "deny")
    assert ask()["headers"]["x-frame-options"] == "DENY"
    monkeypatch.setenv("MLFLOW_SERVER_X_FRAME_OPTIONS", "NONE")
    assert "x-frame-options" not in ask()["headers"]


def test_all_of_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE", "true")
    answer = ask(origin=EVIL)
    assert answer["statusCode"] == 200
    assert answer["headers"] == {"content-type": "application/json"}
