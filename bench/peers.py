"""The servers that are compared: their pinned versions, how they are installed and started.
Peers get virtual environments under .tools/peers when they are first measured. Each is started as
its documentation says, with one worker and a SQLite file in memory, without tuning.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.engines import ROOT, free_port
from tests.servers import REMEMBERED, Server, environment, start, start_product

FOLDER: Final = ROOT / ".tools" / "peers"


class Peer(NamedTuple):
    """A server to compare. ``wanted`` lists the packages of its virtual environment; empty for this
    project."""

    name: str
    title: str
    about: str
    wanted: tuple[str, ...]
    command: Callable[[Path], Server]
    """Starts the server in a folder."""


def ready(peer: Peer) -> None:
    """Creates the virtual environment of a peer unless it exists.

    Raises:
        RuntimeError: its packages cannot be installed; the message is the installer's last output.
    """
    if peer.wanted:
        installed(peer.name, peer.wanted)


def installed(name: str, packages: Sequence[str]) -> Path:
    """Returns the Python of a virtual environment with packages; makes it unless it exists.

    Raises:
        RuntimeError: the packages cannot be installed; the message is the installer's last output.
    """
    folder = FOLDER / name
    python = folder / "bin/python"
    done, wanted = folder / "installed.txt", "\n".join(packages)
    if done.exists() and done.read_text() == wanted:
        return python
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    for arguments in (
        ["venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        ["pip", "install", "--quiet", "--python", str(python), *packages],
    ):
        # Without this project's settings, which leave out packages that a peer imports.
        ran = subprocess.run(
            [uv, "--no-config", *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=environment(),
        )
        if ran.returncode:
            message = ran.stderr.strip().splitlines() or ["uv failed"]
            raise RuntimeError(f"does not install: {message[-1].strip()}")
    done.write_text(wanted)
    return python


def _ours(folder: Path) -> Server:
    # With cached bytecode, because peers in Python have it, too, after their first start.
    return start_product(folder, "--data", str(folder / "data"), port=None, **REMEMBERED)


def _fasttrackml(folder: Path) -> Server:
    port = free_port()
    program = str(FOLDER / "fasttrackml/bin/fml")
    storage = [
        "--database-uri",
        f"sqlite://{folder}/fml.db",
        "--default-artifact-root",
        str(folder),
    ]
    listen = ["--listen-address", f"127.0.0.1:{port}", "--log-level", "warn"]
    return start([program, "server", *listen, *storage], port, folder, folder)


def _mlflow_go(folder: Path) -> Server:
    """Starts mlflow-go. It forwards requests that it does not implement to a `mlflow server` that
    it starts itself."""
    bin_folder = FOLDER / "mlflow-go/bin"
    # The wheel for Linux names its library as macOS does, and does not find it by that name.
    (packed,) = (FOLDER / "mlflow-go").glob("lib/*/site-packages/mlflow_go_backend/lib*.dylib")
    library = packed if sys.platform == "darwin" else packed.with_suffix(".so")
    (folder / library.name).symlink_to(packed)
    (folder / packed.with_suffix(".h").name).symlink_to(packed.with_suffix(".h"))
    path = f"{bin_folder}:{environment().get('PATH', '')}"
    quiet = ["--go-opts", "log_level=WARNING,shutdown_timeout=3s"]
    more = {"PATH": path, "MLFLOW_GO_LIBRARY_PATH": str(folder)}
    return _mlflow(folder, bin_folder / "mlflow-go", quiet, **more)


def _stock(folder: Path) -> Server:
    # Otherwise its job runners start eight processes, and it fetches prices from the internet.
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_MODEL_CATALOG_URI": ""}
    return _mlflow(folder, FOLDER / "stock/bin/mlflow", [], **quiet)


def _mlflow(folder: Path, program: Path, arguments: list[str], **more: str) -> Server:
    port = free_port()
    command = [
        *(str(program), "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db"),
        *("--artifacts-destination", str(folder / "artifacts"), *arguments),
    ]
    return start(command, port, folder, folder, **REMEMBERED, **more)


OURS: Final = "ours"
PEERS: Final = (
    Peer(OURS, "mlflow-serverless", "`python -m local --data DIR`, with its indexer", (), _ours),
    Peer(
        "fasttrackml",
        "FastTrackML",
        "`fml server` of fasttrackml 0.6.0: Go, SQLite",
        ("fasttrackml==0.6.0",),
        _fasttrackml,
    ),
    Peer(
        "mlflow-go",
        "mlflow-go",
        "`mlflow-go server` of mlflow-go-backend 0.2.2: Go, SQLite, with an MLflow 3.0.0 behind it "
        "for what it does not do itself",
        # This peer imports classes that MLflow 3.17 lacks, and MLflow 3.0 imports some that
        # SQLAlchemy 2.1 lacks.
        ("mlflow-go-backend==0.2.2", "mlflow==3.0.0", "sqlalchemy==2.0.36", "alembic==1.20.1"),
        _mlflow_go,
    ),
    Peer(
        "stock",
        "MLflow",
        "`mlflow server --workers 1` of mlflow 3.17.2: Python, SQLite, without its job runners",
        ("mlflow==3.17.2",),
        _stock,
    ),
)
