"""The administration command as its users meet it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.data_folder import DataFolder
from operate import source_address
from operate.doctor.steps import STEPS
from operate.module_loading import CannotRun
from operate.purge import parse_duration

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

    # Beside the running runner, which the folder names or the environment.
    beside = admin("verify", AWS_ENDPOINT_URL_DYNAMODB=runner.value("table"))
    by_folder = admin("verify", data)
    assert (by_folder.stdout, by_folder.stderr) == (beside.stdout, "")
    assert "behind: missing   RANK#m#loss#" in beside.stdout
    # A store does not know what its indexer has read, and names of experiments have no markers.
    assert beside.returncode == 1, beside.stderr
    wrong = [line for line in beside.stdout.splitlines() if line.startswith("  missing")]
    assert wrong
    assert all("#experiment#" in line or "E#NAME_REV" in line for line in wrong)

    assert runner.end() == 0
    verified = admin("verify", "--experiment=0", data)
    assert verified.returncode == 0
    # The folder knows: all of it has still to be read.
    last = verified.stdout.splitlines()[-2:]
    assert re.fullmatch(r"[1-9]\d* derived items lag: .*", last[0])
    assert last[1] == "0 derived items wrong"
    named = re.findall(r"missing +(.*)", verified.stdout)
    assert sorted(named) == sorted(re.findall(r"missing +(.*)", beside.stdout))
    assert "1 writes on their way, 1 metric batches as they came" in verified.stdout
    repaired = admin("reindex", data)
    assert repaired.returncode == 0, repaired.stderr
    explained, counted = repaired.stdout.splitlines()[-2:]
    assert "items that only lagged" in explained
    assert counted.endswith("derived items repaired")
    after = admin("verify", data)
    assert after.returncode == 0, after.stdout
    assert "derived items behind" not in after.stdout
    assert after.stdout.splitlines()[-1] == "0 derived items wrong"


def test_what_the_indexer_followed_is_right(product: Any, tmp_path: Path) -> None:
    runner = product()
    logged_run(runner)
    endpoint = runner.value("table")

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


def test_what_is_no_source_is_not_imported(tmp_path: Path) -> None:
    for source, words in (
        (f"sqlite:///{tmp_path}/x.db", "there is no file"),
        ("old:5000", "an address such as http://old:5000"),
        ("file:///absent/mlruns", "an address such as http://old:5000"),
        ("oracle://host/db", "does not start"),
    ):
        refused = admin("import", f"--from={source}", f"--data={tmp_path / 'data'}")
        assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
        assert words in refused.stderr
    files = admin("import", "--from=http://127.0.0.1:9", f"--artifacts={tmp_path}")
    assert "--artifacts belongs to" in files.stderr
    assert not (tmp_path / "data").exists()


def test_without_mlflow_data_of_its_server_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_address, "find_spec", lambda name: None)
    (tmp_path / "mlruns").mkdir()
    for source in ("postgresql+psycopg2://u@host/db", str(tmp_path / "mlruns")):
        with pytest.raises(CannotRun) as refused, source_address.served(source, None):
            pass
        assert f"mlflow server --port 5001 --backend-store-uri '{source}'" in str(refused.value)
        assert "make example" in str(refused.value)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("postgresql://u:s3cret@h/db", "postgresql://u:***@h/db"),
        ("mysql+pymysql://u:s3cret/@:?@h:1/db", "mysql+pymysql://u:***@h:1/db"),
        ("mysql://h/db?user=u&password=s3cret&a=1", "mysql://h/db?user=u&password=***&a=1"),
        ("https://:s3cret@h", "https://:***@h"),
        ("http://h:5000/a", "http://h:5000/a"),
        ("sqlite:///folder/mlflow.db", "sqlite:///folder/mlflow.db"),
    ],
)
def test_a_message_about_a_source_shows_no_password(
    source: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source_address.without_password(source) == shown
    monkeypatch.setattr(source_address, "find_spec", lambda name: None)
    if not source.startswith(("http", "sqlite")):
        with pytest.raises(CannotRun) as refused, source_address.served(source, None):
            pass
        assert "s3cret" not in str(refused.value)
    with pytest.raises(CannotRun) as refused:
        source_address.check(f"ftp+{source}")
    assert "s3cret" not in str(refused.value)


def test_a_kubeflow_registry_is_known_by_its_scheme_in_any_case(tmp_path: Path) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for scheme in ("kubeflow", "KUBEFLOW", "KubeFlow"):
            with source_address.served(f"{scheme}:{url}", None) as source:
                assert source == (url, None, True)
            with pytest.raises(CannotRun):  # an export reads no registry
                source_address.check(f"{scheme}:{url}")
        with source_address.served(url, None) as source:
            assert source == (url, None, False)
        refused = admin("import", f"--from=KUBEFLOW:{url}", f"--data={tmp_path / 'data'}")
        server.shutdown()
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
    assert {path.startswith("/api/model_registry/v1alpha3/") for path in asked} == {True}


def test_a_journal_is_not_named_by_a_password(tmp_path: Path) -> None:
    answer = admin("import", "--from=http://u:s3cret@127.0.0.1:1", f"--data={tmp_path / 'data'}")
    assert answer.returncode == 1
    names = [path.name for path in tmp_path.rglob("*")]
    assert [name for name in names if "s3cret" in name] == []


def test_a_locale_without_utf8_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "ü 日本"
    locale = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    answer = admin("verify", f"--data={folder}", **locale)
    assert (answer.returncode, str(folder) in answer.stderr) == (1, True)


def test_an_export_that_cannot_run_leaves_no_folder(tmp_path: Path) -> None:
    files = tmp_path / "files"
    target = (f"--to={tmp_path / 'x.db'}", f"--artifacts={files}")
    answer = admin("export", *target, f"--data={tmp_path / 'absent'}")
    assert (answer.returncode, "there is no folder" in answer.stderr) == (1, True)
    assert not files.exists()


def test_files_in_a_folder_that_is_missing_are_noticed(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    database = tmp_path / "x.db"
    database.touch()
    with (
        pytest.raises(CannotRun, match="there is no folder"),
        source_address.served(f"sqlite:///{database}", missing),
    ):
        pass


def test_messages_begin_with_the_command_that_the_user_typed(tmp_path: Path) -> None:
    missing = f"--data={tmp_path / 'missing'}"
    assert admin("config", "list", missing).stderr.startswith("local.admin: there is no folder")
    installed = admin("config", "list", missing, MLFLOW_SERVERLESS_PROGRAM="mlflow-serverless")
    assert installed.stderr.startswith("mlflow-serverless: there is no folder")


def test_the_checkup_finds_the_runner_of_a_folder(product: Any, tmp_path: Path) -> None:
    data = f"--data={tmp_path / 'data'}"
    others = [f"--without={step.name}" for step in STEPS if step.name not in ("server", "runs")]
    runner = product()
    checked = admin("doctor", data, *others)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert runner.end() == 0
    nobody = admin("doctor", data)
    assert (nobody.returncode, "name a server with --url" in nobody.stderr) == (1, True)


def test_an_unknown_experiment_is_a_failure(product: Any, tmp_path: Path) -> None:
    runner = product("--no-indexer")
    answer = admin("verify", "--experiment=17", AWS_ENDPOINT_URL_DYNAMODB=runner.value("table"))
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


def test_commands_find_the_runner_of_a_folder(product: Any, tmp_path: Path) -> None:
    data = f"--data={tmp_path / 'data'}"
    runner = product()
    logged_run(runner)
    policy = '{"deleted_runs": "30d"}'
    assert admin("config", "set", "ttl_policy", policy, data).returncode == 0
    address = "/api/3.0/mlflow-serverless/config/ttl_policy"
    assert json.loads(runner.request("GET", address)[1])["value"] == json.loads(policy)
    made = ask(runner, "runs/create", experiment_id="0")["run"]["info"]["run_id"]
    path = f"/api/2.0/mlflow-artifacts/artifacts/0/{made}/artifacts/f"
    assert runner.request("PUT", path, "text")[0] == 200
    ask(runner, "runs/delete", run_id=made)
    gone = admin("gc", data)
    assert gone.stdout.splitlines()[-1] == "1 removed, 0 failed", gone
    assert runner.request("GET", path)[0] == 404
    count = "SELECT count(*) AS runs FROM system.mlflow.runs_latest"
    counted = admin("sql", count, "--format=csv", "--fresh", data)
    assert counted.stdout.splitlines()[0] == "runs", counted
    # A runner that was killed holds no folder; what it said of itself is not believed.
    runner.process.kill()
    runner.process.wait()
    assert (tmp_path / "data/runner.json").exists()
    assert admin("config", "get", "ttl_policy", data).stdout.strip() == policy
    assert admin("sql", count, "--format=csv", data).stdout.splitlines()[0] == "runs"


def test_a_folder_in_use_by_another_command_is_refused(product: Any, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    try:
        refused = admin("verify", f"--data={folder.path}")
    finally:
        folder.close()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is in use by another" in refused.stderr


def test_durations() -> None:
    assert [parse_duration(text) for text in ("30d", "1d12h", "5m10s")] == [2592000, 129600, 310]
    for text in ("", "soon", "5", "d"):
        with pytest.raises(ValueError, match="no duration"):
            parse_duration(text)
