"""A write whose answer was lost is sent again: the second one is answered sensibly and changes
nothing. Those of experiments, runs and logged models are in ``test_retries``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mlcore import artifacts
from mlcore.webhooks.environment import webhook_settings
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.route_world import (
    TRACES,
    World,
)
from tests.contract.sealing import seal_here
from tests.contract.write_requests import (
    CASES,
    CLOCK,
    GATEWAY,
    MCP_SERVER,
    ONE,
    SKILL_PATHS,
    SKILLS,
)

DOMAINS = (
    *("registry", "traces", "webhooks", "workspaces", "artifacts", "mcp_servers", "skills"),
    "gateway",
)
READS = {
    "POST /2.0/mlflow/registered-models/get-latest-versions",
    "POST /3.0/mlflow/traces/batchGetInfos",
    "POST /3.0/mlflow/traces/search",
    "POST /3.0/mlflow/traces/metrics",
    "POST /3.0/mlflow/traces/calculate-filter-correlation",
    "POST /2.0/mlflow/webhooks/{webhook_id}/test",  # it calls the receiver, and writes nothing
    "POST /2.0/mlflow/artifacts/presigned-upload-url",
    "POST /2.0/mlflow/artifacts/presigned-download-url",
}


MADE_ANEW = {
    "POST /2.0/mlflow/model-versions/create",
    f"POST {TRACES}",
    f"POST {ONE}/assessments",
    "POST /2.0/mlflow/webhooks",
    f"POST {MCP_SERVER}/endpoints",
    *(f"POST {path}/versions" for path in SKILL_PATHS),
    f"POST {GATEWAY}/budgets/create",
    f"POST {GATEWAY}/guardrails/create",
}
"""What is named by the server alone: a repetition makes another one, as on MLflow's server."""
REFUSED = {f"POST {GATEWAY}/endpoints/create", f"POST {GATEWAY}/endpoints/bindings/create"}
"""What is there already is a BAD_REQUEST, as on MLflow's server."""
REMOVALS = "trace_removal"
"""The type of the items that a deletion of traces leaves for the system tables if there are none:
they expire, and change nothing that a client sees."""
NOTHING_LEFT = {"RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}


def content(store: Store, name: str) -> dict[tuple[str, str], Any]:
    """Every item, without what the write moves each time."""
    moved = CLOCK | ({"assessments", "bytes"} if name.startswith(f"PATCH {ONE}/assess") else set())
    if name.startswith(f"PATCH {MCP_SERVER}/endpoints"):  # with its time of change
        moved |= {"endpoints"}
    if name.endswith("/alerts/{alert_id}/test"):  # announces another message
        moved |= {"evaluations", "event"}
    pages = store.direct.get_paginator("scan").paginate(TableName=store.table)
    return {
        (item["PK"]["S"], item["SK"]["S"]): {
            attribute: value for attribute, value in item.items() if attribute not in moved
        }
        for page in pages
        for item in page["Items"]
        if item["type"]["S"] != REMOVALS
    }


def test_every_write_is_here() -> None:
    written = {
        f"{rpc.method} {rpc.path}"
        for domain in DOMAINS
        for rpc in import_module(f"{domain}.app").RPCS
        if rpc.method != "GET" and "/preview/" not in rpc.path  # the same functions again
    }
    assert written - READS == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_sent_twice(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path))
    artifacts.store.cache_clear()
    webhook_settings.cache_clear()
    seal_here(monkeypatch, tmp_path)
    enable_workspaces(monkeypatch, "other")
    world = World()
    prefixes = {"gateway": GATEWAY, "skills": SKILLS}
    world.prepare(next((domain for domain, prefix in prefixes.items() if prefix in name), ""))
    method, path = name.split()
    first, _ = world.send(method, path, CASES[name])
    assert first in {200, 201, 204} or "mpu/complete" in path
    before = content(store, name)
    second, body = world.send(method, path, CASES[name])
    expected = {*NOTHING_LEFT, "BAD_REQUEST"} if name in REFUSED else NOTHING_LEFT
    assert second == first or body.get("error_code") in expected, body
    after = content(store, name)
    if name in MADE_ANEW:
        assert before.keys() <= after.keys()
    else:
        assert after == before
    artifacts.store.cache_clear()
