"""The administration command as its users meet it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from operate.garbage import seconds_of

from .conftest import ROOT, Local, eventually

CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TABLE_NAME"))}


def admin(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "local.admin", *arguments],
        cwd=ROOT,
        env={**CLEAN, **environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def ask(runner: Local, path: str, **fields: Any) -> Any:
    status, body, _ = runner.request(
        "POST", f"/api/2.0/mlflow/{path}", json.dumps(fields), Content_Type="application/json"
    )
    assert status == 200, body
    return json.loads(body)


def logged_run(runner: Local) -> None:
    run = ask(runner, "runs/create", experiment_id="0", start_time=1)["run"]["info"]["run_id"]
    metrics = [{"key": key, "value": 1.5, "timestamp": 1, "step": 0} for key in ("loss", "acc")]
    ask(runner, "runs/log-batch", run_id=run, metrics=metrics)
    ask(runner, "runs/update", run_id=run, status="FINISHED", end_time=2)


def test_what_was_never_indexed_is_named_then_made(product: Any, tmp_path: Path) -> None:
    runner = product("--no-indexer")
    logged_run(runner)
    data = f"--data={tmp_path / 'data'}"

    refused = admin("verify", data)
    assert refused.returncode == 1
    assert "is in use by another runner" in refused.stderr
    # Through the endpoint of the running engine it works all the same.
    endpoint = runner.value("engine")
    beside = admin("verify", AWS_ENDPOINT_URL_DYNAMODB=endpoint)
    assert "behind: missing   RANK#m#loss#" in beside.stdout
    # An engine does not know what its indexer has read, and names of experiments have no markers.
    assert beside.returncode == 1, beside.stderr
    wrong = [line for line in beside.stdout.splitlines() if line.startswith("  missing")]
    assert wrong
    assert all("#experiment#" in line or "E#NAME_REV" in line for line in wrong)

    assert runner.end() == 0
    found = admin("verify", "--experiment=0", data)
    assert found.returncode == 0
    # The folder knows: all of it has still to be read.
    last = found.stdout.splitlines()[-2:]
    assert re.fullmatch(r"[1-9]\d* derived items behind: .*", last[0])
    assert last[1] == "0 derived items wrong"
    named = re.findall(r"missing +(.*)", found.stdout)
    assert sorted(named) == sorted(re.findall(r"missing +(.*)", beside.stdout))
    assert "1 writes on their way, 1 metric batches as they came" in found.stdout
    repaired = admin("reindex", data)
    assert repaired.returncode == 0, repaired.stderr
    assert repaired.stdout.splitlines()[-1].endswith("derived items repaired")
    after = admin("verify", data)
    assert after.returncode == 0, after.stdout
    assert "derived items behind" not in after.stdout
    assert after.stdout.splitlines()[-1] == "0 derived items wrong"


def test_what_the_indexer_followed_is_right(product: Any, tmp_path: Path) -> None:
    runner = product()
    logged_run(runner)
    endpoint = runner.value("engine")

    def followed() -> bool:
        answer = admin("verify", AWS_ENDPOINT_URL_DYNAMODB=endpoint)
        return answer.returncode == 0 and "0 writes on their way" in answer.stdout

    assert eventually(followed)


def test_mistakes_are_explained(tmp_path: Path) -> None:
    absent = admin("verify", f"--data={tmp_path / 'absent'}")
    assert (absent.returncode, absent.stdout) == (1, "")
    assert "there is no folder" in absent.stderr
    (tmp_path / "empty").mkdir()
    empty = admin("reindex", f"--data={tmp_path / 'empty'}")
    assert empty.returncode == 1
    assert "holds no data" in empty.stderr
    assert admin("verify", "--experiment=1", "--all").returncode == 2


def test_an_unknown_experiment_is_a_failure(product: Any, tmp_path: Path) -> None:
    runner = product("--no-indexer")
    answer = admin("verify", "--experiment=17", AWS_ENDPOINT_URL_DYNAMODB=runner.value("engine"))
    assert answer.returncode == 1
    assert "No Experiment with id=17 exists" in answer.stderr


def test_settings_and_garbage_of_a_data_folder(product: Any, tmp_path: Path) -> None:
    data = f"--data={tmp_path / 'data'}"
    runner = product("--no-indexer")
    made = ask(runner, "experiments/create", name="gone")
    run = ask(runner, "runs/create", **made)["run"]["info"]
    path = (
        f"/api/2.0/mlflow-artifacts/artifacts/{made['experiment_id']}/{run['run_id']}/artifacts/f"
    )
    assert runner.request("PUT", path, "text")[0] == 200
    ask(runner, "experiments/delete", **made)
    assert runner.end() == 0
    policy = '{"deleted_runs": "30d"}'
    assert admin("config", "set", "ttl_policy", policy, data).returncode == 0
    assert admin("config", "get", "ttl_policy", data).stdout.strip() == policy
    assert admin("config", "list", data).stdout.strip() == f"ttl_policy {policy}"
    wrong = admin("config", "set", "ttl_policy", '{"deleted_runs": "soon"}', data)
    assert (wrong.returncode, "`<int><unit>`" in wrong.stderr) == (1, True)
    kept = admin("gc", "--older-than", "1d", data)
    assert kept.stdout.strip() == "0 removed, 0 failed"
    gone = admin("gc", data)
    assert gone.stdout.splitlines()[-1] == "1 removed, 0 failed", gone
    assert not list((tmp_path / "data" / "artifacts").rglob("f"))
    runner = product("--no-indexer")
    ask(runner, "experiments/create", name="gone")


def test_durations() -> None:
    assert [seconds_of(text) for text in ("30d", "1d12h", "5m10s")] == [2592000, 129600, 310]
    for text in ("", "soon", "5", "d"):
        with pytest.raises(ValueError, match="no duration"):
            seconds_of(text)
