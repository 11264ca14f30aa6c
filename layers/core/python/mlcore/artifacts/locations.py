"""From the location of a run, a logged model or a model version to a key of the store; opens
nothing."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlparse

from mlcore.artifacts.paths import INTERNAL, WORKSPACES, below, safe_path, scoped
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.errors import InvalidParameterValue

PROXIED: Final = ("mlflow-artifacts", "http", "https")
_ROUTE: Final = "/api/2.0/mlflow-artifacts/artifacts/"


def scheme(location: str) -> str:
    """The scheme of a location; "" for a path."""
    return urlparse(location).scheme


def locate(location: str, workspace: str, path: str = "") -> str:
    """The key of a location, or of a path (not yet checked) below it.

    Raises:
        InvalidParameterValue: the path is not safe, or the location is none that we keep: another
            bucket, another service, or a folder of whatever machine.
    """
    root = root_of(location)
    if root is None:
        raise InvalidParameterValue(
            f"This server keeps no files at '{location}': it reads 'mlflow-artifacts:' locations "
            "and its own bucket. A client with access to the location reaches it directly."
        )
    return below(scoped(safe_path(root.lstrip("/")), workspace), safe_path(path))


def root_of(location: str) -> str | None:
    """The path of a location that we keep, not yet checked; None for any other."""
    parsed = urlparse(location)
    if parsed.scheme == "mlflow-artifacts":
        return parsed.path
    if parsed.scheme in PROXIED and _ROUTE in parsed.path:
        return parsed.path.split(_ROUTE, 1)[1]
    if parsed.scheme == "s3" and parsed.netloc == os.environ.get("ARTIFACT_BUCKET"):
        return parsed.path
    return None


def history_folder(experiment_id: str, run_id: str = "") -> str:
    """The key of the files with a run's history, or those of all runs of an experiment; below no
    workspace, for an experiment may leave its own."""
    path = f"history/{experiment_id}/{run_id}" if run_id else f"history/{experiment_id}"
    return internal(DEFAULT_WORKSPACE, path)


def internal(workspace: str, path: str) -> str:
    """The key of something that only the product reads and writes."""
    root = INTERNAL if workspace == DEFAULT_WORKSPACE else f"{INTERNAL}/{WORKSPACES}/{workspace}"
    return f"{root}/{path}"
