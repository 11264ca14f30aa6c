"""Lists a run's files, for REST and GraphQL."""

from __future__ import annotations

from typing import Any

from mlcore.artifacts import DirectoryEntry, locate, safe_path, store
from mlcore.models.runs import Run
from mlcore.repos.runs.core import runs


def root_of_run(run_id: str, workspace: str) -> str:
    """Returns a run's artifact URI. Raises ResourceDoesNotExist, also for a run of another
    workspace."""
    return Run.of(runs.load(run_id, workspace).document.item).artifact_uri


def of_run(run_id: str, path: str, workspace: str) -> dict[str, Any]:
    """Returns the files and directories directly below a path among a run's artifacts, as the JSON
    of MLflow's list-artifacts."""
    safe = safe_path(path)
    return below(root_of_run(run_id, workspace), safe, workspace)


def below(root: str, path: str, workspace: str) -> dict[str, Any]:
    """Returns the JSON of MLflow's list-artifacts for a path below an artifact URI. The caller must
    have checked the path."""
    return listing(store().list(locate(root, workspace, path)), path, root_uri=root)


def listing(entries: list[DirectoryEntry], directory: str, **more: str) -> dict[str, Any]:
    """Returns the JSON of MLflow's list-artifacts for entries of the artifact store.

    Args:
        directory: the path of the entries' directory below the artifact root; "" for the root.
        more: further fields of the answer, such as ``root_uri``.
    """
    if not entries:
        return {**more}
    return {**more, "files": [_file_info(entry, directory) for entry in entries]}


def _file_info(entry: DirectoryEntry, directory: str) -> dict[str, Any]:
    """Returns one file or directory as MLflow's JSON. Like MLflow, omits the size of an empty
    file.

    Args:
        directory: the path of the entry's directory below the artifact root; "" for the root.
    """
    info: dict[str, Any] = {
        "path": f"{directory}/{entry.name}" if directory else entry.name,
        "is_dir": entry.size is None,
    }
    if entry.size:
        info["file_size"] = entry.size
    return info
