"""Interprets ``--from``. The source of an import is the address of an MLflow server or of a
Kubeflow model registry, or a database or folder that MLflow's own server can read; that of an
export is the address of a server of this product."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from local import program_name
from operate import temporary_servers
from operate.module_loading import CannotRun

SERVERS = ("http://", "https://")
KUBEFLOW = "kubeflow:"
"""Stands before the address of a Kubeflow model registry."""

_PASSWORD = re.compile(r"(?<=://)([^:/?]*):.*@")
"""A password may contain any letter, so it ends at the last ``@``."""
_PARAMETER = re.compile(r"(?<=[?&])(\w*(?:password|passwd|pwd)\w*)=[^&]*", re.IGNORECASE)


def without_password(source: str) -> str:
    """Returns the address of an import's source with ``***`` in place of a password, for messages
    and file names."""
    return _PARAMETER.sub(r"\1=***", _PASSWORD.sub(r"\1:***@", source))


def check(source: str) -> None:
    """Checks that the source of an export is the address of a server, not a Kubeflow registry, a
    database or a folder.

    Raises:
        CannotRun: the source is not a server's address.
    """
    if not source.lower().startswith(SERVERS):
        raise CannotRun(
            f"--from {without_password(source)}: an address such as http://old:5000 is needed"
        )


class ServedSource(NamedTuple):
    """A server from which an import reads, either at the address of ``--from`` or started by this
    program on the database or folder there."""

    url: str
    """Its address, without ``kubeflow:``."""
    files: Path | None = None
    """The folder that its artifact proxy serves, if this program started it and the folder
    exists."""
    is_kubeflow: bool = False
    """Whether it is a Kubeflow model registry, not an MLflow server."""


@contextlib.contextmanager
def served(source: str, files: Path | None) -> Iterator[ServedSource]:
    """Context manager: yields the server from which to read the source of ``--from``. That is the
    server at this address, or a server of the installed MLflow that runs on the database or folder
    while the block runs. A server is a Kubeflow model registry if ``kubeflow:``, in upper or lower
    case, stands before its address, otherwise an MLflow server.

    Args:
        files: the folder from which the started server serves files, its
            ``--artifacts-destination``; by default the folder of runs, or ``mlartifacts`` for a
            database.

    Raises:
        CannotRun: the source is neither, ``files`` is no folder or is given for a server, or MLflow
            is not installed; the message says what to do.
    """
    is_kubeflow = source.lower().startswith(KUBEFLOW)
    address = source[len(KUBEFLOW) :] if is_kubeflow else source
    if address.lower().startswith(SERVERS):
        if files is not None:
            raise CannotRun("--artifacts belongs to --from with a database or a folder")
        yield ServedSource(address, is_kubeflow=is_kubeflow)
        return
    backend = _backend(source)
    default = Path("mlartifacts") if "://" in backend else Path(backend)
    folder = (files or default).expanduser().resolve()
    if files is not None and not folder.is_dir():
        raise CannotRun(f"--artifacts {files}: there is no folder {folder}")
    if find_spec("mlflow") is None:
        raise CannotRun(
            f"--from {without_password(source)} is data of MLflow's own server, which has to "
            f"read it: install it here ({program_name.mlflow_installation()}), or let it run "
            "elsewhere and import from there:\n"
            f"  mlflow server --port 5001 --backend-store-uri '{without_password(source)}'\n"
            f"  {program_name.commands()} import --from http://127.0.0.1:5001"
        )
    if not folder.is_dir():
        print(
            f"there is no folder {folder}: files that this server kept are not found unless "
            "--artifacts names their folder",
            file=sys.stderr,
        )
    with temporary_servers.stock_server(backend, folder) as url:
        yield ServedSource(url, folder if folder.is_dir() else None)


def _backend(source: str) -> str:
    """Returns the source as MLflow's backend store: the URI of a database, or the path of a folder
    of runs. Raises CannotRun if it is neither."""
    path = Path(source.removeprefix("file://")).expanduser()
    if path.is_dir():
        return str(path.resolve())
    if source.startswith("sqlite:///"):
        file = Path(source.removeprefix("sqlite:///")).resolve()
        if not file.is_file():
            raise CannotRun(f"--from {without_password(source)}: there is no file {file}")
        return f"sqlite:///{file}"
    if "://" in source and not source.startswith("file:"):
        return source
    raise CannotRun(
        f"--from {without_password(source)}: an address such as http://old:5000, the URI of "
        "MLflow's database, or a folder of runs is needed"
    )
