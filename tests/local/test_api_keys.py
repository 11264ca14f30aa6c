"""``local.admin keys`` beside a runner with a login, which the keys then open."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path

from tests import servers
from tests.servers import Server

from .conftest import ROOT


def admin(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command_line(folder, "keys", *arguments)


def command_line(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local.admin", *arguments, "--data", str(folder)]
    environment = servers.environment()
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def status(server: Server, authorization: str, body: bytes | None = None) -> int:
    """Of reading the first experiment, or of tagging it with the body."""
    path = "set-experiment-tag" if body else "get?experiment_id=0"
    request = urllib.request.Request(
        f"{server.url}/api/2.0/mlflow/experiments/{path}",
        body,
        {"authorization": authorization, "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_keys_on_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    started = servers.start_product(tmp_path, "--auth", "--data", str(folder))
    with servers.stopped(started) as server:
        assert admin(folder, "create-account", "robot").returncode == 0
        assert "there is a user robot" in admin(folder, "create-account", "robot").stderr
        limits = ("--name", "nightly", "--scope", "read", "--days", "3")
        made = admin(folder, "create", "robot", *limits)
        token = made.stdout.strip()
        assert token.startswith("mlk_"), made.stderr
        key_id = token.split("_")[1]
        listed = admin(folder, "list", "robot").stdout
        assert f"{key_id} 'nightly' scopes=read" in listed
        assert token not in listed
        assert "Invalid scope" in admin(folder, "create", "robot", "--scope", "all").stderr
        assert admin(folder, "create", "nobody").returncode == 1

        basic = "Basic " + b64encode(f"robot:{token}".encode()).decode()
        tag = b'{"experiment_id": "0", "key": "k", "value": "v"}'
        rights = command_line(folder, "rights", "robot").stdout
        assert "API keys only (a service account)" in rights
        assert key_id in rights
        assert token not in rights
        on_first = command_line(folder, "rights", "--on", "experiment:0").stdout
        assert on_first.splitlines()[3].split()[:3] == ["robot", "yes", "no"]
        assert "is an administrator" in on_first
        assert "nobody" in command_line(folder, "rights", "nobody").stderr
        assert "there is no model" in command_line(folder, "rights", "--on", "model:no").stderr
        assert command_line(folder, "rights").returncode == 1
        assert [status(server, login) for login in (f"Bearer {token}", basic)] == [200, 200]
        assert [status(server, login, tag) for login in (f"Bearer {token}", basic)] == [403, 403]
        assert admin(folder, "revoke", key_id).returncode == 0
        assert [status(server, login) for login in (f"Bearer {token}", basic)] == [401, 401]
        assert admin(folder, "list", "robot").stdout == ""
        assert admin(folder, "revoke", key_id).returncode == 1
