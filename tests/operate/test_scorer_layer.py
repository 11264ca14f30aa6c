"""The layer with packages for scorers, as `make scorer-layer` builds it."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from operate import sam_build, scorer_layer
from operate.module_loading import CannotRun


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    """A file with the hash of one wheel, which is the only one that pip can see."""
    try:
        sam_build.interpreter()
    except CannotRun as missing:
        pytest.skip(str(missing))
    wheel = tmp_path / "shapes-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("shapes/__init__.py", "AREA = 42\n")
        archive.writestr(
            "shapes-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: shapes\nVersion: 1.0\n"
        )
        archive.writestr(
            "shapes-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("shapes-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    file = tmp_path / "requirements.txt"
    file.write_text(f"--no-index\n--find-links {tmp_path}\nshapes==1.0 --hash=sha256:{digest}\n")
    return file


def test_a_layer_holds_the_packages_compiled_in_a_folder_of_their_own(
    requirements: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(requirements), "--architecture", "x86_64", "--folder", str(tmp_path / "dist")]
    assert scorer_layer.main(arguments) == 0
    layer = tmp_path / "dist/scorer-layer-x86_64.zip"
    with zipfile.ZipFile(layer) as archive:
        listed = archive.namelist()
        compiled = archive.read("scorer_packages/shapes/__pycache__/__init__.cpython-313.pyc")
    assert "scorer_packages/shapes/__init__.py" in listed
    assert {name.split("/")[0] for name in listed} == {"scorer_packages"}
    assert b"/opt/scorer_packages/shapes/__init__.py" in compiled
    told = capsys.readouterr().out
    assert "CodeScorerPackages=shapes" in told
    assert f"--compatible-architectures x86_64 --zip-file fileb://{layer}" in told


def test_what_has_no_hash_or_is_too_large_is_no_layer(
    requirements: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scorer_layer, "MOST_BYTES", 10)
    with pytest.raises(CannotRun, match="packages have 0 MiB unpacked"):
        scorer_layer.build(requirements, "arm64", tmp_path / "dist")
    requirements.write_text(requirements.read_text().partition(" --hash")[0] + "\n")
    with pytest.raises(CannotRun, match="pip refused"):
        scorer_layer.build(requirements, "arm64", tmp_path / "dist")
    assert not (tmp_path / "dist").exists()
