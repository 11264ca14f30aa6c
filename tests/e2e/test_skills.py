"""The skill registry with MLflow's client and every one of its commands: from a folder and from a
git repository, back to a folder."""

from __future__ import annotations

import importlib
import json
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def _folder(root: Path, name: str, **files: bytes) -> Path:
    folder = root / name
    (folder / "scripts").mkdir(parents=True)
    head = f"---\nname: {name}\ndescription: what {name} is for\n---\n"
    (folder / "SKILL.md").write_text(head, encoding="utf-8")
    (folder / "scripts" / "é run.sh").write_text("echo hi\n", encoding="utf-8")
    for file, data in files.items():
        (folder / file).write_bytes(data)
    return folder


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """The URL of a git repository with two skills, served by git itself."""
    if shutil.which("git") is None:
        pytest.fail("git is missing")
    root = tmp_path / "git" / "repo.git"
    for name in ("first", "second"):
        _folder(root / "skills", f"{name}-{uuid4().hex[:6]}")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    for command in (("init", "-q", "-b", "main"), ("add", "."), (*identity, "commit", "-qm", "s")):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"--base-path={root.parent}"
    address = ("--listen=127.0.0.1", f"--port={port}", "--reuseaddr")
    daemon = subprocess.Popen(["git", "daemon", "--export-all", *address, base])
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield f"git://127.0.0.1:{port}/repo.git"
    daemon.terminate()
    daemon.wait(10)


def _command(*arguments: str) -> Any:
    """What a command of ``mlflow skills`` prints, as JSON if it is."""
    cli = importlib.import_module("mlflow.cli").cli
    runner = importlib.import_module("click.testing").CliRunner()
    result = runner.invoke(cli, ["skills", *arguments])
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    try:
        return json.loads(result.stdout)
    except ValueError:
        return result.stdout


def _only(printed: Any) -> Any:
    """The one version that a command prints."""
    (version,) = printed["skill_versions"]
    return version


@pytest.mark.filterwarnings("ignore::Warning")
def test_a_folder_comes_back(tracking_uri: str, tmp_path: Path) -> None:
    mlflow = importlib.import_module("mlflow")
    genai = importlib.import_module("mlflow.genai")
    mlflow.set_tracking_uri(tracking_uri)
    name = f"folder-{uuid4().hex[:8]}"
    large = random.Random(1).randbytes(12_000_000)
    folder = _folder(tmp_path, name, large=large)
    version = genai.register_skill(source=str(folder), organization="acme.labs")
    assert (version.version, str(version.source_type)) == (1, "mlflow")
    assert str(version.status) == "active"
    destination = tmp_path / "pulled"
    genai.pull(f"skills:/@acme.labs/{name}/1", destination=str(destination))
    assert _content(destination) == _content(folder)
    listed = genai.search_skills(filter_string=f"name = '{name}'")
    assert [(skill.organization, skill.latest_version) for skill in listed] == [("acme.labs", 1)]
    client = mlflow.MlflowClient()
    client.update_skill_version(name=name, organization="acme.labs", version=1, status="deprecated")
    client.delete_skill_version(name=name, organization="acme.labs", version=1)
    client.delete_skill(name=name, organization="acme.labs")
    assert not genai.search_skills(filter_string=f"name = '{name}'")


@pytest.mark.filterwarnings("ignore::Warning")
def test_every_command(
    tracking_uri: str, repository: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importlib.import_module("mlflow").set_tracking_uri(tracking_uri)
    name = f"cli-{uuid4().hex[:8]}"
    uri, json_ = f"skills:/{name}", ("--output", "json")
    folder = _folder(tmp_path, name)
    made = _only(_command("register", "--source", str(folder), "--status", "draft", *json_))
    assert (made["name"], made["version"], made["status"]) == (name, 1, "draft")
    _command("update", uri, "--description", "from a folder", *json_)
    _command("update-version", f"{uri}/1", "--status", "active", *json_)
    _command("set-alias", uri, "--alias", "prod", "--version", "1", *json_)
    _command("set-tag", uri, "--key", "team/a", "--value", "core", *json_)
    _command("set-version-tag", f"{uri}/1", "--key", "k", "--value", "v", *json_)
    skill = _command("get", uri, *json_)["skill"]
    assert (skill["description"], skill["tags"]) == ("from a folder", {"team/a": "core"})
    version = _only(_command("get-version", f"{uri}@prod", *json_))
    assert (version["version"], version["tags"], version["status"]) == (1, {"k": "v"}, "active")
    command = _command("search", "--filter-string", f"name = '{name}'", *json_)
    assert name in json.dumps(command)
    assert name in json.dumps(_command("search-versions", uri, *json_))
    destination = tmp_path / "pulled"
    _command("pull", f"{uri}@prod", "--destination", str(destination))
    assert _content(destination) == _content(folder)
    imported = _command("import", "--source", repository, *json_)
    assert "first-" in json.dumps(imported)
    assert "second-" in json.dumps(imported)
    again = _command("import", "--source", repository, *json_)
    assert "first-" in json.dumps(again)
    _command("delete-version-tag", f"{uri}/1", "--key", "k")
    _command("delete-tag", uri, "--key", "team/a")
    _command("delete-alias", uri, "--alias", "prod")
    _command("update-version", f"{uri}/1", "--status", "deprecated", *json_)
    _command("delete-version", f"{uri}/1")
    skill = _command("get", uri, *json_)["skill"]
    assert (skill["tags"], skill["latest_version"]) == ({}, None)
