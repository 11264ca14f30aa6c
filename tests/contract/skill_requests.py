"""Requests to the skill registry."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from tests.contract import skill_archives as archives

ROOT: Final = "/api/3.0/mlflow/skills"
GIT: Final = "https://github.com/acme/skills.git"
DIGEST: Final = "a" * 64
ICON: Final = {"src": "https://8.8.8.8/i.png"}


class Call(NamedTuple):
    method: str
    path: str
    """Below ``ROOT``, percent-encoded, with the query string."""
    content: bytes | None = None
    content_type: str | None = "application/json"

    def label(self) -> str:
        shown = (self.content or b"")[:300].decode("utf-8", "backslashreplace")
        return f"{self.method} {self.path} {self.content_type} {shown}"


def send(method: str, path: str, body: Any = None) -> Call:
    return Call(method, path, None if body is None else json.dumps(body).encode())


def get(path: str) -> Call:
    return Call("GET", path)


def version(skill: str, **fields: Any) -> Call:
    return send("POST", f"/{skill}/versions", {"source": GIT, **fields})


def uploaded(skill: str, content: bytes, **metadata: Any) -> Call:
    return Call(
        "POST", f"/{skill}/versions", archives.upload(content, **metadata), archives.MULTIPART
    )
