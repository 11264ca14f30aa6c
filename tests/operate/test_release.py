"""A release has one version, and its files are what the sources say."""

from __future__ import annotations

import json
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from operate import release
from operate.release import BESIDE, CHECKSUMS, NotReady, bill_of_materials, pack, version_of

CHANGELOG = """# Changelog

## [Unreleased]
{}
## [1.2.0] - 2026-12-01

Text.

## [1.1.0] - 2026-11-01
"""


def test_the_version_is_that_of_the_newest_release() -> None:
    declared = {"pyproject.toml": "1.2.0", "layers/core/pyproject.toml": "1.2.0"}
    assert version_of(CHANGELOG.format(""), declared) == "1.2.0"
    with pytest.raises(NotReady, match="unreleased entries"):
        version_of(CHANGELOG.format("\n- Something new.\n"), declared)
    with pytest.raises(NotReady, match=r"layers/core/pyproject.toml has version 1.1.0"):
        version_of(CHANGELOG.format(""), {**declared, "layers/core/pyproject.toml": "1.1.0"})
    with pytest.raises(NotReady, match="no release"):
        version_of("# Changelog\n\n## [Unreleased]\n", declared)


def test_all_project_files_have_one_version() -> None:
    assert len(set(release.versions().values())) == 1
    assert len(release.versions()) == 1 + len(release.LAYERS)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    made = tmp_path / "build"
    (made / "RunsFunction/runs").mkdir(parents=True)
    (made / "RunsFunction/runs/app.py").write_text("def handler(): ...\n")
    (made / "RunsFunction/runs/bootstrap").write_text("#!/bin/sh")
    (made / "RunsFunction/runs/bootstrap").chmod(0o755)
    (made / "template.yaml").write_text("Resources: {RunsFunction: {CodeUri: RunsFunction}}\n")
    return made


def test_a_zip_file_holds_the_build_and_is_the_same_each_time(build: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.zip", tmp_path / "2.zip"
    pack(build, first)
    (build / "template.yaml").touch()
    pack(build, second)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = {f"RunsFunction/runs/{name}" for name in ("app.py", "bootstrap")}
        assert set(archive.namelist()) == {"template.yaml", *names, *BESIDE}
        executable = {
            member.filename for member in archive.infolist() if member.external_attr >> 16 & 0o111
        }
        assert "RunsFunction/runs/bootstrap" in executable
        assert "RunsFunction/runs/app.py" not in executable
        assert archive.read("RunsFunction/runs/app.py") == b"def handler(): ...\n"
    with pytest.raises(NotReady, match="make build"):
        pack(tmp_path / "nowhere", first)


def test_a_bill_of_materials_names_the_layers_libraries() -> None:
    text = bill_of_materials("tokens")
    assert text == bill_of_materials("tokens")
    names = {component["name"] for component in json.loads(text)["components"]}
    assert {"pyjwt", "cryptography"} <= names
    assert "pytest" not in names


def test_all_files_of_a_release_are_listed_with_their_checksums(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "version_of", lambda *_: "1.2.0")
    folder = tmp_path / "dist"
    arguments = ["--build", str(build), "--folder", str(folder)]
    assert release.main(arguments) == 1
    assert "make wheel" in capsys.readouterr().err
    wheel = "mlflow_serverless-1.2.0-py3-none-any.whl"
    (folder / wheel).write_bytes(b"wheel")
    (folder / "mlflow-serverless-1.1.0-arm64.zip").write_bytes(b"of an earlier release")
    assert release.main(arguments) == 0
    assert release.main([*arguments, "--architecture", "x86_64"]) == 0
    listed = [line.split()[1] for line in (folder / CHECKSUMS).read_text().splitlines()]
    assert sorted(listed) == sorted(
        [
            wheel,
            "mlflow-serverless-1.2.0-arm64.zip",
            "mlflow-serverless-1.2.0-x86_64.zip",
            *(f"mlflow-serverless-1.2.0-{layer}.cdx.json" for layer in release.LAYERS),
        ]
    )
    subprocess.run(["sha256sum", "--check", "--strict", CHECKSUMS], cwd=folder, check=True)


def test_the_wheel_has_the_name_that_a_release_looks_for() -> None:
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == release.PRODUCT
