"""What `sam build` made: how large it is, and the CPU time of each function's import.

python3.13 -m bench.built [.aws-sam/build]
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

STARTS = 7
LAYER_LIMIT = 25_000_000
"""Bytes of the zipped layer."""
IMPORT_LIMIT_MS = 250

_IMPORT = """
import time
before = time.process_time()
import {module}
print(time.process_time() - before)
"""


def zipped(folder: Path) -> int:
    """Bytes of the folder as a zip file, such as `sam deploy` uploads."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return len(content.getvalue())


def unzipped(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def module(folder: Path) -> str:
    """``runs.app`` for RunsFunction."""
    noun = re.sub(r"(?<!^)(?=[A-Z])", "_", folder.name.removesuffix("Function")).lower()
    return f"{noun}.app"


def import_ms(function: Path, layer: Path) -> float:
    """CPU time of importing the handler's module, without the DynamoDB client that Lambda's
    start creates besides (60 ms); the best of several starts."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{function}:{layer / 'python'}",
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
    """1 when a limit is broken."""
    layer = folder / "CoreLayer"
    size = zipped(layer)
    print(f"{'':24}{'zipped':>10}{'unzipped':>11}{'import':>9}")
    print(f"{'CoreLayer':24}{size / 1e6:>8.2f}MB{unzipped(layer) / 1e6:>9.2f}MB")
    broken = size > LAYER_LIMIT
    for function in sorted(folder.glob("*Function")):
        taken = import_ms(function, layer)
        broken = broken or taken > IMPORT_LIMIT_MS
        print(
            f"{function.name:24}{zipped(function) / 1e6:>8.2f}MB"
            f"{unzipped(function) / 1e6:>9.2f}MB{taken:>7.0f}ms"
        )
    print(f"limits: layer {LAYER_LIMIT / 1e6:.0f} MB zipped, import {IMPORT_LIMIT_MS} ms CPU")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".aws-sam/build").resolve()))
