"""Modules import only what the contracts in pyproject.toml allow."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.arch import project


def test_import_contracts_hold() -> None:
    lint_imports = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run(
        [lint_imports, "--no-cache"],
        cwd=project.ROOT,
        env={**os.environ, "PYTHONPATH": str(project.FUNCTIONS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def _modules_of(package: str, path: Path) -> Iterator[str]:
    """The modules of a package that a file imports from, at any depth of its code."""
    text = path.read_text()
    if package not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == package:
            named = [f"{package}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [node.module or ""]
        else:
            continue
        yield from (name for name in named if name.split(".")[0] == package)


def test_only_declarations_imports_the_heavy_part_of_pynamodb() -> None:
    """PynamoDB's connection brings botocore's clients along unless its importer takes care; its
    constants bring nothing."""
    importers = {
        str(path.relative_to(project.ROOT))
        for path in project.sources("layers", "functions", "local", "operate")
        if set(_modules_of("pynamodb", path)) - {"pynamodb.constants"}
    }
    declarations = project.LAYER / "db/pynamodb_classes.py"
    assert importers == {str(declarations.relative_to(project.ROOT))}
