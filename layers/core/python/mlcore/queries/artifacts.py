"""The files of a run, as REST and GraphQL list them."""

from __future__ import annotations

from typing import Any

from mlcore.artifacts import Entry, locate, safe_path, store
from mlcore.models.runs import Run
from mlcore.repos.runs import runs


def root_of_run(run_id: str, workspace: str) -> str:
    """Raises ResourceDoesNotExist, also for a run of another workspace."""
    return Run.of(runs.load(run_id, workspace).document.item).artifact_uri


def of_run(run_id: str, path: str, workspace: str) -> dict[str, Any]:
    """The files and directories right below a path."""
    safe = safe_path(path)
    return below(root_of_run(run_id, workspace), safe, workspace)


def below(root: str, path: str, workspace: str) -> dict[str, Any]:
    """What a listing answers; the path is safe."""
    return listing(store().list(locate(root, workspace, path)), path, root_uri=root)


def listing(entries: list[Entry], directory: str, **more: str) -> dict[str, Any]:
    """``directory`` goes in front of the names."""
    if not entries:
        return {**more}
    return {**more, "files": [_file_info(entry, directory) for entry in entries]}


def _file_info(entry: Entry, directory: str) -> dict[str, Any]:
    """MLflow leaves the size of an empty file out."""
    info: dict[str, Any] = {
        "path": f"{directory}/{entry.name}" if directory else entry.name,
        "is_dir": entry.size is None,
    }
    if entry.size:
        info["file_size"] = entry.size
    return info
