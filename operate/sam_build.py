"""Builds the functions, layers and template of a deployment with the SAM CLI, into a folder outside
of the product."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from local import program_name
from operate.module_loading import CannotRun

ROOT: Final = Path(__file__).resolve().parents[1]
PYTHON: Final = "python3.13"
"""The interpreter of Lambda's runtime, by the name that the Makefiles of functions and layers
call it."""
ARCHITECTURES: Final = ("arm64", "x86_64")
_PROBE: Final = "import pip, sys; sys.exit(sys.version_info[:2] != (3, 13))"


def build(folder: Path, architecture: str, sam: Sequence[str]) -> Path:
    """Builds the deployment's template, functions and layers with the SAM CLI. Returns the path of
    the built template.

    Args:
        folder: where the build and its cache go; another build there is replaced.
        architecture: the processors of the functions, one of :data:`ARCHITECTURES`.
        sam: command that starts the SAM CLI.

    Raises:
        CannotRun: a tool is missing, or the build failed (the SAM CLI has printed the reason).
    """
    program = shutil.which(sam[0])
    if program is None:
        raise CannotRun(f"there is no SAM CLI ({sam[0]}): {program_name.sam_installation()}")
    if shutil.which("make") is None:
        raise CannotRun("there is no make, with which the SAM CLI builds functions and layers")
    made = folder.expanduser().resolve() / architecture / "build"
    done = subprocess.run(
        [
            *(program, *sam[1:], "build", "--template-file", str(ROOT / "template.yaml")),
            *("--build-dir", str(made), "--cached", "--cache-dir", str(made.with_name("cache"))),
            *("--parallel", "--parameter-overrides", f"Architecture={architecture}"),
        ],
        check=False,
        cwd=_folder(made.parent),
        env={
            **os.environ,
            "PATH": os.pathsep.join([str(interpreter().parent), os.environ.get("PATH", "")]),
            "ARCHITECTURE": architecture,
            "SAM_CLI_TELEMETRY": os.environ.get("SAM_CLI_TELEMETRY", "0"),
        },
    )
    if done.returncode:
        raise CannotRun(f"sam build ended with {done.returncode}; nothing was deployed")
    return made / "template.yaml"


def default_folder() -> Path:
    """Returns the folder in the user's cache where SAM builds go by default."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mlflow-serverless"


def interpreter() -> Path:
    """Returns a Python 3.13 that has pip and is called ``python3.13``.

    Raises:
        CannotRun: this machine has none.
    """
    for candidate in _candidates():
        if candidate.is_file() and _works(candidate):
            return candidate
    raise CannotRun(
        f"no {PYTHON} with pip was found (beside this Python, on PATH, in pyenv, in uv). Lambda "
        "runs the functions on it: install it, for instance with `uv python install 3.13`"
    )


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable).with_name(PYTHON)
    on_path = shutil.which(PYTHON)
    if on_path is not None:
        yield Path(on_path)
    home = Path.home()
    for folder, pattern in (
        (Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions", "3.13*/bin"),
        (home / ".local/share/uv/python", "cpython-3.13*/bin"),
    ):
        for candidate in sorted(folder.glob(pattern)):
            yield candidate / PYTHON


def _works(candidate: Path) -> bool:
    """Whether the interpreter runs; a shim of pyenv fails where its version is not selected."""
    try:
        done = subprocess.run([candidate, "-c", _PROBE], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
