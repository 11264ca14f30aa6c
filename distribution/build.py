"""Builds the wheel: ``make wheel``.

    python distribution/build.py FOLDER

The wheel contains the package ``mlflow_serverless``. The package's folder ``product`` is a copy of
the files that the product needs to run: template, functions, layers, runner, commands, dashboards,
the web UI's files and the chart library. Its dependencies are those of the layers and of the group
``local``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = (
    *("template.yaml", "samconfig.toml", "functions", "layers"),
    *("local", "operate", "dashboards", ".tools/ui", ".tools/charts"),
)
LAYERS = ("core", "tables", "tokens", "catalog")
TOOLS = ("uv",)
"""Dependencies of the group ``local`` that only a clone needs."""
_NAME = re.compile(r"[\w.-]+")
"""The name that a requirement begins with."""
BACKEND = "uv_build>=0.13.9,<0.14"


def build(folder: Path) -> Path:
    """Builds the wheel into ``folder``; returns its path.

    Raises:
        subprocess.CalledProcessError: a step of the build failed.
        FileNotFoundError: a file of the wheel is not installed: run ``make wheel``.
    """
    project = _table(ROOT / "pyproject.toml")
    with tempfile.TemporaryDirectory() as temporary:
        stage = Path(temporary)
        package = stage / "mlflow_serverless"
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(
            ROOT / "distribution/mlflow_serverless", package, ignore=ignored, dirs_exist_ok=True
        )
        for name in PRODUCT:
            source, target = ROOT / name, package / "product" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copy(source, target)
        for name in ("README.md", "LICENSE"):
            shutil.copy(ROOT / name, stage)
        (stage / "pyproject.toml").write_text(_project(project))
        folder.mkdir(parents=True, exist_ok=True)
        _run("uv", "build", "--quiet", "--wheel", "--out-dir", str(stage / "built"), str(stage))
        (wheel,) = (stage / "built").glob("*.whl")
        return Path(shutil.move(wheel, folder / wheel.name))


def _table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def _project(project: dict[str, Any]) -> str:
    """Returns the content of the wheel's pyproject.toml."""
    own = project["project"]
    lines = [
        "[project]",
        f'name = "{own["name"]}"',
        f'version = "{own["version"]}"',
        f'description = "{own["description"]}"',
        'readme = "README.md"',
        'license = "Apache-2.0"',
        'license-files = ["LICENSE"]',
        f'requires-python = "{own["requires-python"]}"',
        f"dependencies = {sorted(_dependencies(project))!r}",
        "[project.optional-dependencies]",
        f"export = {[n for n in _group(project, 'example') if n.startswith('mlflow==')]!r}",
        "[project.scripts]",
        'mlflow-serverless = "mlflow_serverless.__main__:main"',
        "[build-system]",
        f'requires = ["{BACKEND}"]',
        'build-backend = "uv_build"',
        "[tool.uv.build-backend]",
        'module-root = ""',
        # The backend leaves hidden folders out unless they are named.
        'source-include = ["mlflow_serverless/product/.tools/**"]',
    ]
    return "\n".join(lines) + "\n"


def _group(project: dict[str, Any], name: str) -> list[str]:
    """Returns the requirements that a dependency group lists itself, without those of groups that
    it includes."""
    return [
        requirement
        for requirement in project["dependency-groups"][name]
        if isinstance(requirement, str)
    ]


def _dependencies(project: dict[str, Any]) -> set[str]:
    requirements = set()
    for layer in LAYERS:
        requirements.update(
            _table(ROOT / f"layers/{layer}/pyproject.toml")["project"]["dependencies"]
        )
    local = _group(project, "local")
    requirements.update(text for text in local if _NAME.match(text)[0] not in TOOLS)  # type: ignore[index]
    return requirements


def _run(program: str, *arguments: str) -> None:
    subprocess.run([ROOT / ".venv/bin" / program, *arguments], check=True)


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
