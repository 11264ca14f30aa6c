"""No name is so long that a list without pages, such as the list of scorers, exceeds the size of an
answer, so that nobody gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.contract.conftest import Store
from tests.contract.route_requests import REQUESTS
from tests.contract.route_world import World
from tests.contract.sealing import seal_here

GATEWAY: Final = "/3.0/mlflow/gateway"
FIELDS: Final = {
    "/3.0/mlflow/scorers/register": ("name",),
    f"{GATEWAY}/secrets/create": ("secret_name", "provider", "auth_config"),
    f"{GATEWAY}/secrets/update": ("auth_config",),
    f"{GATEWAY}/model-definitions/create": ("name", "provider", "model_name"),
    f"{GATEWAY}/model-definitions/update": ("name", "provider", "model_name"),
}
LONG: Final = "x" * 300_000


def test_long_names(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal_here(monkeypatch, tmp_path)
    world = World()
    world.prepare("gateway")
    for path, fields in FIELDS.items():
        for field in fields:
            long = {"region": LONG} if field == "auth_config" else LONG
            status, body = world.send("POST", path, {**REQUESTS[f"POST {path}"], field: long})
            assert status == 400, (path, field)
            assert "300" in body["message"] or "maximum length" in body["message"]
