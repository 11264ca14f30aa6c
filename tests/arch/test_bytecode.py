"""The bytecode of tests that is written in advance is the one that pytest reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import bytecode

RIGHT = "def test_numbers():\n    assert sum([1, 2]) == 3\n"
WRONG = RIGHT.replace("3", "4")


def test_pytest_reads_what_was_written(tmp_path: Path) -> None:
    module = tmp_path / "test_numbers.py"
    module.write_text(RIGHT)
    assert bytecode.rewritten(tmp_path) == [module]
    assert bytecode.write(module)
    assert not bytecode.write(module), "what is there is not written again"
    module.write_text(WRONG)
    assert bytecode.write(module)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--debug=trace", module.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "found cached rewritten pyc" in (tmp_path / "trace").read_text()
    assert "assert 3 == 4" in run.stdout
