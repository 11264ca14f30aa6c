"""The documents that come from the code are what the code says now."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mlcore.db import keys

DOCS = Path(__file__).parents[2] / "docs"


def generator(document: str) -> ModuleType:
    name = f"generate_{document.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("document", ["access-patterns", "api"])
def test_the_document_is_what_the_code_says(document: str) -> None:
    made = generator(document)
    written = (DOCS / f"{document}.md").read_text(encoding="utf-8")
    assert written == made.markdown(), "run: make docs"
    assert made.main(["--check"]) == 0


def test_the_product_uses_every_key() -> None:
    made = generator("access-patterns")
    used = {
        pattern
        for function, patterns in made._functions().items()
        for pattern in patterns
        if made.callers_of(function)
    }
    assert {*keys.PATTERNS, *keys.INDEXES} <= used
