"""Prints the sizes of the functions and layers that `sam build` made, and the CPU time of importing
each function.
python3.13 -m bench.built [--limits] [.aws-sam/build]; with --limits only the size that Lambda
limits is checked.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

STARTS = 7
LAYER_LIMIT = 25_000_000
"""Bytes of the zipped layer."""
IMPORT_LIMIT_MS = 250
LAMBDA_LIMIT = 262_144_000
"""Bytes that a function and its layers may have together, unzipped (Lambda's quota)."""
UNZIPPED_LIMIT = 240 * 2**20
"""This project's own limit in bytes, which leaves room for the next release of an SQL engine."""

_IMPORT = """
import time
before = time.process_time()
import {module}
print(time.process_time() - before)
"""


def zipped(folder: Path) -> int:
    """Returns the bytes of the folder's content as a zip file like the one that `sam deploy`
    uploads."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return len(content.getvalue())


def unzipped(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def together(folder: Path) -> int:
    """Returns the unzipped bytes of the largest function together with its layers: the core layer
    and the largest other layer."""
    core = folder / "CoreLayer"
    layers = [unzipped(layer) for layer in folder.glob("*Layer") if layer != core]
    functions = [unzipped(function) for function in folder.glob("*Function")]
    return unzipped(core) + max(layers, default=0) + max(functions, default=0)


def check_unzipped(folder: Path) -> int:
    """Prints the unzipped size that Lambda's quota limits. Returns 1 if it exceeds this project's
    own limit, otherwise 0."""
    size = together(folder)
    print(
        f"largest function with its layers, unzipped: {size / 2**20:.1f} MiB of"
        f" {LAMBDA_LIMIT / 2**20:.0f} (limit {UNZIPPED_LIMIT / 2**20:.0f})"
    )
    return int(size > UNZIPPED_LIMIT)


def module(folder: Path) -> str:
    """Returns the name of the handler's module: for the folder RunsFunction, which contains
    ``runs``, it is ``runs.app``."""
    [package] = [path.name for path in folder.iterdir() if path.is_dir()]
    return f"{package}.app"


def import_ms(function: Path, layers: Sequence[Path]) -> float:
    """Returns the CPU milliseconds of importing the handler's module, the least of several starts.

    Args:
        layers: all layers of the build; those that the module does not import cost nothing.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, (function, *layers))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TABLE_NAME": "none",
    }
    command = [sys.executable, "-c", _IMPORT.format(module=module(function))]
    times = [
        float(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
        for _ in range(STARTS)
    ]
    return 1000 * min(times)


def main(folder: Path) -> int:
    """Prints sizes and import times. Returns 1 if a limit is exceeded, otherwise 0."""
    core = folder / "CoreLayer"
    size = zipped(core)
    print(f"{'':24}{'zipped':>10}{'unzipped':>11}{'import':>9}")
    print(f"{'CoreLayer':24}{size / 1e6:>8.2f}MB{unzipped(core) / 1e6:>9.2f}MB")
    broken = size > LAYER_LIMIT
    layers = [core / "python", *sorted(set(folder.glob("*Layer/python")) - {core / "python"})]
    for function in sorted(folder.glob("*Function")):
        taken = import_ms(function, layers)
        broken = broken or taken > IMPORT_LIMIT_MS
        print(
            f"{function.name:24}{zipped(function) / 1e6:>8.2f}MB"
            f"{unzipped(function) / 1e6:>9.2f}MB{taken:>7.0f}ms"
        )
    broken = bool(check_unzipped(folder)) or broken
    print(f"limits: layer {LAYER_LIMIT / 1e6:.0f} MB zipped, import {IMPORT_LIMIT_MS} ms CPU")
    return int(broken)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--limits"]
    built = Path(arguments[0] if arguments else ".aws-sam/build").resolve()
    sys.exit(check_unzipped(built) if "--limits" in sys.argv else main(built))
