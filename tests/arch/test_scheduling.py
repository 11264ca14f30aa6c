"""Groups of files that share a worker are those that share a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import scheduling
from tests.engines import ROOT

FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))


def _takes(path: Path, *fixtures: str) -> bool:
    text = (ROOT / path).read_text()
    return any(f"{fixture}: " in text for fixture in fixtures)


@pytest.mark.parametrize("start", scheduling.SHARING)
def test_each_group_has_files(start: str) -> None:
    assert any(path.as_posix().startswith(start) for path in FILES)


def test_what_compares_with_the_stock_server_shares_it() -> None:
    """But for the files that start a pair of servers of their own."""
    apart = {
        path.name
        for path in FILES
        if path.parent.name == "differential"
        and _takes(path, "stock_url")
        and scheduling.group_of(f"{path.as_posix()}::test") != "stock"
    }
    assert apart == set()
