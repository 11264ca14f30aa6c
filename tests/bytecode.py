"""``python -m tests.bytecode``: compiles the modules of tests on all processors before pytest
would do it on one, with its rewriting of assertions where it rewrites them."""

from __future__ import annotations

import compileall
import os
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from _pytest.assertion import rewrite
from _pytest.config import get_config

TESTS: Final = Path(__file__).parent


REWRITTEN: Final = re.compile(r"/(conftest|test_[^/]*)\.py$")
"""The files whose assertions pytest rewrites."""


def rewritten(folder: Path) -> list[Path]:
    """Those below the folder."""
    return sorted(path for path in folder.rglob("*.py") if REWRITTEN.search(str(path)))


def write(path: Path) -> bool:
    """Writes the bytecode of a file as pytest does, unless it is there; whether it was written."""
    folder = rewrite.get_cache_dir(path)
    pyc = folder / (path.stem + rewrite.PYC_TAIL)
    if rewrite._read_pyc(path, pyc) is not None:
        return False
    digest, code = rewrite._rewrite_test(path, get_config())
    folder.mkdir(exist_ok=True)
    written = pyc.with_suffix(f".{os.getpid()}")
    with written.open("wb") as file:
        rewrite._write_pyc_fp(file, digest, code)
    written.replace(pyc)
    return True


def main() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        others = pool.submit(compileall.compile_dir, TESTS, quiet=1, rx=REWRITTEN)
        list(pool.map(write, rewritten(TESTS), chunksize=16))
        others.result()


if __name__ == "__main__":
    main()
