"""No name is so long, and no scorer so large, that a list without pages, such as the list of
scorers, exceeds the size of an answer, so that nobody gets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from mlcore.limits.evaluation import scorers
from mlcore.repos.evaluation import scorers as stored
from mlcore.repos.experiments import experiments
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


def test_large_scorers(store: Store) -> None:
    """Fifty of the largest scorers are listed together. One that is stored already, which 0.1.0 or
    an import wrote, stays readable."""
    world = World()
    world.prepare("evaluation")
    experiment_id, path = world.names["experiment"], "/3.0/mlflow/scorers"
    room = scorers.MAX_SERIALIZED_BYTES - len(json.dumps({"instructions": ""}))

    def registered(name: str, size: int) -> tuple[int, Any]:
        text = json.dumps({"instructions": "x" * size})
        fields = {"experiment_id": experiment_id, "name": name, "serialized_scorer": text}
        return world.send("POST", f"{path}/register", fields)

    for number in range(50):
        assert registered(f"judge {number}", room)[0] == 200
    status, body = registered("judge", room + 1)
    assert (status, "at most 65535" in body["message"]) == (400, True)
    before = world.made("GET", f"{path}/list", experiment_id=experiment_id)["scorers"]
    former = stored.find(experiments.get_active(experiment_id, "default").experiment, "judge 0", 1)
    assert former is not None
    large = json.dumps({"instructions": LONG})
    stored.create(former._replace(version=2, serialized_scorer=large))
    listed = world.made("GET", f"{path}/list", experiment_id=experiment_id)["scorers"]
    assert len(before) == len(listed) >= 50
    texts = {each["scorer_name"]: each["serialized_scorer"] for each in listed}
    assert texts["judge 0"] == large
