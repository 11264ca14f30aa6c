"""One lock, one Python for Lambda, and nothing of the machine that made them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.arch import project

LAYERS = {"mlcore": "core", "mltables": "tables", "tokens": "tokens", "catalog": "catalog"}


def _uv(*arguments: str) -> str:
    uv = Path(sys.executable).parent / "uv"
    return subprocess.run(
        [uv, *arguments], cwd=project.ROOT, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("package", LAYERS)
def test_layer_requirements_are_what_the_lock_exports(package: str) -> None:
    exported = _uv(
        *("export", "--quiet", "--frozen", "--offline", "--no-dev", "--package", package),
        *("--no-emit-workspace", "--no-header"),
    )
    requirements = project.ROOT / "layers" / LAYERS[package] / "requirements.txt"
    assert requirements.read_text() == exported


def test_lock_names_public_registries_only() -> None:
    text = (project.ROOT / "uv.lock").read_text()
    hosts = {urlsplit(url).netloc for url in re.findall(r'"(\w+://[^"]+)"', text)}
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_core_layer_declares_these_packages_only() -> None:
    layer = tomllib.loads((project.ROOT / "layers/core/pyproject.toml").read_text())
    names = {re.split(r"[<>=!~ \[]", line)[0] for line in layer["project"]["dependencies"]}
    assert names == {
        "aws-lambda-powertools",
        "backports-zstd",
        "boto3",
        "graphql-core",
        "pynamodb",
        "python-ulid",
        "regex",
        "tzdata",
    }


def test_the_spellings_of_the_lambda_python_agree() -> None:
    runtime = project.template()["Globals"]["Function"]["Runtime"].removeprefix("python")
    makefiles = [project.ROOT / "layers" / name / "Makefile" for name in LAYERS.values()]
    layer = tomllib.loads((project.ROOT / "layers/core/pyproject.toml").read_text())
    root = tomllib.loads((project.ROOT / "pyproject.toml").read_text())
    for declared in project.resources("AWS::Serverless::LayerVersion").values():
        assert declared["CompatibleRuntimes"] == [f"python{runtime}"]
    for makefile in makefiles:
        assert f"PYTHON_VERSION := {runtime}\n" in makefile.read_text()
    assert f"python{runtime}" in (project.ROOT / "Makefile").read_text()
    # The code runs on older versions too; the runtime is the newest of them.
    following = f"3.{int(runtime.split('.')[1]) + 1}"
    for declared in (layer, root):
        assert declared["project"]["requires-python"] == f">=3.11,<{following}"


def test_engine_pins_are_spelled_once() -> None:
    makefile = (project.ROOT / "Makefile").read_text()
    for name in (
        "UV_VERSION",
        "SAM_VERSION",
        "DYNOXIDE_VERSION",
        "EXTENDDB_VERSION",
        "CHECKOV_VERSION",
    ):
        assert len(re.findall(rf"^{name}\s*:=", makefile, re.MULTILINE)) == 1
    version = re.search(r"^UV_VERSION\s*:= (.+)$", makefile, re.MULTILINE)
    assert version is not None
    assert f'"uv=={version[1]}"' in (project.ROOT / "pyproject.toml").read_text()


def test_the_layer_ships_what_botocore_knows_of_each_service_in_use() -> None:
    makefile = (project.ROOT / "layers/core/Makefile").read_text()
    kept = re.search(r"^SERVICES := (.+)$", makefile, re.MULTILINE)
    assert kept is not None
    sources = [path.read_text() for path in (project.ROOT / "layers/core/python").rglob("*.py")]
    # Also of those that are asked past botocore it says where they are, on request.
    pattern = re.compile(r'\b(?:create_client|make_client|transport)\(\s*"(\w+)"')
    used = {name for text in sources for name in pattern.findall(text)}
    assert used <= set(kept[1].split())
    assert used >= {"dynamodb", "kms", "s3", "sqs"}


def test_lint_needs_the_python_tools_alone() -> None:
    """`make lint` works where neither npm's packages nor a browser can be had."""
    commands = subprocess.run(
        ["make", "--dry-run", "--always-make", "lint"],
        cwd=project.ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "mypy" in commands
    assert ".tools" not in commands
