"""Bodies that MLflow's MCP registry refuses, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.mcp_requests import ICON, send, server_body
from tests.differential.pair import Pair

pytestmark = pytest.mark.e2e


UNFIT: tuple[dict[str, Any], ...] = (
    *({"tools": 5}, {"tools": [5]}, {"tools": [{}]}, {"status": None}),
    *({"tools": [{"name": "x"}] * 1001}, {"source": 5}, {"connect_options": []}),
    *({"connect_options": {"a": value}} for value in (5, None, {"hidden": "x"})),
    *({"connect_options": {"a": {"hidden": value}}} for value in (2, [], None, 1.0)),
    {"tools": [{"name": 5, "inputSchema": [], "execution": "x", "icons": [{}]}]},
)
BODIES: tuple[tuple[str, str, Any], ...] = (
    *(("POST", "", body) for body in ([], "x", 5, {}, {"name": 5}, {"name": None})),
    *(
        ("POST", "", {"name": "com.ex/icons", "icons": icons})
        for icons in (
            *("x", [5], [{}], [{"src": 5, "sizes": "x", "theme": 5}], [ICON] * 101),
            *([{"src": "http://8.8.8.8"}], [{"src": " "}], [{"src": "https://"}]),
            *([{"src": "https://a:b@8.8.8.8"}], [{"src": "https://127.0.0.1"}]),
            *([{"src": "https://127.1"}], [{"src": "https://[::1]/"}], [{"src": "ftp:x"}]),
            *([{**ICON, "mimeType": "text/css"}], [{**ICON, "mimeType": "image/"}]),
            *([{**ICON, "mimeType": 5}], [{"mimeType": "x"}], [{"src": "https://[x"}]),
        )
    ),
    *(("PATCH", "/com.ex/ab", body) for body in ([], {"icons": 5}, {"description": 5})),
    *(
        ("POST", "/com.ex/ab/versions", body)
        for body in (
            *({}, {"server_json": 5}, {"server_json": None}, {"server_json": {}}),
            *({"server_json": {"server": 5}}, {"server_json": {"server": {"name": "x"}}}),
            *({**server_body("com.ex/ab", "1.0.0"), **more} for more in UNFIT),
            *(
                {"server_json": {**server_body("com.ex/ab", "1.0.0")["server_json"], **more}}
                for more in (
                    {"packages": [{"registryType": 5, "environmentVariables": [{"isSecret": 5}]}]},
                    *({"packages": 5}, {"remotes": [{"type": 5}]}, {"repository": {}}),
                    *({"meta": 5}, {"_meta": 5}, {"meta": {}, "_meta": {"a": 1}, "version": "x"}),
                    *({"icons": [{"src": "x"}]}, {"title": 5, "websiteUrl": []}),
                )
            ),
        )
    ),
    *(("PATCH", "/com.ex/ab/versions/1.0.0", body) for body in ([], {"status": 5}, {"tools": 5})),
    *(("POST", f"/com.ex/ab/{what}", {}) for what in ("tags", "aliases", "endpoints")),
    ("POST", "/com.ex/ab/versions/1.0.0/tags", {"key": 5}),
    ("POST", "/com.ex/ab/endpoints", {"url": 5, "server_alias": 5, "transport_type": None}),
    ("PATCH", "/com.ex/ab/endpoints/x", {"url": 5}),
)


def test_refused_bodies(both: Pair) -> None:
    both.send_all([send(*parts) for parts in BODIES])
    both.send_all(
        [
            send("POST", "", raw=b"no JSON"),
            send("POST", "", raw=b'{"name": "com.ex/ab"} x'),
            send("POST", "", raw=b'{"name":'),
            send("POST", "", raw=b""),
            send("POST", "", raw=b"null"),
            send("POST", "", raw=b'{"name": "com.ex/type"}', content_type="text/plain"),
            send("POST", "", raw=b'{"name": "x"}', content_type="application/x+json; charset=u"),
        ]
    )
