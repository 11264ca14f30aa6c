"""Maps an artifact location (the URI of the files of a run, logged model or model version) to a key
of the file store.
"""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlparse

from mlcore.artifacts.paths import INTERNAL, WORKSPACES, join, key_in_workspace, safe_path
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.errors import InvalidParameterValue

PROXIED: Final = ("mlflow-artifacts", "http", "https")
_ROUTE: Final = "/api/2.0/mlflow-artifacts/artifacts/"


def scheme(location: str) -> str:
    """Returns the scheme of an artifact location; "" for a plain path."""
    return urlparse(location).scheme


def locate(location: str, workspace: str, path: str = "") -> str:
    """Returns the artifact store's key of a location (a URI), or of ``path`` below it, and checks
    both.

    Raises:
        InvalidParameterValue: the path is not safe, or the location is another workspace's or not
            in this server's store, e.g. in another bucket or service or a local folder.
    """
    root = root_of(location)
    if root is None:
        raise InvalidParameterValue(
            f"This server stores no files at '{location}': it serves 'mlflow-artifacts:' locations "
            "and its own bucket. A client with access to the location reaches it directly."
        )
    return join(key_in_workspace(safe_path(root.lstrip("/")), workspace), safe_path(path))


def root_of(location: str) -> str | None:
    """Returns the path in this server's artifact store that an artifact location names, without
    checking the path or a URL's host; None for other buckets and for locations of other kinds."""
    parsed = urlparse(location)
    if parsed.scheme == "mlflow-artifacts":
        return parsed.path
    if parsed.scheme in PROXIED and _ROUTE in parsed.path:
        return parsed.path.split(_ROUTE, 1)[1]
    if parsed.scheme == "s3" and parsed.netloc == os.environ.get("ARTIFACT_BUCKET"):
        return parsed.path
    return None


def history_folder(experiment_id: str, run_id: str = "") -> str:
    """Returns the key prefix of a run's metric history files; without ``run_id`` of all runs of the
    experiment. The prefix is in no workspace's folder, since an experiment may move to another
    workspace."""
    path = f"history/{experiment_id}/{run_id}" if run_id else f"history/{experiment_id}"
    return internal_key(DEFAULT_WORKSPACE, path)


def internal_key(workspace: str, path: str) -> str:
    """Returns the storage key of a file that only the product itself reads and writes."""
    root = INTERNAL if workspace == DEFAULT_WORKSPACE else f"{INTERNAL}/{WORKSPACES}/{workspace}"
    return f"{root}/{path}"
