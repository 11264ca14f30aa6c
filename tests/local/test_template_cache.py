"""What is kept of a template is what would be read."""

import subprocess
import sys
from pathlib import Path

import pytest

from local import template, template_cache
from local.template_definitions import TemplateError
from tests.local.conftest import FIXTURE, ROOT

PARAMETERS = {"Authentication": "basic", "Workspaces": "true"}


@pytest.fixture(autouse=True)
def writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.mark.parametrize("path", [ROOT / "template.yaml", FIXTURE])
def test_the_second_reading_equals_the_first(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    for parameters in ({}, PARAMETERS):
        expected = template.read(path, "table", "eu-west-1", parameters)
        for _ in range(2):
            assert template_cache.read(path, "table", "eu-west-1", parameters, folder) == expected
    assert len(list(folder.iterdir())) == 2


def test_a_change_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "template.yaml"
    own.write_text(FIXTURE.read_text())
    before = template_cache.read(own, "table", "eu-west-1", {}, tmp_path)
    own.write_text(FIXTURE.read_text().replace("ANY /echo", "ANY /other"))
    after = template_cache.read(own, "table", "eu-west-1", {}, tmp_path)
    assert after != before
    assert after == template.read(own, "table", "eu-west-1", {})
    # A newer program reads the template itself.
    monkeypatch.setattr(template_cache, "_program", lambda: "newer")
    monkeypatch.setattr(template, "read", lambda *_: before)
    assert template_cache.read(own, "table", "eu-west-1", {}, tmp_path) is before


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\x80\x04N.", b"\x80\x04K\x01K\x02\x86."])
def test_a_damaged_file_is_ignored(tmp_path: Path, damage: bytes) -> None:
    expected = template_cache.read(FIXTURE, "table", "eu-west-1", {}, tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(damage)
    assert template_cache.read(FIXTURE, "table", "eu-west-1", {}, tmp_path) == expected


def test_without_a_place_to_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    template_cache.read(FIXTURE, "table", "eu-west-1", {}, tmp_path / "file" / "folder")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    template_cache.read(FIXTURE, "table", "eu-west-1", {}, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    with pytest.raises(TemplateError, match="absent"):
        template_cache.read(tmp_path / "absent.yaml", "table", "eu-west-1", {}, tmp_path)


def test_a_runner_imports_no_parser_of_yaml() -> None:
    code = "import sys, local.runner; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    stdout = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "local.template_cache" in stdout.split()
    assert not {"yaml", "asyncio"} & set(stdout.split())
