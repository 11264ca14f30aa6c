"""The documents that come from the code are what the code says now."""

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from mlcore.db import keys
from mltables.table_definitions import TABLES
from mltables.views import VIEWS

DOCS = Path(__file__).parents[2] / "docs"


@cache  # reading the sources takes most of the time
def generator(document: str) -> ModuleType:
    name = f"generate_{document.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("document", ["access-patterns", "api", "columns"])
def test_the_document_is_what_the_code_says(document: str) -> None:
    made = generator(document)
    written = (DOCS / f"{document}.md").read_text(encoding="utf-8")
    assert written == made.markdown(), "run: make docs"
    assert made.main(["--check"]) == 0


def test_routes_name_their_functions_and_which_are_ours() -> None:
    lines = (DOCS / "api.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ") and " `/" in line]
    assert len(rows) > 300
    for route, function, _, _, version, *_ in rows:
        assert re.fullmatch(r"`\w+(\.\w+)+`", function), route
        # No server of MLflow has a path with this product's name.
        assert "/mlflow-serverless/" not in route or version == "ours", route


def test_the_product_uses_every_key() -> None:
    made = generator("access-patterns")
    used = {
        pattern
        for function, patterns in made._functions().items()
        for pattern in patterns
        if made.callers_of(function)
    }
    assert {*keys.PATTERNS, *keys.INDEXES} <= used


def test_each_meaning_is_that_of_a_column() -> None:
    made = generator("columns")
    columns = {
        **{table.name: {name for name, *_ in table.columns} for table in TABLES},
        **{name: set(view.columns) for name, view in VIEWS.items()},
    }
    for table, meanings in made.OWN.items():
        assert set(meanings) <= columns[table], table
    shared = {name for table, names in columns.items() for name in names - made.OWN[table].keys()}
    assert shared == set(made.EVERYWHERE)
