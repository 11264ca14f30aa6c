"""``local.admin keys`` on a data folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def admin(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local.admin", *arguments, "--data", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_keys_on_the_command_line(tmp_path: Path) -> None:
    new_folder(tmp_path)
    assert admin(tmp_path, "keys", "create-account", "robot").returncode == 0
    assert "there is a user robot" in admin(tmp_path, "keys", "create-account", "robot").stderr
    limits = ("--name", "nightly", "--scope", "read", "--days", "3")
    made = admin(tmp_path, "keys", "create", "robot", *limits)
    assert made.stdout.startswith("mlk_")
    key_id = made.stdout.split("_")[1]
    listed = admin(tmp_path, "keys", "list", "robot").stdout
    assert f"{key_id} 'nightly' scopes=read" in listed
    assert made.stdout.strip() not in listed
    assert "Invalid scope" in admin(tmp_path, "keys", "create", "robot", "--scope", "all").stderr
    assert admin(tmp_path, "keys", "create", "nobody").returncode == 1
    assert admin(tmp_path, "keys", "revoke", key_id).returncode == 0
    assert admin(tmp_path, "keys", "list", "robot").stdout == ""
    assert admin(tmp_path, "keys", "revoke", key_id).returncode == 1
