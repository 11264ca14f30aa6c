"""A laptop's file of audited requests on a full disk: what callers are told, what is executed, and
how it goes on."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.audit_file import AuditFile
from local.store.database import DISK_FULL, READ_ONLY
from mlcore.errors import InsufficientStorage, TemporarilyUnavailable
from mlcore.repos.users import users
from tests.contract import route_environment
from tests.contract.conftest import Store
from tests.contract.route_world import World

PATH = "/2.0/mlflow/users/create"
FULL = Path("/dev/full")
"""A file of Linux that takes nothing: each write fails because the device is full."""


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[AuditFile]:
    audit = AuditFile(tmp_path)
    audit.start()
    yield audit
    audit.stop()


def entry(number: int) -> dict[str, Any]:
    audit = {
        "user": "ann",
        "workspace": "default",
        "outcome": "done",
        "entity": {"run_id": f"r{number}"},
    }
    about = {"rpc": "/api/2.0/mlflow/runs/create", "method": "POST", "status": 200}
    return {**about, "request_id": f"q{number}", "audit": audit}


def entities(opened: Path) -> Iterator[dict[str, Any]]:
    """What the lines of a file are about."""
    for line in opened.read_text().splitlines():
        yield json.loads(json.loads(line)["entity"])


def test_a_full_disk_executes_nothing_more(
    store: Store, tmp_path: Path, kept: AuditFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    route_environment.prepare(monkeypatch, tmp_path / "files")
    world = World()
    opened = tmp_path / "audit/open.jsonl"
    opened.parent.mkdir()
    opened.symlink_to(FULL)
    # The disk becomes full between the request and its line.
    status, body = world.send("POST", PATH, {"username": "first", "password": "a-long-password"})
    assert (status, body["error_code"]) == (507, "INTERNAL_ERROR")
    assert body["message"] == f"The audit of this request cannot be written. {DISK_FULL}"
    for number in range(3):
        fields = {"username": f"late {number}", "password": "a-long-password"}
        assert world.send("POST", PATH, fields)[0] == 507
        assert users.find(f"late {number}") is None
    assert world.send("GET", "/2.0/mlflow/users/get", {"username": "first"})[0] == 200

    kept.stop()  # closes the file that has no room
    opened.unlink()
    kept.start()
    status, _ = world.send("POST", PATH, {"username": "late 0", "password": "a-long-password"})
    assert status == 200
    assert list(entities(opened)) == [{"username": "late 0"}]


def test_a_line_is_whole_or_absent(tmp_path: Path, kept: AuditFile) -> None:
    kept.record(entry(1))
    opened = tmp_path / "audit/open.jsonl"
    size = opened.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        with pytest.raises(InsufficientStorage, match="cannot be written"):
            kept.record(entry(2))
        with pytest.raises(InsufficientStorage, match="cannot be written"):
            kept.check()
        assert opened.stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    kept.check()
    assert opened.stat().st_size == size
    kept.record(entry(3))
    assert [entity["run_id"] for entity in entities(opened)] == ["r1", "r3"]


@pytest.mark.parametrize(
    ("code", "raised", "advice"),
    [
        (errno.EDQUOT, InsufficientStorage, DISK_FULL),
        (errno.EROFS, InsufficientStorage, READ_ONLY),
        (errno.EPERM, InsufficientStorage, READ_ONLY),
        (errno.EIO, TemporarilyUnavailable, "Repeat the request later."),
    ],
)
def test_what_callers_are_told(
    kept: AuditFile, monkeypatch: pytest.MonkeyPatch, code: int, raised: Any, advice: str
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("local.audit_file.os.write", refuse)
    with pytest.raises(raised, match=advice):
        kept.record(entry(1))
