"""What Lambda would refuse for its size is found when it is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.built import UNZIPPED_LIMIT, check_unzipped, together
from tests.arch import project


def _file(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True)
    with path.open("wb") as empty:
        empty.truncate(size)


@pytest.mark.parametrize(("more", "code"), [(0, 0), (1, 1)])
def test_a_build_that_is_too_large_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: int, code: int
) -> None:
    _file(tmp_path / "CoreLayer/python/a", 30 * 2**20)
    _file(tmp_path / "CatalogLayer/python/a", 40 * 2**20)
    _file(tmp_path / "TablesLayer/python/a", UNZIPPED_LIMIT - 31 * 2**20 + more)
    _file(tmp_path / "SqlFunction/sql/app.py", 2**20)
    _file(tmp_path / "RunsFunction/runs/app.py", 2**10)
    assert together(tmp_path) == UNZIPPED_LIMIT + more
    assert check_unzipped(tmp_path) == code
    assert "240.0 MiB of 250" in capsys.readouterr().out


def test_a_function_has_at_most_one_layer_besides_the_core() -> None:
    """The sum that is checked is of the core layer and one other."""
    assert project.template()["Globals"]["Function"]["Layers"] == [{"Ref": "CoreLayer"}]
    for name, function in project.resources("AWS::Serverless::Function").items():
        assert len(function.get("Layers", [])) <= 1, name


def test_a_build_ends_with_the_check() -> None:
    makefile = (project.ROOT / "Makefile").read_text()
    recipe = makefile.partition("\nbuild: ")[2].partition("\n\n")[0]
    assert recipe.rstrip().endswith("bench.built --limits .aws-sam/build")
