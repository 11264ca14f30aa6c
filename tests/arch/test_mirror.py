"""Unit tests lie where their code lies, under its name."""

from __future__ import annotations

from pathlib import Path

from tests.arch import project

UNIT = project.ROOT / "tests/unit"


def _has_code(test: Path) -> bool:
    """Whether a module or package lies in the folder of a test and has its name; the tests of a
    package as a whole lie inside of its folder."""
    folder = test.relative_to(UNIT).parent
    noun = test.stem.removeprefix("test_")
    own = folder.parent if folder.name == noun else folder
    return any(
        (source / folder / f"{noun}.py").is_file() or (source / own / noun).is_dir()
        for source in (project.LAYER, project.FUNCTIONS, project.TABLES)
    )


def test_unit_tests_mirror_the_code() -> None:
    tests = [
        path
        for path in project.sources("tests")
        if path.is_relative_to(UNIT) and path.name.startswith("test_")
    ]
    assert len(tests) > 40
    astray = [str(path.relative_to(project.ROOT)) for path in tests if not _has_code(path)]
    assert astray == [], "name a unit test after its module, in the folder of that"
