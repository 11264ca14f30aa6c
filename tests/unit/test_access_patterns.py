import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mlcore.db import keys

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "generate_access_patterns", DOCS / "generate_access_patterns.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_document_is_what_the_code_says(generator: ModuleType) -> None:
    written = (DOCS / "access-patterns.md").read_text(encoding="utf-8")
    assert written == generator.markdown(), "run: python docs/generate_access_patterns.py"
    assert generator.main(["--check"]) == 0


def test_every_pattern_serves_an_access(generator: ModuleType) -> None:
    served = {
        name
        for accesses in generator.ACCESS.values()
        for access in accesses
        for name in (access.pattern, *access.functions)
    }
    assert {*keys.PATTERNS, *keys.INDEXES} <= served
