"""The runner on folders and files that are not as usual."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.data_folder import DataFolder
from local.store.database import Unusable
from local.store.store import Store, endpoint_of, table_path
from local.store_preparation import StoreUnusable, prepare_store
from tests.engines import memory_folder, table_definition

from .conftest import ROOT, TABLE

KEY = {"PK": {"S": "p"}, "SK": {"S": "s"}}

_WRITE = """
import os, sys
from pathlib import Path
from local.store.store import Store, endpoint_of
if int(sys.argv[2]):  # what is imported, another user may not read
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
store = Store(endpoint_of(Path(sys.argv[1])))
request = {"TableName": sys.argv[3], "Key": {"PK": {"S": "p"}, "SK": {"S": "s"}}}
try:
    print(len(store.call("GetItem", request)))
    store.call("PutItem", {"TableName": sys.argv[3], "Item": request["Key"]})
    print("written")
except Exception as error:
    print(type(error).__name__)
"""
NOBODY = 65534


def written_by(user: int, folder: Path) -> list[str]:
    """What another process says that reads and writes as a user."""
    ran = subprocess.run(
        [sys.executable, "-c", _WRITE, str(folder), str(user), TABLE],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'layers/core/python'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.split()


@pytest.mark.parametrize(
    "name", ["a folder with blanks", "Ma\u00dfe und \u540d\u524d", "a%20b?c#d'e"]
)
def test_a_runner_on_a_folder_of_any_name(local: Any, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    for round_ in range(2):
        runner = local(f"--data={folder}")
        if not round_:
            put = runner.request("PUT", "/items/a", "1", Content_Type="text/plain")
            assert put[0] == 200
        assert runner.request("GET", "/items/a")[1] == b"1"
        assert runner.end(signal.SIGTERM) == 0
    (file,) = (folder / "store").glob("*.sqlite")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_a_user_without_rights_reads_writes_and_counts_nothing() -> None:
    with memory_folder() as folder:
        store = Store(endpoint_of(folder))
        store.call("CreateTable", table_definition(TABLE))
        store.call("PutItem", {"TableName": TABLE, "Item": KEY})
        store.close()
        folder.chmod(0o755)  # even if somebody opened the folder
        assert written_by(0, folder) == ["1", "written"]
        assert written_by(NOBODY, folder) == ["Unusable"]
        folder.chmod(0o700)
        assert written_by(NOBODY, folder) == ["Unusable"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_a_process_without_privileges_has_a_store_of_its_own() -> None:
    with memory_folder() as folder:
        store = Store(endpoint_of(folder))
        store.call("CreateTable", table_definition(TABLE))
        store.close()
        for path in (folder, *folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        assert written_by(NOBODY, folder) == ["0", "written"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_a_file_that_cannot_be_written_is_told_and_keeps_its_items() -> None:
    with memory_folder() as folder:
        store = Store(endpoint_of(folder))
        store.call("CreateTable", table_definition(TABLE))
        store.call("PutItem", {"TableName": TABLE, "Item": KEY})
        store.close()
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o444)
        assert written_by(NOBODY, folder) == ["Unusable"]
        again = Store(endpoint_of(folder))
        assert again.call("GetItem", {"TableName": TABLE, "Key": KEY})["Item"] == KEY
        again.close()


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    datafolder = DataFolder(tmp_path / "data")
    try:
        table_path(datafolder.store, TABLE).mkdir(parents=True)
        with pytest.raises(StoreUnusable, match="cannot be used"):
            prepare_store(datafolder, TABLE)
        with pytest.raises(Unusable):
            Store(endpoint_of(datafolder.store)).call("GetItem", {"TableName": TABLE, "Key": KEY})
    finally:
        datafolder.close()
