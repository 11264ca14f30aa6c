"""A second deployment reaches callers: those who call meanwhile see no failure, and the new version
reads what the old one wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rehearsal import aliases, traffic
from tests.rehearsal.changed_builds import changed
from tests.rehearsal.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SENT = ('"nosniff"', '"nosniff, nosniff"')
"""A header of every answer, as the layer has it and as a changed layer sends it."""


def test_a_changed_layer_and_a_changed_parameter(stack: Stack, tmp_path: Path) -> None:
    experiment = stack.ask("POST", "experiments/create", name="before the upgrade")["experiment_id"]
    run_id = stack.ask("POST", "runs/create", experiment_id=experiment)["run"]["info"]["run_id"]
    stack.ask("POST", "runs/log-metric", run_id=run_id, key="loss", value=0.5, timestamp=1)
    before = aliases.published(stack)
    assert not aliases.wrong(before)
    build = changed(stack.build, tmp_path, "CoreLayer/python/mlcore/http/security.py", *SENT)
    with traffic.running(stack, run_id) as seen:
        stack.deploy(build, DefaultPermission="USE")
    assert not seen.failures
    assert set(seen.statuses) == {200}
    after = aliases.published(stack)
    assert not aliases.wrong(after)
    for name, function in after.items():
        assert function.version > before[name].version, name
        assert function.configuration["Environment"]["Variables"]["DEFAULT_PERMISSION"] == "USE", (
            name
        )
        assert function.configuration["Layers"] != before[name].configuration["Layers"], name
    status, body, headers = stack.call("GET", f"/api/2.0/mlflow/runs/get?run_id={run_id}")
    assert (status, headers["x-content-type-options"]) == (200, SENT[1].strip('"'))
    metrics = {metric["key"]: metric["value"] for metric in body["run"]["data"]["metrics"]}
    assert metrics["loss"] == 0.5
