"""Only a version that knows the format of a data folder opens it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local.data_folder import DataFolder
from local.folder_format import FORMAT, FolderTooNew, checked, record
from operate.admin_commands import main as admin

from .conftest import PATIENT_SECONDS


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def test_a_newer_folder_is_refused_and_stays_as_it_is(
    local: Any, tmp_path: Path, capsys: Any
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "dynamodb.sqlite").write_bytes(b"in a later form")
    record(folder, FORMAT + 1)
    before = content(folder)
    runner = local(f"--data={folder}", ready=False)
    assert runner.process.wait(PATIENT_SECONDS) == 1
    assert f"{folder} was written by a newer version of mlflow-serverless" in runner.output
    assert "Traceback" not in runner.output
    assert admin(["verify", f"--data={folder}"]) == 1
    assert "was written by a newer version" in capsys.readouterr().err
    assert content(folder) == before


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "two"}', '{"format": null}'])
def test_a_marker_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "format.json").write_text(text)
    with pytest.raises(FolderTooNew, match="is no format marker"):
        DataFolder(tmp_path)
    # The lock was released.
    record(tmp_path)
    DataFolder(tmp_path).close()


def test_a_folder_without_a_marker_is_of_the_first_format(tmp_path: Path) -> None:
    new, first = tmp_path / "new", tmp_path / "first"
    for folder in (new, first):
        folder.mkdir()
    (first / "dynamodb.sqlite").touch()
    assert (checked(new), checked(first)) == (FORMAT, 1)
    assert json.loads((new / "format.json").read_text()) == {"format": FORMAT}
    assert json.loads((first / "format.json").read_text()) == {"format": 1}
    assert sorted(path.name for path in new.iterdir()) == ["format.json"]
