"""Packages that the operator lets scorers import: from this installation, or from a folder as a
layer of Lambda has it. They are imported before the process is locked up."""

from __future__ import annotations

import sysconfig
import time
from pathlib import Path

import pytest

from mlcore.scorer_cage.cage import CageLimits, CageUnavailable
from tests.cage.scorers import error, run

MEGABYTE = 1024 * 1024
ARRAYS = CageLimits(seconds=60, packages=("numpy", "pandas"))
NUMPY = """
import numpy as np
numbers = np.random.default_rng(1).random((60, 60))
inverse = np.linalg.inv(numbers)
is_one = np.bool_(np.allclose(numbers @ inverse, np.eye(60)))
return Feedback(value=is_one, rationale=str(inverse.shape))"""
PANDAS = """
import io
import pandas as pd
table = pd.read_csv(io.StringIO(outputs)).groupby("name").score.mean()
return Feedback(value=float(table["a"]), rationale=table.to_string() + str(table.to_dict()))"""
THREAD = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"

CHILD = """
import os, time
if os.fork() == 0:
    {detach}
    for _ in range(1200):
        time.sleep(0.05)
        open({file!r}, "a").write("x")
    os._exit(0)
time.sleep(0.3)
"""
DETACH = "os.setsid()\n    if os.fork(): os._exit(0)"
PRINTS = """
import os, sys
os.write(1, b'[{"name": "quality"}]')
print("x" * 20000, flush=True)
sys.__stdout__.write("y" * 20000)
"""


@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "filter alone"])
def test_arrays_and_tables_are_computed_in_the_cage(namespaces: bool) -> None:
    """NumPy's BLAS would start threads, which no filter holds; it starts none here."""
    limits = ARRAYS._replace(namespaces=namespaces)
    (feedback,) = run(NUMPY, limits).feedback
    assert (feedback.value, feedback.rationale) == (True, "(60, 60)"), feedback
    (feedback,) = run(PANDAS, limits, "(outputs)", outputs="name,score\na,1\nb,4\na,2\n").feedback
    assert feedback.value == 1.5, feedback
    assert "{'a': 1.5, 'b': 4.0}" in str(feedback.rationale)


def test_packages_do_not_add_to_what_a_scorer_may_use() -> None:
    """Nor does what they only reserve of the address space."""
    limits = ARRAYS._replace(memory_bytes=200 * MEGABYTE)
    fits = "import numpy as np\nreturn float(np.ones(10 * 2**17).sum())"
    assert run(fits, limits).feedback[0].value == 10 * 2**17
    made = run("import numpy as np\nreturn float(np.ones(250 * 2**17).sum())", limits)
    assert "Unable to allocate" in error(made)
    with pytest.raises(CageUnavailable, match=r"packages that it imports take \d+ bytes of memory"):
        run(fits, limits._replace(memory_bytes=16 * MEGABYTE))


@pytest.fixture
def layer(tmp_path: Path) -> CageLimits:
    """A folder with packages. The interpreter's own are not in it."""
    for name, source in {
        "shapes": "import botocore\nfrom shapes import lazy\nAREA = lazy.AREA + botocore.AREA",
        "shapes/lazy": "AREA = 40",
        "shapes/late": "AREA = 7",
        "shapes/__main__": f"open({str(tmp_path / 'ran')!r}, 'w')",
        "botocore": "AREA = 2",
        "threads": THREAD,
        "forks": CHILD.format(detach="pass", file=str(tmp_path / "alive")),
        "daemons": CHILD.format(detach=DETACH, file=str(tmp_path / "alive")),
        "hangs": CHILD.format(detach=DETACH, file=str(tmp_path / "alive")) + "time.sleep(60)",
        "ended": "import subprocess\nsubprocess.run(['true'])\nAREA = 1",
        "prints": PRINTS,
        "broken": "raise RuntimeError('It needs a graphics card.')",
    }.items():
        package, _, module = name.partition("/")
        file = tmp_path / package / f"{module or '__init__'}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
    packages = (
        *("shapes", "threads", "broken", "numpy", "forks"),
        *("daemons", "hangs", "ended", "prints"),
    )
    return CageLimits(seconds=60, packages=packages, package_paths=(str(tmp_path),))


def test_a_folder_of_packages_stands_for_itself(layer: CageLimits) -> None:
    """It takes nothing from the server's libraries, and the server's do not replace its own."""
    assert run("import shapes\nreturn shapes.AREA", layer).feedback[0].value == 42
    assert "No module named 'numpy'" in error(run("import numpy\nreturn 1", layer))
    assert "cannot import 'botocore'" in error(run("import botocore\nreturn 1", layer))
    late = "import shapes as s\nreturn s.late.AREA + s.lazy.AREA"
    assert run(late, layer).feedback[0].value == 47, "as packages that import parts when used"


def test_no_program_of_a_package_runs(layer: CageLimits) -> None:
    for source in ("from shapes import __main__", "import shapes.__main__"):
        assert run(f"{source}\nreturn 1", layer).feedback[0].error is not None
    assert not (Path(layer.package_paths[0]) / "ran").exists()


@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "filter alone"])
def test_threads_of_a_package_are_refused(layer: CageLimits, namespaces: bool) -> None:
    """The filter holds for the thread that installs it."""
    with pytest.raises(CageUnavailable, match="have started 1 threads, which cannot be locked up"):
        run("import threads\nreturn 1", layer._replace(namespaces=namespaces))


@pytest.mark.parametrize("package", ["forks", "daemons"])
@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "filter alone"])
def test_processes_of_a_package_are_refused(
    layer: CageLimits, package: str, namespaces: bool
) -> None:
    """No filter holds for them, so none of them lives on."""
    with pytest.raises(CageUnavailable, match="have started 1 processes, which cannot be locked"):
        run(f"import {package}\nreturn 1", layer._replace(namespaces=namespaces))
    _nothing_lives(layer)


def test_processes_of_a_package_that_hangs_are_stopped(layer: CageLimits) -> None:
    # The child must have run before.
    assert "timed out" in str(run("import hangs\nreturn 1", layer._replace(seconds=3)).failure)
    _nothing_lives(layer)


def _nothing_lives(layer: CageLimits) -> None:
    alive = Path(layer.package_paths[0]) / "alive"
    assert alive.exists(), "the child has run"
    size = alive.stat().st_size
    time.sleep(0.3)
    assert alive.stat().st_size == size


def test_a_package_may_have_run_a_program(layer: CageLimits) -> None:
    assert run("import ended\nreturn ended.AREA", layer).feedback[0].value == 1


def test_what_a_package_prints_is_no_answer(layer: CageLimits) -> None:
    prints = "import prints, traceback\ntraceback.sys.__stdout__.write('z' * 20000)\nreturn 2"
    made = run("import prints\nreturn 2", layer)
    assert (made.failure, made.feedback[0].value) == (None, 2)
    assert "not permitted" in error(run(prints, layer)), "nor is what it prints later"


def test_a_package_that_cannot_be_imported_fails_the_scorer(layer: CageLimits) -> None:
    made = run("import broken\nreturn 1", layer)
    assert made.failure is None
    assert error(made) == "It needs a graphics card."


def test_these_packages_are_installed_here() -> None:
    assert (Path(sysconfig.get_paths()["purelib"]) / "numpy").is_dir()
