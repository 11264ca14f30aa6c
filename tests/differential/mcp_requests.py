"""Requests to the registry of MCP servers."""

from __future__ import annotations

from typing import Any

from tests.differential.rest import Call

ROOT = "/api/3.0/mlflow/mcp-servers"


ICON = {"src": "https://8.8.8.8/icon.png"}


def send(method: str, path: str, body: Any = None, **more: Any) -> Call:
    return Call(method, ROOT + path, body, **more)


def read(path: str, **query: Any) -> Call:
    return Call("GET", ROOT + path, query=query or None)


def create(server: str, **more: Any) -> Call:
    return send("POST", "", {"name": server, **more})


def version(server: str, number: str, status: str | None = None, **more: Any) -> Call:
    body: dict[str, Any] = {"server_json": {"name": server, "version": number, **more}}
    if status is not None:
        body["status"] = status
    return send("POST", f"/{server}/versions", body)


def status(server: str, number: str, following: Any) -> Call:
    return send("PATCH", f"/{server}/versions/{number}", {"status": following})


def endpoint(server: str, saved: str = "endpoint", **body: Any) -> Call:
    return send("POST", f"/{server}/endpoints", {"url": "https://a", **body}, saves={saved: "id"})


def server_body(server: str, number: Any) -> dict[str, Any]:
    return {"server_json": {"name": server, "version": number}}
